"""Unfitted pipelines for tables: an encoder of columns, then a model or one of its rivals."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from kernelwright.estimators import EmbeddingClassifier, EmbeddingRegressor
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.preparing import with_days
from kernelwright.inputs.frames.words import MOST_NUMBERS, MOST_WORDS, SHARED_BY, TOO_COMMON

__all__ = [
    "make_encoder",
    "make_number_pipeline",
    "make_pipeline",
    "number_rival_makers",
    "rival_makers",
]

RIDGES = tuple(np.logspace(-2, 5, 15))


def make_encoder(columns: Collection[Column]) -> ColumnTransformer:
    """Make the encoder: impute numbers; one-hot encode categories, with rare and unknown ones in one column.

    A column of free text becomes a bag of words.
    """
    # Positions, not names: scikit-learn would search a list of all names for each of them.
    kinds = [column.kind for column in columns if column.used]
    plain = [place for place, kind in enumerate(kinds) if kind not in ("category", "words")]
    words = [place for place, kind in enumerate(kinds) if kind == "category"]
    texts = [place for place, kind in enumerate(kinds) if kind == "words"]
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    # OneHotEncoder treats a missing value as a category of its own; no imputer is needed.
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=2, max_categories=50, sparse_output=False
    )
    steps: list[tuple[str, Any, Any]] = [("numbers", fill, plain)] * bool(plain) + [
        ("categories", encode, words)
    ] * bool(words)
    steps += [(f"words of column {place}", _bag(), place) for place in texts]
    return ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def _bag() -> Pipeline:
    counter = TfidfVectorizer(min_df=SHARED_BY, max_df=TOO_COMMON, max_features=MOST_WORDS, sublinear_tf=True)
    return Pipeline([("count", counter), ("combine", TruncatedSVD(MOST_NUMBERS, random_state=0))])


def make_pipeline(columns: Collection[Column], seed: int = 0) -> Pipeline:
    """Make an unfitted pipeline for classes: an :class:`EmbeddingClassifier`, which takes the columns as they are."""
    return Pipeline([("classify", EmbeddingClassifier(random_state=seed, **_settled(columns)))])


def make_number_pipeline(columns: Collection[Column], seed: int = 0) -> Pipeline:
    """Make an unfitted pipeline for numbers: an :class:`EmbeddingRegressor`, which takes the columns as they are."""
    return Pipeline([("regress", EmbeddingRegressor(random_state=seed, **_settled(columns)))])


def _settled(columns: Collection[Column]) -> dict[str, Any]:
    """Return the parameters of an estimator for columns whose kinds were found before, in more rows perhaps."""
    used = [column for column in columns if column.used]
    categories = [column.name for column in used if column.kind == "category"]
    return {"categorical": categories or "from_dtype", "keep": [column.name for column in used]}


def rival_makers(columns: Collection[Column], seed: int = 0) -> dict[str, Callable[[], Any]]:
    """Return makers of the baselines: the majority class, logistic regression and a random forest, same encoder."""
    return {
        "majority class": lambda: DummyClassifier(strategy="prior"),
        "logistic regression": lambda: _after_encoder(
            columns, ("scale", StandardScaler()), ("classify", LogisticRegression(max_iter=1000))
        ),
        "random forest": lambda: _after_encoder(columns, ("classify", RandomForestClassifier(random_state=seed))),
    }


def number_rival_makers(columns: Collection[Column], seed: int = 0) -> dict[str, Callable[[], Any]]:
    """Return makers of the baselines for numbers: the mean, ridge regression, a forest and boosting, same encoder."""
    return {
        "training mean": DummyRegressor,
        "ridge regression": lambda: _after_encoder(columns, ("scale", StandardScaler()), ("regress", RidgeCV(RIDGES))),
        "random forest": lambda: _after_encoder(columns, ("regress", RandomForestRegressor(random_state=seed))),
        "gradient boosting": lambda: _after_encoder(
            columns, ("regress", HistGradientBoostingRegressor(random_state=seed))
        ),
    }


def _after_encoder(columns: Collection[Column], *steps: tuple[str, Any]) -> Pipeline:
    days = FunctionTransformer(with_days)
    return Pipeline([("dates", days), ("encode", make_encoder(columns)), *steps])
