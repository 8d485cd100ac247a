"""Partitions of rows: sizes, routing, and tables on which a median does not split."""

import numpy as np
import pytest
import torch

from kernelwright.embedding.partition import all_axes, grow, random_axes
from kernelwright.kernels import Gaussian, Linear, Tabular

RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(1000, 5)) * [1, 4, 2, 0.5, 0.0]
BINARY = (RNG.random((1000, 6)) < [0.5, 0.01, 0.3, 0.99, 0.6, 0.0]).astype(float)
TABLES = {
    "wide": WIDE,
    "binary": BINARY,
    "ties": np.round(WIDE),
    "mixed": np.hstack([BINARY, np.exp(WIDE)]),
    "one column": WIDE[:, :1],
}
each_table = pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)


def axes_of(points, random):
    kernel = Gaussian(np.full(points.shape[1], 0.7))
    return random_axes(kernel, points, torch.Generator().manual_seed(0)) if random else all_axes(kernel, points)


@each_table
@pytest.mark.parametrize("random", [False, True], ids=["columns", "mixtures"])
def test_training_rows_are_routed_to_their_leaf_in_any_batch(X, random):
    points = torch.from_numpy(X)
    found = grow(points, axes_of(points, random), 250)  # with fewer, equal rows would be cut
    leaf = torch.empty(len(points), dtype=torch.int64)
    for number in range(found.n_leaves):
        leaf[found.rows(number)] = number
    assert torch.equal(found.order.sort().values, torch.arange(len(points)))
    assert torch.equal(found.route(points), leaf)
    assert torch.equal(torch.cat([found.route(row[None]) for row in points]), leaf)


@each_table
def test_leaves_are_full_and_not_too_large(X):
    points = torch.from_numpy(X)
    sizes = grow(points, axes_of(points, False), 100).starts.diff()
    distinct = len(np.unique(X, axis=0))
    assert int(sizes.max()) <= (100 if distinct > 500 else 200)
    assert len(sizes) <= 40


def test_the_rule_is_the_one_that_the_tree_describes():
    """Against a walk from the root, row by row."""
    points = torch.from_numpy(WIDE)
    found = grow(points, axes_of(points, True), 150)
    for row in points[:50]:
        at, values = 0, (row[found.axes.columns] * found.axes.factors).sum(1)
        while at >= 0:
            at = int(found.children[at, int(values[found.axis[at]] >= found.threshold[at])])
        assert found.route(row[None]).item() == -1 - at


def test_the_widest_column_in_length_scales_is_split_first():
    points = torch.from_numpy(WIDE)
    for scales, widest in (([1, 1, 1, 1, 1], 1), ([1, 10, 1, 1, 1], 2), ([0.01, 1, 1, 1, 1], 0)):
        found = grow(points, all_axes(Gaussian(np.array(scales, dtype=float)), points), 500)
        assert found.axes.columns.tolist() == [[widest]]
        assert found.starts.diff().tolist() == [500, 500]


def test_equal_rows_stay_together_and_many_are_cut():
    equal = torch.ones(300, 2).double()
    axes = all_axes(Gaussian(), equal)
    assert grow(equal, axes, 200).n_leaves == 1
    found = grow(equal, axes, 100)
    assert found.starts.diff().tolist() == [100, 200]
    assert bool((found.route(equal) == 0).all())


def test_few_rows_are_one_leaf():
    points = torch.from_numpy(WIDE)
    found = grow(points, axes_of(points, False), 1000)
    assert found.n_leaves == 1
    assert not found.route(points).any()
    assert len(found.axes) == 0


def test_kernels_without_length_scales_and_with_views_have_axes():
    points = torch.from_numpy(WIDE)
    assert all_axes(Linear(), points).factors[:, 0].tolist() == [1.0] * 5
    both = torch.hstack([points, points])
    assert len(all_axes(Tabular(2.0), both)) == 5
    assert all_axes(Tabular(2.0), both).factors[0].item() == pytest.approx(0.5)
    assert len(all_axes(Gaussian(2.0) + 0.5 * Gaussian(1.0), points)) == 5
