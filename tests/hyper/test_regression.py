"""Tests that all regressions over pairs share."""

import pytest
import torch

from kernelwright.hyper.regression import FOLDS, folds_of, power_of_m


@pytest.mark.parametrize(("n_points", "n_folds"), [(20, 4), (21, 4), (3, 4), (9, 2)])
def test_folds_are_of_one_size_and_none_is_empty(n_points, n_folds):
    folds = folds_of(n_points, torch.Generator().manual_seed(0), n_folds)
    sizes = torch.bincount(folds)
    assert len(folds) == n_points
    assert len(sizes) == min(n_folds, n_points)
    assert int(sizes.max() - sizes.min()) <= 1


def test_folds_are_decided_by_the_generator():
    first, second, third = (folds_of(40, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert int(first.max()) + 1 == FOLDS


@pytest.mark.parametrize(
    ("value", "expected"), [(0.3, 0.3), (2, 2.0), ("m^-0.5", 0.1), ("m^2", 1e4), (" m ^ -1 ", 0.01), ("m^-.5", 0.1)]
)
def test_powers_of_the_number_of_points(value, expected):
    assert power_of_m(value, 100, "ridge") == pytest.approx(expected)


@pytest.mark.parametrize("value", ["n^-0.5", "m", "m^", "m^-", "auto"])
def test_what_is_no_power_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"The 'ridge' parameter must be a positive number, or a power"):
        power_of_m(value, 100, "ridge")
