"""Whether rows depend on their neighbours: series are found, independent rows in any order are not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian
from kernelwright.solvers import dependence
from kernelwright.solvers.dependence import dependent_blocks, error_of_blocks

N = 2000
IN_ORDER = torch.arange(N)
KERNEL, RIDGE = Gaussian(0.5), 1e-5


def random(seed=0):
    return torch.Generator().manual_seed(seed)


def rows_of(X, labels):
    Y, w = one_hot(np.asarray(labels).astype(int), 2), torch.ones(len(X), dtype=torch.float64)
    return TrainingSet.of(torch.from_numpy(X), Y, weights=w, prior=Y.mean(0))


def series(seed):
    """A slow walk whose states are nearly copies of each other, and whose label has a drift of its own."""
    rng = np.random.default_rng(seed)
    X = 0.9 * np.stack([np.sin(np.arange(N) / 41.0), np.cos(np.arange(N) / 37.0)], 1) + 0.02 * rng.normal(size=(N, 2))
    drift = np.repeat(rng.normal(size=N // 25), 25)
    return rows_of(X, X[:, 0] + 1.5 * drift > 0)


def independent(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    return rows_of(X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N) > 0)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(dependence, "TESTED_FROM", N)
    monkeypatch.setattr(dependence, "LEAF", 500)


def found_in(rows, order):
    return dependent_blocks(KERNEL, rows, RIDGE, order, random())


@pytest.mark.parametrize("seed", range(2))
def test_a_series_is_found_in_any_order_of_storage(seed):
    rows = series(seed)
    blocks = found_in(rows, IN_ORDER)
    assert torch.equal(blocks, IN_ORDER // dependence.LEFT_OUT)
    shuffled = torch.randperm(N, generator=random(seed))
    found = found_in(rows.subset(shuffled), shuffled)
    assert torch.equal(found, blocks[shuffled])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sorted_by", ["nothing", "class", "column"])
def test_independent_rows_are_not_suspected(seed, sorted_by):
    rows = independent(seed)
    key = {"nothing": torch.zeros(N), "class": rows.strata, "column": rows.points[:, 0]}[sorted_by]
    assert found_in(rows.subset(key.argsort(stable=True)), IN_ORDER) is None


def test_a_series_in_random_order_is_not_suspected():
    rows = series(0)
    assert found_in(rows, torch.randperm(N, generator=random())) is None


def test_groups_and_few_rows_are_not_tested():
    rows = series(0)
    assert found_in(rows.subset(IN_ORDER[1:]), IN_ORDER[1:]) is None
    assert found_in(replace(rows, groups=IN_ORDER // 50), IN_ORDER) is None


def test_errors_are_those_of_refits_without_the_block(monkeypatch):
    monkeypatch.setattr(dependence, "LEAF", 10**4)
    rows = series(0).subset(torch.arange(0, N, 10))
    blocks = torch.arange(len(rows)) // 20
    errors, _ = error_of_blocks(KERNEL, rows, RIDGE, blocks, random())
    X, Y = rows.points.numpy(), rows.centred.numpy()
    for block in (0, 7):
        out = (blocks == block).numpy()
        distance = np.square(X[:, None] - X).sum(2)
        K = np.exp(-0.5 * distance / 0.5**2)
        V = np.linalg.solve(K[~out][:, ~out] + RIDGE * len(X) * np.eye((~out).sum()), Y[~out])
        expected = np.square(Y[out] - K[out][:, ~out] @ V).sum(1)
        np.testing.assert_allclose(errors[blocks == block].numpy(), expected, rtol=1e-6, atol=1e-9)
