"""The methods for tables as people have them: frames with text, gaps and dates, as ``pandas.read_csv`` gives them.

Each method gets the frame in the form that its authors ask for, and predicts probabilities of classes (if targets are
whole numbers) or a forecast of numbers. Packages are imported when a method is made.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from benchmarks import number_peers, peers
from benchmarks.forecasts import Forecast, ModelForecast, PointForecast, QuantileForecast, ResidualForecast, levels
from benchmarks.number_peers import BOOSTED_LEVELS
from benchmarks.peers import Method

FOLDS = 5  # whose residuals are the distribution of a method that predicts points
MOST_CATEGORIES = 254  # that histogram boosting takes, with one for the others
GAP, OTHER = "missing", "other"

Answer = np.ndarray | Forecast  # probabilities, or what is said about numbers
Prepare = Callable[[pd.DataFrame], pd.DataFrame]


def has_classes(y: np.ndarray) -> bool:
    """Say whether targets are classes, numbered from 0; numbers to predict are floats."""
    return y.dtype.kind in "iu"


class TableModel(ABC):
    """A method for both kinds of targets."""

    model: Any

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "TableModel":
        """Learn how frames are prepared, and fit."""
        self.classes, self.X, self.y = has_classes(y), X, y
        self.prepare = self.preparing(X)
        self.model = self._made().fit(self.prepare(X), y)
        return self

    def answer(self, X: pd.DataFrame) -> Answer:
        """Predict."""
        rows = self.prepare(X)
        return self.model.predict_proba(rows) if self.classes else self.forecast(rows)

    def forecast(self, rows: Any) -> Forecast:
        """Predict numbers."""
        return PointForecast(np.ravel(self.model.predict(rows)).astype(float))

    def with_distribution(self, forecast: Forecast) -> Forecast:
        """Return the forecast with what costs further fits, which are not timed."""
        return forecast

    def preparing(self, X: pd.DataFrame) -> Prepare:
        """Return what is done to frames like the training frame."""
        return lambda frame: frame

    @abstractmethod
    def classifier(self) -> Any:
        """Make a model for classes."""

    @abstractmethod
    def regressor(self) -> Any:
        """Make a model for numbers."""

    def _made(self) -> Any:
        return self.classifier() if self.classes else self.regressor()


class WithResiduals(TableModel):
    """A method that predicts points: around each lie the residuals of all training rows, in folds that left them out.

    The folds cost five more fits, which are not timed.
    """

    def with_distribution(self, forecast: Forecast) -> Forecast:
        rows, residuals = self.prepare(self.X), np.empty(len(self.y))
        for fitted, held in KFold(FOLDS, shuffle=True, random_state=0).split(rows):
            model = clone(self.model).fit(rows.iloc[fitted], self.y[fitted])
            residuals[held] = self.y[held] - model.predict(rows.iloc[held])
        return ResidualForecast(forecast.mean, residuals)


class Ours(TableModel):
    """The defaults of this library."""

    def forecast(self, rows: Any) -> Forecast:
        return ModelForecast(self.model, rows)

    def classifier(self) -> Any:
        from kernelwright import EmbeddingClassifier

        return EmbeddingClassifier(random_state=0)

    def regressor(self) -> Any:
        from kernelwright import EmbeddingRegressor

        return EmbeddingRegressor(random_state=0)


class OneHot(Ours):
    """The defaults of this library after one-hot encoding, medians and indicators of gaps."""

    def preparing(self, X: pd.DataFrame) -> Prepare:
        from kernelwright.inputs.frames.preparing import prepare, with_days
        from kernelwright.tables import as_table, describe_columns
        from kernelwright.tables.pipelines import make_encoder

        columns = describe_columns(as_table(X))

        def read(frame: pd.DataFrame) -> Any:
            return with_days(prepare(columns, frame)[0])

        encoder = make_encoder(columns).fit(read(X))
        return lambda frame: encoder.transform(read(frame))


class CatBoost(TableModel):
    """CatBoost with its own treatment of categories and gaps."""

    def preparing(self, X: pd.DataFrame) -> Prepare:
        self.words = words(X)

        def said(frame: pd.DataFrame) -> pd.DataFrame:
            return frame.assign(**{name: frame[name].fillna(GAP).astype(str) for name in self.words})

        return said

    def classifier(self) -> Any:
        from catboost import CatBoostClassifier

        return CatBoostClassifier(**self.settings)

    def regressor(self) -> Any:
        from catboost import CatBoostRegressor

        return CatBoostRegressor(**self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """What is the same for all models."""
        return {
            "cat_features": self.words,
            "verbose": 0,
            "random_state": 0,
            "allow_writing_files": False,
            "thread_count": 1,
        }


class QuantileCatBoost(CatBoost):
    """CatBoost with the pinball losses of all levels together."""

    def regressor(self) -> Any:
        from catboost import CatBoostRegressor

        alphas = ",".join(f"{level:.8f}" for level in levels(BOOSTED_LEVELS))
        return CatBoostRegressor(loss_function=f"MultiQuantile:alpha={alphas}", **self.settings)

    def forecast(self, rows: Any) -> Forecast:
        quantiles = np.asarray(self.model.predict(rows))
        return QuantileForecast(quantiles.mean(1), quantiles)


class LightGBM(WithResiduals):
    """LightGBM, which takes columns of pandas' category type."""

    def preparing(self, X: pd.DataFrame) -> Prepare:
        return as_categories(X)

    def classifier(self) -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(verbose=-1, random_state=0, n_jobs=1)

    def regressor(self) -> Any:
        from lightgbm import LGBMRegressor

        return LGBMRegressor(verbose=-1, random_state=0, n_jobs=1)


class HistogramBoosting(WithResiduals):
    """Histogram boosting of scikit-learn, which takes up to 255 categories a column."""

    def preparing(self, X: pd.DataFrame) -> Prepare:
        return as_categories(X, MOST_CATEGORIES)

    def classifier(self) -> Any:
        return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)

    def regressor(self) -> Any:
        return HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)


class Network(TableModel):
    """A network of pytabkit, which takes categories, and numbers without gaps."""

    kind: str

    def preparing(self, X: pd.DataFrame) -> Prepare:
        categories, numbers = as_categories(X), X.select_dtypes("number")
        gaps = [name for name in numbers if numbers[name].isna().any()]
        medians = numbers.median().fillna(0.0)

        def filled(frame: pd.DataFrame) -> pd.DataFrame:
            marks = {f"{name} is missing": frame[name].isna().astype(float) for name in gaps}
            return categories(frame).assign(**{n: frame[n].fillna(medians[n]).astype(float) for n in numbers}, **marks)

        return filled

    def classifier(self) -> Any:
        return self._of("Classifier")

    def regressor(self) -> Any:
        return self._of("Regressor")

    def _of(self, task: str) -> Any:
        import pytabkit

        return getattr(pytabkit, f"{self.kind}_{task}")(device="cpu", random_state=0, n_threads=1, verbosity=0)


class RealMLP(Network):
    """RealMLP with its tuned defaults."""

    kind = "RealMLP_TD"


class TabM(Network):
    """TabM with its defaults."""

    kind = "TabM_D"


def words(X: pd.DataFrame) -> list[str]:
    """List the columns that are not numbers."""
    return list(X.select_dtypes(exclude="number"))


def as_categories(X: pd.DataFrame, most: int | None = None) -> Prepare:
    """Give columns of text the categories of the training frame, at most so many; the others share one word."""
    known = {name: list(X[name].dropna().value_counts().index[:most]) for name in words(X)}

    def column(given: pd.Series) -> pd.Series:
        own = known[str(given.name)]
        merged = most is not None and len(own) == most
        kept = given.where(given.isin(own) | given.isna(), OTHER if merged else None)
        return kept.astype(pd.CategoricalDtype([*own, OTHER] if merged else own))

    return lambda frame: frame.assign(**{name: column(frame[name]) for name in known})


def loaded(kind: Callable[[], TableModel], package: str = "") -> Callable[[], TableModel]:
    """Return a maker that first imports the package; of ours also the compiled loops, which are not part of a fit."""

    def made() -> TableModel:
        if package:
            importlib.import_module(package)
        else:
            peers.load_compiled_loops()
            number_peers.load_compiled_loops()
        return kind()

    return made


METHODS: dict[str, Method] = {
    "kernelwright": Method(loaded(Ours), "kernelwright", "the frame as it is"),
    "kernelwright, one-hot": Method(
        loaded(OneHot),
        "kernelwright",
        "what `kernelwright.tables` makes of the columns, then a column for each of at most 50 categories, medians in "
        "place of gaps, and a column that marks them",
    ),
    "CatBoost": Method(
        loaded(CatBoost, "catboost"),
        "catboost",
        'text as `cat_features`, with the word "missing" for gaps; squared error',
    ),
    "CatBoost, quantiles": Method(
        loaded(QuantileCatBoost, "catboost"),
        "catboost",
        f"the same, with MultiQuantile at {BOOSTED_LEVELS} levels (k - 1/2) / {BOOSTED_LEVELS}; predicts their mean",
        quick=False,
        usual=False,
    ),
    "LightGBM": Method(loaded(LightGBM, "lightgbm"), "lightgbm", "text as pandas' categories"),
    "histogram boosting": Method(
        HistogramBoosting,
        "scikit-learn",
        f'`categorical_features="from_dtype"`, text as pandas\' categories: the {MOST_CATEGORIES} most frequent, and '
        "one for the others",
    ),
    "RealMLP": Method(
        loaded(RealMLP, "pytabkit"),
        "pytabkit",
        "RealMLP-TD, text as pandas' categories, medians in place of missing numbers and columns that mark them",
        quick=False,
        usual=False,
    ),
    "TabM": Method(loaded(TabM, "pytabkit"), "pytabkit", "TabM-D, the same", quick=False, usual=False),
}
NUMBERS_ONLY = ("CatBoost, quantiles",)  # for classes it would be CatBoost again
