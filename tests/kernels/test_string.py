"""Kernels on strings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.kernels import Spectrum
from tests import reference as naive

strings = st.lists(st.text(st.sampled_from("ABé\U0001f600"), max_size=8), min_size=1, max_size=5)


@pytest.mark.parametrize("normalize", [True, False])
@given(X=strings, Z=strings, k=st.integers(1, 4))
def test_values_equal_counts_of_common_substrings(normalize, X, Z, k):
    kernel = Spectrum(k=k, normalize=normalize)
    np.testing.assert_allclose(kernel(X, Z), naive.gram(naive.spectrum(k, normalize), X, Z), rtol=1e-12)
    np.testing.assert_allclose(kernel(X), naive.gram(naive.spectrum(k, normalize), X), rtol=1e-12)


def test_a_count_by_hand():
    # AB: 2 and 1, BA: 1 and 1; so 2*1 + 1*1
    assert Spectrum(k=2, normalize=False)(["ABAB"], ["BAB"]) == [[3.0]]


@pytest.mark.parametrize("normalize", [True, False])
def test_a_string_shorter_than_k_is_orthogonal_to_everything(normalize):
    K = Spectrum(k=3, normalize=normalize)(["AB", "ABCABC", ""])
    np.testing.assert_array_equal(K[[0, 2]], 0.0)
    np.testing.assert_array_equal(Spectrum(k=3, normalize=normalize).diag(["AB", ""]), 0.0)


def test_all_strings_may_be_too_short():
    np.testing.assert_array_equal(Spectrum(k=5)(["A", "B"], ["C"]), np.zeros((2, 1)))


@pytest.mark.parametrize(
    "points",
    [["AB", "BA"], ("AB", "BA"), np.array(["AB", "BA"]), np.array([["AB"], ["BA"]], dtype=object)],
    ids=["list", "tuple", "array", "column"],
)
def test_strings_come_as_a_list_or_a_single_column(points):
    np.testing.assert_allclose(Spectrum(k=1)(points), np.ones((2, 2)))


@pytest.mark.parametrize("points", [[1.0, 2.0], [["AB", "BA"]], [None]], ids=str)
def test_other_points_are_refused(points):
    with pytest.raises(ValueError, match="Spectrum takes a list or a single column of strings"):
        Spectrum()(points)


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_k_is_a_positive_whole_number(k):
    with pytest.raises(ValueError, match="The 'k' parameter of Spectrum must be a whole number of at least 1"):
        Spectrum(k=k)


def test_normalised_values_are_bounded_by_one():
    assert Spectrum().bounded
    assert float(Spectrum().sup_diag()) == 1.0
    assert not Spectrum(normalize=False).bounded
