"""Predict house prices with their whole distribution, and compare intervals with those of other methods.

    KERNELWRIGHT_DATA=folder python examples/house_prices.py

The table is that of houses sold in Ames, Iowa (``tables/ames.csv`` in the data folder): 73 columns, 40 of them
categories. Prices have a long upper tail, and errors grow with the price; an interval of one width would suit no house.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import kernelwright as kw
from kernelwright.reports import FanDisplay

LEVELS = np.arange(1, 20) / 20
TARGET = "Sale_Price"


def houses(n: int, folder: str | None = None) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns and prices of n houses, drawn at random."""
    folder = folder or os.environ.get("KERNELWRIGHT_DATA")
    path = Path(folder or ".") / "tables" / "ames.csv"
    if not path.is_file():
        raise SystemExit(f"{path} is missing. Set KERNELWRIGHT_DATA to a folder with tables/ames.csv.")
    frame = pd.read_csv(path).sample(n, random_state=0)
    return frame.drop(columns=TARGET), frame[TARGET].to_numpy(dtype=float)


def with_regressor(regressor) -> Pipeline:
    """Return a pipeline for other methods: impute numbers, one-hot encode categories, predict."""
    columns = make_column_transformer(
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=10, sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
        verbose_feature_names_out=False,
    )
    return make_pipeline(columns, regressor)


def scores(y: np.ndarray, mean: np.ndarray, quantiles: np.ndarray) -> dict[str, float]:
    """Score means, and quantiles at LEVELS; twice the mean pinball loss is close to the CRPS."""
    above = y[:, None] - quantiles
    low, high = quantiles[:, 0], quantiles[:, -1]
    return {
        "R^2": r2_score(y, mean),
        "error": mean_absolute_error(y, mean),
        "CRPS": 2.0 * float(np.maximum(LEVELS * above, (LEVELS - 1.0) * above).mean()),
        "coverage": float(((low <= y) & (y <= high)).mean()),
        "width": float((high - low).mean()),
    }


def forest(X, y, X_new) -> tuple[np.ndarray, np.ndarray]:
    """Return means of a random forest, and quantiles of its out-of-bag errors around them."""
    model = with_regressor(RandomForestRegressor(200, oob_score=True, random_state=0)).fit(X, y)
    errors = np.quantile(y - model[-1].oob_prediction_, LEVELS)
    mean = model.predict(X_new)
    return mean, mean[:, None] + errors


def boosting(X, y, X_new) -> tuple[np.ndarray, np.ndarray]:
    """Return means and quantiles of gradient boosting, which needs a fit for each level; sorted, as they may cross."""
    settings = {"max_iter": 50, "random_state": 0}
    mean = with_regressor(HistGradientBoostingRegressor(random_state=0)).fit(X, y).predict(X_new)
    fits = [HistGradientBoostingRegressor(loss="quantile", quantile=q, **settings) for q in LEVELS]
    return mean, np.sort(np.column_stack([with_regressor(fit).fit(X, y).predict(X_new) for fit in fits]), axis=1)


def main(n: int = 1500, picture: Path | None = None) -> dict[str, dict[str, float]]:
    X, y = houses(n)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    regressor = kw.EmbeddingRegressor(random_state=0).fit(X_train, y_train)  # the table as it comes
    found = {
        "kernelwright": scores(y_test, regressor.predict(X_test), regressor.quantile(X_test, LEVELS)),
        "random forest": scores(y_test, *forest(X_train, y_train, X_test)),
        "gradient boosting": scores(y_test, *boosting(X_train, y_train, X_test)),
    }
    print(f"{len(y_train)} houses to train on, {len(y_test)} to test on; 90 % intervals\n")
    print(f"{'':<20}{'R^2':>6}{'mean error':>12}{'CRPS':>9}{'coverage':>10}{'width':>9}")
    for name, s in found.items():
        print(f"{name:<20}{s['R^2']:6.3f}{s['error']:12,.0f}{s['CRPS']:9,.0f}{s['coverage']:10.1%}{s['width']:9,.0f}")

    print("\nFive houses:")
    low, high = regressor.interval(X_test[:5], 0.9).T
    above = 1.0 - regressor.cdf(X_test[:5], 200_000)
    for row in range(5):
        print(
            f"  sold for {y_test[row]:9,.0f}: predicted {low[row]:9,.0f} to {high[row]:9,.0f}, "
            f"above 200,000 with probability {above[row]:.2f}"
        )
    scale = regressor.links_[0].scale
    print(
        f"\nPrices were learned by the map {scale.target_map.word!r}; weight of the direct estimate "
        f"{regressor.links_[0].direct:.2f}."
    )
    if picture is not None:
        fan = FanDisplay.from_estimator(regressor, X_train, "Gr_Liv_Area", target_name="price")
        fan.figure_.savefig(picture, dpi=150)
        print(f"Prices along the living area of a typical house: {picture}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--houses", type=int, default=1500)
    parser.add_argument("--picture", type=Path, default=None, help="where a fan of quantiles goes")
    arguments = parser.parse_args()
    main(arguments.houses, arguments.picture)
