"""The span of landmarks."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.errors import PrecisionWarning
from kernelwright.inputs.labels import one_hot
from kernelwright.solvers import Exact, Landmarks, landmarks
from kernelwright.solvers.base import usual_landmarks
from tests.solvers.disc import N, data, outputs, solve


def test_almost_all_rows_as_landmarks_are_almost_the_exact_solution():
    expected, found = solve(Exact()), solve(Landmarks(N - 1))
    assert len(found.left_out.rows) == pytest.approx(N // 20, abs=2)  # these are held out, not landmarks
    np.testing.assert_allclose(outputs(found), outputs(expected), atol=0.25)
    assert np.abs(outputs(found) - outputs(expected)).mean() < 0.01


@pytest.mark.parametrize(("shift", "words"), [(300.0, "change outputs by"), (1e5, "off by"), (1.7e9, "off by")])
def test_landmarks_notice_what_single_precision_cannot_hold(shift, words, monkeypatch):
    """Time stamps, say: seconds since 1970 of single precision are minutes apart."""
    shifted = replace(data(), points=data().points + shift)
    expected = solve(Landmarks(60, "double"), shifted)
    with pytest.warns(PrecisionWarning, match=f"single precision (are )?{words}"):
        asked = solve(Landmarks(60, "single"), shifted)
    monkeypatch.setattr("kernelwright.embedding.landmarks.DOUBLE_UP_TO", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asked for single precision: nothing to say
        unasked = solve(Landmarks(60), shifted)
    for found in (asked, unasked):
        assert found.precision == "double"
        assert torch.equal(found.coefficients, expected.coefficients)


def test_landmarks_are_drawn_where_classes_meet():
    """Rows on the border of a disc are missed most: more landmarks there than its share of the rows."""
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(4000, 2)))
    radius = points.norm(dim=1)
    rows = TrainingSet.of(points, one_hot((radius > 1.1).long().numpy(), 2))
    found = solve(Landmarks(120), rows, 1e-3)
    assert found.points.unique(dim=0).shape == (120, 2)
    near = [float(((r - 1.1).abs() < 0.15).double().mean()) for r in (found.points.norm(dim=1), radius)]
    assert near[0] > 1.5 * near[1]


@pytest.mark.parametrize("size", [1, 2, 3, 390, 399])
def test_any_number_of_landmarks_will_do(size):
    found = solve(Landmarks(size), ridge=1e-2)
    assert len(found.points) == min(size, len(found.fitted_rows))
    assert bool(found.coefficients.isfinite().all())


def test_landmarks_in_single_precision_are_close_to_those_in_double():
    expected, found = (solve(Landmarks(60, p), ridge=1e-2) for p in ("double", "single"))
    assert (expected.precision, found.precision) == ("double", "single")
    assert np.abs(outputs(found) - outputs(expected)).mean() < 0.01  # conjugate gradients stop earlier


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # double does not get there either
def test_landmarks_fall_back_to_double_and_say_so(monkeypatch):
    monkeypatch.setattr("kernelwright.embedding.landmarks.MOST_STEPS", 1)
    with pytest.warns(PrecisionWarning, match=r"Conjugate gradients in single precision left .* double"):
        found = solve(Landmarks(60, "single"))
    expected = solve(Landmarks(60, "double"))
    assert found.precision == "double"
    assert torch.equal(found.coefficients, expected.coefficients)


def test_all_rows_as_landmarks_are_the_exact_solution():
    expected, found = solve(Exact()), solve(Landmarks(N + 5))
    assert torch.equal(found.coefficients, expected.coefficients)
    assert len(found.left_out.rows) == N


@pytest.mark.parametrize(("given", "n_rows", "expected"), [(60, 400, 60), (500, 400, 400), (None, 400, 400)])
def test_there_are_no_more_landmarks_than_rows(given, n_rows, expected):
    assert Landmarks(given).size(n_rows) == expected


def test_memory_is_that_of_the_kept_values_in_their_precision(monkeypatch):
    monkeypatch.setattr(landmarks, "free_memory", lambda: 1e18)
    small, large = Landmarks(100), Landmarks(1000)
    others = 4 * 8 * min(1000 * 100, landmarks.LANDMARK_KERNEL_VALUES) + 6 * 8 * 100**2
    assert small.n_bytes(1000) == 8 * 1000 * 100 + others  # in double
    others = 4 * 8 * landmarks.LANDMARK_KERNEL_VALUES + 6 * 8 * 1000**2
    assert large.n_bytes(10**6) == 4 * 10**6 * 1000 + others  # in single
    monkeypatch.setattr(landmarks, "free_memory", lambda: 1e9)
    assert large.n_bytes(10**6) == others  # made anew at every step


@pytest.mark.parametrize(
    ("n_rows", "expected"), [(100, 1000), (4000, 2000), (8000, 4000), (80_000, 4000), (100_000, 5000), (10**7, 7500)]
)
def test_the_usual_number_of_landmarks(n_rows, expected, monkeypatch):
    monkeypatch.setattr("kernelwright.solvers.base.free_memory", lambda: 1e12)
    assert usual_landmarks(n_rows) == expected
    monkeypatch.setattr("kernelwright.solvers.base.free_memory", lambda: 1e3)
    assert 1 <= usual_landmarks(n_rows) < 10
