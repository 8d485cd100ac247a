"""Ranking of features by length scales."""

import numpy as np
import pandas as pd
import pytest

from kernelwright import EmbeddingClassifier
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian, Laplace, Spectrum
from kernelwright.kernels.relevance import rank_features

RNG = np.random.default_rng(0)


def ranked(kernel, d=3, spread=None):
    return rank_features(kernel, list("abc")[:d], np.arange(d), np.ones(d) if spread is None else np.array(spread))


def test_shares_are_inverse_length_scales():
    rows = ranked(Gaussian([1.0, 4.0, 2.0])).rows
    assert [row.name for row in rows] == ["a", "c", "b"]
    assert [row.share for row in rows] == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert [row.lengthscale for row in rows] == pytest.approx([1.0, 2.0, 4.0])


def test_a_change_of_units_changes_no_share():
    """Centimetres or metres: the length scale follows the spread."""
    in_metres, in_centimetres = ranked(Gaussian([1.0, 4.0, 2.0])), ranked(Gaussian([100.0, 4.0, 2.0]), 3, [100, 1, 1])
    assert [row.share for row in in_metres.rows] == pytest.approx([row.share for row in in_centimetres.rows])


def test_parts_with_a_common_length_scale_say_nothing():
    alone, mixed = ranked(Gaussian([1.0, 4.0, 2.0])), ranked(Gaussian([1.0, 4.0, 2.0]) + 2.0 * Laplace(7.0))
    assert alone == mixed


def test_scales_at_a_bound_are_named():
    rows = {row.name: row.at_bound for row in ranked(Gaussian([1e-5, 1e5, 1.0])).rows}
    assert rows == {"a": "lower", "b": "upper", "c": ""}


def test_the_table_prints():
    lines = str(ranked(Gaussian([1.0, 1e5, 2.0]))).splitlines()
    assert lines[0].split() == ["feature", "share", "length", "scale"]
    assert lines[1].split() == ["a", "66.7%", "1"]
    assert lines[3].endswith("at its upper bound")


def test_a_classifier_ranks_named_columns_and_leaves_constants_last():
    X = pd.DataFrame(RNG.normal(size=(300, 4)), columns=["noise", "signal", "weak", "other"]).assign(constant=1.0)
    y = X["signal"] + 0.3 * X["weak"] > 0
    table = EmbeddingClassifier(random_state=0).fit(X, y).relevance()
    assert table.rows[0].name == "signal"
    assert table.rows[1].name == "weak"
    assert (table.rows[-1].name, table.rows[-1].share) == ("constant", 0.0)
    assert sum(row.share for row in table.rows) == pytest.approx(1.0)


def test_a_classifier_warns_of_a_scale_at_its_bound():
    X, y = RNG.normal(size=(60, 2)), np.arange(60) % 2
    model = EmbeddingClassifier(Gaussian([1.0, 1e5]), learn=None, ridge=0.1).fit(X, y)
    with pytest.warns(UserWarning, match=r"1 length scales have reached a learning bound: .*'x1' \(upper\)"):
        model.relevance()


def test_feature_maps_have_length_scales_too():
    X, y = RNG.normal(size=(60, 2)), np.arange(60) % 2
    model = EmbeddingClassifier(features=RandomFourier(20, lengthscale=[1.0, 3.0]), learn=None).fit(X, y)
    assert [row.share for row in model.relevance().rows] == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize("kernel", [Gaussian(), Spectrum(2)], ids=["one scale", "strings"])
def test_a_kernel_without_them_is_refused(kernel):
    X = ["ab", "ba", "bb", "aa"] if isinstance(kernel, Spectrum) else RNG.normal(size=(4, 2))
    model = EmbeddingClassifier(kernel, learn=None).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="a length scale for each feature"):
        model.relevance()
