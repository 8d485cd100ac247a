"""Mean targets of categories: taken where they help at new rows, and left where they do not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kernelwright import EmbeddingRegressor

N, WORDS, NOISE = 1000, 250, 0.5


def rows_with_effects(size):
    """Make rows of 250 words, each with an effect of this standard deviation, and a smooth curve of one number."""
    random = np.random.default_rng(0)
    effects, word, x = size * random.normal(size=WORDS), random.integers(WORDS, size=3 * N), random.normal(size=3 * N)
    y = np.sin(2.0 * x) + effects[word] + NOISE * random.normal(size=3 * N)
    return pd.DataFrame({"x": x, "word": [f"w{number}" for number in word]}), y


def means_of(model):
    return [column.means for column in model.scaler_.of_columns_ if column.means is not None]


@pytest.mark.slow
def test_effects_of_many_words_are_learned():
    """Compare with the least possible error of words known from four rows each, and with words that are not known."""
    X, y = rows_with_effects(1.0)
    model = EmbeddingRegressor(random_state=0).fit(X[:N], y[:N])
    assert means_of(model)
    error = np.sqrt(np.mean((model.predict(X[N:]) - y[N:]) ** 2))
    known_from_few = np.sqrt(NOISE**2 * (1.0 + WORDS / N))
    unknown = np.sqrt(NOISE**2 + 1.0)
    assert error < 0.5 * (known_from_few + unknown)
    assert error < 1.35 * known_from_few


@pytest.mark.slow
def test_words_without_effects_get_no_means():
    X, y = rows_with_effects(0.0)
    assert not means_of(EmbeddingRegressor(random_state=0).fit(X[:N], y[:N]))


@pytest.mark.slow
def test_few_rows_of_each_word_are_enough_if_the_effects_are_large():
    """Three rows of each word, with a ridge regression on indicators as the rival."""
    X, y = rows_with_effects(3.0)
    train, test = slice(0, 390), slice(N, None)
    model = EmbeddingRegressor(random_state=0).fit(X[train], y[train])
    assert means_of(model)
    columns = ColumnTransformer([("word", OneHotEncoder(handle_unknown="ignore"), ["word"])], remainder="passthrough")
    rival = make_pipeline(columns, RidgeCV(np.logspace(-3, 3, 13))).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > rival.score(X[test], y[test]) - 0.1
