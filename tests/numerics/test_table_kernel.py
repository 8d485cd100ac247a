"""Falloffs of two views in one pass: against naive formulas, and against the same sums without compiled loops."""

import numpy as np
import pytest
import torch

from kernelwright.kernels import ConvexSum, Tabular
from kernelwright.numerics import table_kernel
from kernelwright.numerics.table_kernel import TableTiles, Views, falloff_matrices, mixture
from tests import reference as naive

pytest.importorskip("numba")

SIZES = (1, 2, 127, 129, 260)  # around the width of a tile


@pytest.fixture
def always(monkeypatch):
    """Compile however few the pairs are."""
    monkeypatch.setattr(table_kernel, "COMPILED_FROM", 0)


def points(n: int, n_features: int, seed: int = 0) -> torch.Tensor:
    X = np.random.default_rng(seed).normal(size=(n, 2 * n_features))
    X[n // 2] = X[0]
    return torch.from_numpy(X)


def kernel(n_features: int, *, tied: bool = False, groups: tuple[int, ...] | None = None) -> Tabular:
    scales = 1.7 if tied else np.geomspace(0.6, 5.0, n_features if groups is None else max(groups) + 1)
    return Tabular(scales, smooth=1.3, rank_scale=0.8, weights=[0.5, 0.2, 0.3], groups=groups)


def without_loops(monkeypatch, function):
    with monkeypatch.context() as patch:
        patch.setattr(table_kernel, "_compile", lambda: None)
        return function()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 700.0])
def test_exponentials_are_as_accurate_as_those_of_numpy(scale):
    x = torch.linspace(0.0, scale, 257, dtype=torch.float64)[:, None]
    steps, smooth, ranks = falloff_matrices(Views(x, 0.5 * x), torch.ones(1, dtype=torch.float64))
    apart = (x - x.T).abs().numpy()
    np.testing.assert_allclose(steps, np.exp(-apart), rtol=4e-15)
    np.testing.assert_allclose(ranks, np.exp(-0.5 * apart), rtol=4e-15)
    near = apart**2 < 700
    np.testing.assert_allclose(smooth.numpy()[near], np.exp(-(apart[near] ** 2)), rtol=4e-15)
    assert (smooth.numpy()[~near] < 1e-300).all()


@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 8])
@pytest.mark.parametrize("tied", [False, True])
def test_values_are_those_of_the_formula(always, n_features, tied):
    X, Z, k = points(9, n_features), points(140, n_features, 1), kernel(n_features, tied=tied)
    scales = np.broadcast_to(k.feature_scale().detach().numpy(), n_features)
    expected = naive.gram(naive.tabular(scales, 1.3, 0.8, [0.5, 0.2, 0.3]), X.numpy(), Z.numpy())
    with torch.no_grad():
        np.testing.assert_allclose(k.forward(X, Z), expected, rtol=1e-12)
        np.testing.assert_allclose(k.against(Z)(X[2:3]), expected[2:3], rtol=1e-12)
        single = k.float().forward(X.float(), Z.float())
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("n", SIZES)
def test_square_matrices_are_symmetric_with_ones_and_equal_the_plain_path(always, monkeypatch, n):
    X, k = points(n, 3), kernel(3)
    K, (in_vjp, _) = k.matrix(X), k.vjp(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(in_vjp, in_vjp.T)
    np.testing.assert_allclose(K.diagonal(), 1.0, rtol=1e-15)
    assert float(K[0, n // 2]) == float(K[0, 0])
    np.testing.assert_allclose(K, in_vjp, atol=1e-15)
    np.testing.assert_allclose(K, without_loops(monkeypatch, lambda: k.matrix(X)), atol=1e-13)


@pytest.mark.parametrize("groups", [None, (0, 1, 1, 2, 0)])
@pytest.mark.parametrize("n", SIZES[1:])
def test_gradients_equal_those_of_the_plain_path_and_of_autograd(always, monkeypatch, n, groups):
    X, k = points(n, 5), kernel(5, groups=groups)
    W = torch.from_numpy(np.random.default_rng(2).normal(size=(n, n)))  # not symmetric
    found = k.vjp(X)[1](W.clone())
    plain = without_loops(monkeypatch, lambda: k.vjp(X)[1](W.clone()))
    (k._in_torch(X, None) * W).sum().backward()
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, plain[name], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gradient, k.get_parameter(name).grad, rtol=1e-7, atol=1e-8)


def test_a_row_gets_the_same_bits_in_any_batch_and_in_any_number_of_threads(always):
    X, Z, k = points(40, 6), points(300, 6, 1), kernel(6)
    values, n_threads = k.against(Z), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone, square = values(X), k.matrix(Z)
        torch.set_num_threads(2)
        np.testing.assert_array_equal(values(X), alone)
        np.testing.assert_array_equal(k.matrix(Z), square)
    finally:
        torch.set_num_threads(n_threads)
    np.testing.assert_array_equal(values(X[7:8])[0], alone[7])


def test_points_far_away_have_a_value_of_zero_and_gaps_in_numbers_are_not_hidden(always):
    X, k = points(3, 2), kernel(2)
    X[1] = 1e200
    X[2, 0] = torch.nan
    K = k.against(X[:1])(X)
    assert 0 <= float(K[1]) < 1e-300
    assert bool(K[2].isnan())


def test_sums_of_kernels_work_part_by_part(always):
    X, Z = points(5, 3), points(20, 3, 1)
    both = ConvexSum([kernel(3), kernel(3, tied=True)], [0.25, 0.75])
    with torch.no_grad():
        np.testing.assert_allclose(both.against(Z)(X), both.forward(X, Z), rtol=1e-13)


def test_nothing_is_read_beyond_the_last_point():
    rows = Views(*(torch.ones(2, 3, dtype=torch.float64) for _ in range(2)))
    tiles = TableTiles.of(rows, torch.ones((), dtype=torch.float64), torch.tensor([0.5, 0.25, 0.25]).double())
    assert tiles.curvature.shape == (3,)
    np.testing.assert_array_equal(mixture(rows, tiles), np.ones((2, 2)))


def test_a_subclass_with_its_own_formula_is_not_bypassed(always):
    class Doubled(Tabular):
        def forward(self, X, Z=None):
            return 2.0 * super().forward(X, Z)

    X, Z, k = points(4, 3), points(7, 3, 1), Doubled(1.5)
    with torch.no_grad():
        expected = 2.0 * Tabular(1.5).forward(X, Z)
        np.testing.assert_allclose(k.against(Z)(X), expected, rtol=1e-12)
        np.testing.assert_allclose(k.matrix(X).diagonal(), 2.0, rtol=1e-12)
