"""Distances and their weighted sums against SciPy and plain loops; the compiled loops against torch."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from kernelwright.numerics import distances
from kernelwright.numerics.distances import (
    cubed_sum,
    l1,
    l1_weighted_sums,
    median_distance,
    median_distance_of,
    squared_euclidean,
    squared_outer_sums,
    squared_weighted_sums,
)
from kernelwright.numerics.products import Outer
from tests import reference as naive

NEVER, ALWAYS = 10**12, 0
either_way = pytest.mark.parametrize("compiled_from", [ALWAYS, NEVER], ids=["compiled", "plain"])


def points(n: int, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)))


coordinates = arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=st.integers(-50, 50).map(float))


# Euclidean ---------------------------------------------------------------------------------------------------


@given(X=coordinates, Z=coordinates)
def test_squared_euclidean_equals_scipy(X, Z):
    X, Z = torch.from_numpy(X), torch.from_numpy(Z)
    np.testing.assert_allclose(squared_euclidean(X), cdist(X, X, "sqeuclidean"), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(squared_euclidean(X, Z), cdist(X, Z, "sqeuclidean"), rtol=1e-12, atol=1e-10)


def test_squared_euclidean_far_from_the_origin():
    X = points(20) + 1e6
    np.testing.assert_allclose(squared_euclidean(X), cdist(X, X, "sqeuclidean"), rtol=1e-8)


def test_one_far_point_does_not_spoil_the_distances_between_the_others():
    X = torch.cat([points(20), torch.full((1, 3), 1e9, dtype=torch.float64)])
    expected = cdist(X, X, "sqeuclidean")
    np.testing.assert_allclose(squared_euclidean(X)[:20, :20], expected[:20, :20], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(squared_euclidean(X, X[:20])[:20], expected[:20, :20], rtol=1e-6, atol=1e-9)


def test_squared_euclidean_is_never_negative_and_zero_on_the_diagonal():
    X = points(1, 30).repeat(40, 1) + 1e-9 * points(40, 30, seed=1)
    D = squared_euclidean(X)
    assert float(D.min()) >= 0.0
    assert torch.equal(D.diagonal(), torch.zeros(40, dtype=torch.float64))
    assert float(squared_euclidean(X, X).min()) >= 0.0


def test_squared_euclidean_leaves_its_input_alone():
    X, Z = points(5), points(4, seed=1)
    copies = X.clone(), Z.clone()
    squared_euclidean(X), squared_euclidean(X, Z)
    assert torch.equal(X, copies[0])
    assert torch.equal(Z, copies[1])


def test_squared_euclidean_has_the_gradient_of_its_formula():
    X = points(6).requires_grad_()
    W = points(6, 6, seed=2)
    (found,) = torch.autograd.grad((W * squared_euclidean(X)).sum(), X)
    (expected,) = torch.autograd.grad((W * ((X[:, None] - X) ** 2).sum(-1)).sum(), X)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_squared_weighted_sums_equal_a_naive_sum(shift):
    X, W = points(7) + shift, points(7, 7, seed=1)
    expected = torch.einsum("ij,ijd->d", W, (X[:, None] - X) ** 2)
    torch.testing.assert_close(squared_weighted_sums(X, W), expected, rtol=1e-9, atol=1e-9)


# L1 ----------------------------------------------------------------------------------------------------------


@either_way
@given(X=coordinates, Z=coordinates)
def test_l1_equals_scipy(compiled_from, monkeypatch, X, Z):
    monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
    X, Z = torch.from_numpy(X), torch.from_numpy(Z)
    np.testing.assert_allclose(l1(X), cdist(X, X, "cityblock"), rtol=1e-13)
    np.testing.assert_allclose(l1(X, Z), cdist(X, Z, "cityblock"), rtol=1e-13)


@either_way
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130])  # around the sides of the loop's tiles
def test_l1_of_all_sizes(compiled_from, n, monkeypatch):
    monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
    X, Z = points(n), points(70, seed=1)
    np.testing.assert_allclose(l1(X), cdist(X, X, "cityblock"), rtol=1e-12)
    np.testing.assert_allclose(l1(X, Z), cdist(X, Z, "cityblock"), rtol=1e-12)


@either_way
@pytest.mark.parametrize("n", [1, 2, 64, 65, 130])
def test_l1_weighted_sums_equal_a_naive_sum(compiled_from, n, monkeypatch):
    monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
    X, W, K = points(n), points(n, n, seed=1), points(n, n, seed=2)
    K = K + K.T
    sums, total = l1_weighted_sums(X, W, K)
    expected = torch.einsum("ij,ij,ijd->d", W, K, (X[:, None] - X).abs())
    torch.testing.assert_close(sums, expected, rtol=1e-10, atol=1e-10)
    assert float(total) == pytest.approx(float((W * K).sum()), rel=1e-10)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_compiled_loops_equal_the_plain_ones_in_any_number_of_threads(n_threads, monkeypatch):
    X, Z, W, K = points(130), points(40, seed=3), points(130, 130, seed=1), points(130, 130, seed=2)
    K = K + K.T
    results = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_threads)
    for compiled_from in (ALWAYS, NEVER):
        monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
        results.append([l1(X), l1(X, Z), *l1_weighted_sums(X, W, K)])
    for compiled, plain in zip(*results, strict=True):
        torch.testing.assert_close(compiled, plain, rtol=1e-12, atol=1e-10)


def test_the_compiled_loops_are_used_where_they_pay(monkeypatch):
    calls = []
    monkeypatch.setattr(distances, "_compile", lambda: calls.append(1))
    monkeypatch.setattr(distances, "COMPILED_FROM", 5 * 5 * 3)
    l1(points(5))
    assert len(calls) == 1
    l1(points(4))
    assert len(calls) == 1


@either_way
def test_l1_of_views_that_are_not_contiguous(compiled_from, monkeypatch):
    monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
    X = points(3, 8).T[::2]
    np.testing.assert_allclose(l1(X), cdist(X, X, "cityblock"), rtol=1e-12)
    np.testing.assert_allclose(l1(X, X[:2]), cdist(X, X[:2], "cityblock"), rtol=1e-12)


@either_way
def test_l1_of_single_precision_points(compiled_from, monkeypatch):
    monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
    X = points(5).to(torch.float32)
    np.testing.assert_allclose(l1(X), cdist(X, X, "cityblock"), rtol=1e-5)
    np.testing.assert_allclose(l1(X, X[:2]), cdist(X, X[:2], "cityblock"), rtol=1e-5)


@either_way
def test_l1_has_the_gradient_of_its_formula(compiled_from, monkeypatch):
    monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
    X, W = points(6).requires_grad_(), points(6, 6, seed=2)
    (found,) = torch.autograd.grad((W * l1(X)).sum(), X)
    (expected,) = torch.autograd.grad((W * (X[:, None] - X).abs().sum(-1)).sum(), X)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


# The median --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8])
def test_median_distance_is_the_lower_median(n):
    X = points(n)
    expected = naive.lower_median_of_distances(X.numpy(), 2)
    assert median_distance(squared_euclidean(X).sqrt()) == pytest.approx(expected)


@given(X=coordinates, seed=st.integers(0, 99))
def test_weighted_median_is_the_median_of_repeated_points(X, seed):
    weights = np.random.default_rng(seed).integers(1, 4, len(X))
    found = median_distance(l1(torch.from_numpy(X)), torch.from_numpy(weights.astype(float)))
    assert found == pytest.approx(naive.lower_median_of_distances(np.repeat(X, weights, axis=0), 1))


@pytest.mark.parametrize("n", [1, 5])
def test_median_of_no_positive_distance_is_one(n):
    assert median_distance(torch.zeros(n, n, dtype=torch.float64)) == 1.0


@pytest.mark.parametrize("work", [0, 10**9])
def test_cubed_sum_equals_exponentials(work):
    random = np.random.default_rng(0)
    lengths = torch.from_numpy(random.uniform(0, 5, (7, 11)))
    M = torch.from_numpy(random.normal(size=(4, 7, 11)))
    # f_s = exp(-n_s l) with n_0 = 1 and n_(s+1) = 3 n_s + 1
    expected = sum(torch.exp(-n * lengths) * product for n, product in zip((1, 4, 13, 40), M, strict=True))
    out = torch.empty(7, 11, dtype=torch.float64)
    assert torch.allclose(cubed_sum(torch.exp(-lengths), M, out, work=work), expected, rtol=1e-12)


# Very large and very small numbers -----------------------------------------------------------------------------


def test_a_point_too_far_to_be_squared_is_far_and_leaves_the_other_distances_alone():
    X = points(6)
    far = X.clone()
    far[0] = 1e300
    for D in (squared_euclidean(far), squared_euclidean(far, far.clone())):
        assert bool(torch.isfinite(D).all())
        assert float(D[0, 1:].min()) > 1e280
        np.testing.assert_allclose(D[1:, 1:], cdist(X, X, "sqeuclidean")[1:, 1:], atol=1e-12)


@pytest.mark.parametrize("far", [1e12, 1e200])
def test_weighted_sums_keep_their_digits_beside_a_far_point(far):
    X = points(6)
    X[0] = far
    W = torch.ones(6, 6, dtype=torch.float64)
    W[0], W[:, 0] = 0.0, 0.0  # a kernel says nothing of so far a point
    expected = [sum(float((X[i, d] - X[j, d]) ** 2) for i in range(1, 6) for j in range(1, 6)) for d in range(3)]
    np.testing.assert_allclose(squared_weighted_sums(X, W), expected, rtol=1e-10)
    thin = Outer(W[:, 1:2], W[:, 1:2])  # the same matrix
    np.testing.assert_allclose(squared_outer_sums(X, thin, torch.ones_like(W)), expected, rtol=1e-10)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1.0, 1e200, 1e307])
def test_the_median_distance_is_found_on_any_scale(size):
    X = points(9)
    expected = median_distance(torch.from_numpy(cdist(X, X)))
    found = median_distance_of(X * size, lambda Z: squared_euclidean(Z).sqrt())
    assert found / size == pytest.approx(expected, rel=1e-9 if size > 1e-300 else 1e-3)


def test_the_median_distance_is_not_that_of_an_outlier():
    X = points(9)
    X[0] = 1e250
    assert median_distance_of(X, l1) < 20.0


def test_the_median_distance_of_equal_points_is_one():
    assert median_distance_of(torch.ones(4, 2, dtype=torch.float64), l1) == 1.0


@pytest.mark.parametrize("n", [1, 5, 300])
def test_sums_weighted_by_an_outer_product_are_those_of_the_whole_matrix(n):
    rng = np.random.default_rng(n)
    X, B, C, S = (torch.from_numpy(rng.normal(size=shape)) for shape in ((n, 3), (n, 2), (n, 2), (n, n)))
    S = S + S.T
    W = (B @ C.T * S).numpy()
    expected = [np.sum(W * np.subtract.outer(x, x) ** 2) for x in X.numpy().T]
    np.testing.assert_allclose(squared_outer_sums(X, Outer(B, C), S), expected, rtol=1e-9, atol=1e-9)


def test_loops_are_compiled_also_where_nothing_can_be_cached(monkeypatch):
    numba = pytest.importorskip("numba")
    compiled = numba.njit

    def without_a_place(signature, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return compiled(signature, **options)

    monkeypatch.setattr(numba, "njit", without_a_place)
    found = distances._compile.__wrapped__()
    D = np.empty((2, 2))
    found["rectangle"](0, 2, np.zeros((2, 3)), np.ones((2, 3)), D)
    assert D.tolist() == [[3.0, 3.0], [3.0, 3.0]]


INTERRUPTED_IMPORT = """
import os, signal, sys
from kernelwright.numerics import distances

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "numba.core.types":  # in the middle of it
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
try:
    distances._compile()
    print("not interrupted")
except KeyboardInterrupt:
    print(sorted(distances._compile())[0])
"""


def test_an_interrupt_does_not_break_the_import_of_numba():
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("cubes\n", "")


def test_l1_weighted_sums_of_few_rows_and_many_columns_take_few_calls(rng):
    X, W, K = (torch.from_numpy(rng.normal(size=shape)) for shape in ((6, 5000), (6, 6), (6, 6)))
    K = K + K.T
    with torch.profiler.profile() as profile:
        sums, _ = l1_weighted_sums(X, W, K)
    assert sum(event.count for event in profile.key_averages()) < 200
    naive = [float((W * K * (x[:, None] - x).abs()).sum()) for x in X.T]
    np.testing.assert_allclose(sums.numpy(), naive, rtol=1e-12, atol=1e-12)
