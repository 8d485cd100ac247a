"""Get probabilities from a mixed table: numbers, categories and missing values, passed as they come.

    python examples/tabular.py

The table is synthetic, so the true probabilities are known: customers of a gym, and whether they leave. So, unlike with
real data, the predicted probabilities can be compared with the true ones.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import kernelwright as kw


def customers(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return a table with missing values, whether each customer left, and the true probability of it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(16, 80, n),
            "fee": rng.lognormal(3.3, 0.5, n).round(2),
            "visits": rng.poisson(rng.gamma(2.0, 2.0, n)),
            "distance": rng.exponential(4.0, n).round(1),
            "contract": rng.choice(["month", "year", "trial"], n, p=[0.5, 0.35, 0.15]),
            "favourite": rng.choice(["weights", "classes", "pool", "sauna"], n),
        }
    )
    log_odds = (
        1.0
        - 2.5 * (frame["visits"] >= 3)  # a step: three visits a month
        + 0.15 * frame["distance"]
        + 1.5 * np.sin(frame["age"] / 10.0)
        + frame["contract"].map({"month": 0.0, "year": -1.5, "trial": 1.5})
    )
    probability = 1.0 / (1.0 + np.exp(-log_odds))
    left = np.where(rng.random(n) < probability, "left", "stayed")
    for column in ("distance", "fee"):
        frame.loc[rng.random(n) < 0.05, column] = np.nan
    return frame, left, probability.to_numpy()


def with_classifier(classifier) -> Pipeline:
    """Return a pipeline for other methods: impute (and mark) missing values, one-hot encode categories, classify."""
    columns = make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude="number")),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    return make_pipeline(columns, classifier)


def main(n: int = 2000, output: Path | None = None) -> dict[str, dict[str, float]]:
    X, y, truth = customers(n)
    X_train, X_test, y_train, y_test, _, truth = train_test_split(X, y, truth, test_size=0.5, random_state=0)
    methods = {
        "kernelwright": kw.EmbeddingClassifier(random_state=0),
        "random forest": with_classifier(RandomForestClassifier(200, random_state=0)),
        "logistic regression": with_classifier(make_pipeline(StandardScaler(), LogisticRegression())),
    }
    scores = {"the true probabilities": _scores(y_test, 1.0 - truth, truth)}
    for name, method in methods.items():
        method.fit(X_train, y_train)
        scores[name] = _scores(y_test, method.predict_proba(X_test)[:, 1], truth)

    print(f"{len(X_train)} customers to train on, {len(X_test)} to test on\n")
    print(f"{'':<24}accuracy  log loss  mean error of the probability")
    for name, score in scores.items():
        print(f"{name:<24}{score['accuracy']:8.1%}{score['log loss']:10.3f}{score['error']:12.3f}")

    model = methods["kernelwright"]
    print(f"\nWhat it looks at:\n{_first_lines(model.importance(X_test, y_test), 6)}")
    if output is not None:
        kw.save(model, output)
        same = np.array_equal(kw.load(output).predict_proba(X_test), model.predict_proba(X_test))
        print(f"\nThe model is saved in {output}; predictions after loading are {'equal' if same else 'different'}.")
    return scores


def _scores(y: np.ndarray, stays: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Score probabilities of staying, and compare them with the true ones."""
    answers = np.where(stays > 0.5, "stayed", "left")
    return {
        "accuracy": float((answers == y).mean()),
        "log loss": log_loss(y == "stayed", stays),
        "error": float(np.abs(stays - (1.0 - truth)).mean()),
    }


def _first_lines(table, n: int) -> str:
    return "\n".join(str(table).splitlines()[: n + 1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=Path("customers.kw"), help="where the model goes")
    arguments = parser.parse_args()
    main(arguments.rows, arguments.output)
