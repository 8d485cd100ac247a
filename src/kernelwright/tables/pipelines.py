"""Unfitted pipelines for tables: an encoder of columns, then a model or one of its rivals."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelwright.estimators import EmbeddingClassifier, EmbeddingRegressor
from kernelwright.tables.columns import Column

__all__ = ["make_encoder", "make_number_pipeline", "make_pipeline", "number_rival_makers", "rival_makers"]

RIDGES = tuple(np.logspace(-2, 5, 15))


def make_encoder(columns: Collection[Column]) -> ColumnTransformer:
    """Make the encoder: impute numbers; one-hot encode categories, with rare and unknown ones in one column."""
    # Positions, not names: scikit-learn would search a list of all names for each of them.
    kinds = [column.kind for column in columns if column.used]
    plain = [place for place, kind in enumerate(kinds) if kind != "category"]
    words = [place for place, kind in enumerate(kinds) if kind == "category"]
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    # OneHotEncoder treats a missing value as a category of its own; no imputer is needed.
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=2, max_categories=50, sparse_output=False
    )
    steps = [("numbers", fill, plain)] * bool(plain) + [("categories", encode, words)] * bool(words)
    return ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def make_pipeline(columns: Collection[Column], seed: int = 0) -> Pipeline:
    """Make an unfitted pipeline for classes: the encoder, then an :class:`EmbeddingClassifier`."""
    return _after_encoder(columns, ("classify", EmbeddingClassifier(random_state=seed)))


def make_number_pipeline(columns: Collection[Column], seed: int = 0) -> Pipeline:
    """Make an unfitted pipeline for numbers: the encoder, then an :class:`EmbeddingRegressor`."""
    return _after_encoder(columns, ("regress", EmbeddingRegressor(random_state=seed)))


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
    return Pipeline([("encode", make_encoder(columns)), *steps])
