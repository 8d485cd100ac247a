"""A weighted subset of the rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.solvers import Exact, Herding
from kernelwright.solvers.herding import HERDING_CANDIDATES
from kernelwright.solvers.solution import LEFT_OUT_ROWS
from tests.solvers.disc import KERNEL, RNG, N, X, data, outputs, solve


def test_herded_rows_are_better_than_random_ones():
    """The mean of a herded subset follows the mean of all rows."""
    found = solve(Herding(20))

    def gap(points: torch.Tensor) -> float:
        K = KERNEL.matrix(torch.cat([points, torch.from_numpy(X)]))
        signed = torch.cat([torch.full((len(points),), 1.0 / len(points)), torch.full((N,), -1.0 / N)]).double()
        return float(signed @ K @ signed)

    rivals = [torch.from_numpy(X[np.random.default_rng(s).choice(N, 20, replace=False)]) for s in range(20)]
    assert gap(found.points) < min(gap(points) for points in rivals)


def test_rows_of_great_weight_are_picked_again_and_again():
    """Three points of many rows each, as merging makes them, and a few more: the herded mean is that of the weights."""
    points = torch.cat([torch.tensor([[-4.0, 0.0], [0.0, 0.0], [4.0, 0.0]]), torch.from_numpy(X[:7]).float()]).double()
    weights = torch.tensor([50.0, 20.0, 10.0] + [1.0] * 7, dtype=torch.float64)
    rows = TrainingSet.of(points, one_hot(np.zeros(10, dtype=int), 1), weights=weights)
    found = solve(Herding(9), rows)
    of = found.fitted_rows
    assert of.total_weight == pytest.approx(rows.total_weight)
    heavy = of.weights[(of.points == points[0]).all(1)]
    assert float(heavy) == pytest.approx(50.0, abs=10.0)


def test_all_rows_herded_are_the_exact_solution():
    rows = replace(data(), weights=torch.from_numpy(RNG.uniform(0.2, 3.0, N)))
    expected, found = solve(Exact(), rows), solve(Herding(N), rows)
    np.testing.assert_allclose(outputs(found), outputs(expected), atol=1e-10)


def test_every_class_keeps_its_weight():
    rows = replace(data(), weights=torch.from_numpy(np.random.default_rng(1).uniform(0.2, 3.0, N)))
    of = solve(Herding(30), rows).fitted_rows
    for stratum in rows.strata.unique():
        expected = float(rows.weights[rows.strata == stratum].sum())
        assert float(of.weights[of.strata == stratum].sum()) == pytest.approx(expected)


@pytest.mark.parametrize("groups", [None, torch.arange(N) // 4], ids=["rows", "groups"])
def test_calibration_rows_are_not_among_the_picked_or_their_groups(groups):
    rows = replace(data(), groups=groups)
    found = solve(Herding(30), rows)
    picked = set(map(tuple, found.points.tolist()))
    assert not picked & set(map(tuple, found.left_out.rows.points.tolist()))
    if groups is not None:
        assert not set(found.fitted_rows.groups.tolist()) & set(found.left_out.rows.groups.tolist())


def test_memory_is_that_of_the_candidates_or_of_the_picked():
    assert Herding(100).n_bytes(2000) == 3 * 8 * 2000**2
    assert Herding(100).n_bytes(10**6) == 3 * 8 * HERDING_CANDIDATES**2
    assert Herding(9000).n_bytes(10**6) == 4 * 8 * 9000**2 + 4 * 8 * LEFT_OUT_ROWS * 9000
    assert Herding(100).size(50) == 50
