"""A fitted embedding: outputs at new rows and leave-one-out outputs, against refits by explicit inverses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from kernelwright.embedding.dual import embed
from kernelwright.embedding.fitted import EmbeddedRows, FittedEmbedding, kernel_blocks
from kernelwright.embedding.primal import FeatureSums, Moments
from kernelwright.embedding.support import FeatureSupport, KernelSupport, nearest_other
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.features import Polynomial, RandomFourier
from kernelwright.inputs.dataset import Dataset
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import FeatureKernel, Gaussian, Linear
from tests import reference as naive

M, RIDGE = 3, 0.05
RNG = np.random.default_rng(4)
DISTINCT = RNG.normal(size=(12, 2))
ROWS = np.array([0, 1, 2, 2, 3, 4, 5, 5, 5, 6, 7, 8, 9, 10, 11, 11])  # some rows are given twice or more
X, LABELS = DISTINCT[ROWS], (np.arange(12) % M)[ROWS]
Y = np.eye(M)[LABELS]
WEIGHTS = RNG.uniform(0.4, 2.0, 12)[ROWS]  # equal rows have equal weights
GROUPS = np.array([0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 6, 6])
NEW = RNG.normal(size=(7, 2))
PRIOR = np.array([0.5, 0.3, 0.2])
MAP = Polynomial(2).fit(X)

rows_or_groups = pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
weightings = pytest.mark.parametrize("w", [np.ones(len(X)), WEIGHTS], ids=["ones", "weights"])


def merged(w, groups) -> tuple[TrainingSet, np.ndarray, np.ndarray]:
    """Return the training set, the index of each row in it, and the row weights, whose mean is one."""
    given = Dataset(X, None, LABELS, w, groups).with_mean_weight_one()
    rows, place = given.merged()
    counts, names = (None if each is None else torch.from_numpy(each) for each in (rows.counts, rows.groups))
    data = TrainingSet.of(
        torch.from_numpy(rows.X),
        one_hot(rows.y, M),
        weights=torch.from_numpy(rows.weights),
        prior=torch.from_numpy(PRIOR),
        counts=counts,
        groups=names,
    )
    return data, place, given.weights


def by_kernel(w, groups, **changes) -> tuple[FittedEmbedding, TrainingSet, np.ndarray]:
    data, place, weights = merged(w, groups)
    kernel = Gaussian(0.8)
    K = kernel.matrix(data.points)
    embedding = FittedEmbedding(
        scaler=None,
        kernel=kernel,
        features=None,
        points=data.points,
        coefficients=embed(K, data, RIDGE).coefficients,
        prior=data.prior,
        ridge=RIDGE,
        support=KernelSupport.of(nearest_other(K, data), data.weights),
        rows=EmbeddedRows.of(np.ones(len(X), dtype=bool), place, weights, data),
        sums=None,
        solver="exact",
    )
    return replace(embedding, **changes), data, place


def by_features(w, groups) -> tuple[FittedEmbedding, TrainingSet, np.ndarray]:
    data, place, weights = merged(w, groups)
    Z = MAP(data.points).detach()
    moments = Moments.of(Z, data.targets, data.weights)
    factor = moments.factor(RIDGE)
    sums = FeatureSums(moments, data, len(data), data.points.min(0).values, data.points.max(0).values)
    embedding = FittedEmbedding(
        scaler=None,
        kernel=FeatureKernel(MAP),
        features=MAP,
        points=torch.empty(0, 0, dtype=torch.float64),
        coefficients=moments.weights(factor, data.prior),
        prior=data.prior,
        ridge=RIDGE,
        support=FeatureSupport.of(factor, Z, data),
        rows=EmbeddedRows.of(np.ones(len(X), dtype=bool), place, weights, data),
        sums=sums,
        solver="explicit",
    )
    return embedding, data, place


def grams(make) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel matrix of the rows, and of new rows with them."""
    pair = naive.gaussian(0.8) if make is by_kernel else naive.polynomial(2, 1.0, 1.0)
    return naive.gram(pair, X), naive.gram(pair, NEW, X)


both = pytest.mark.parametrize("make", [by_kernel, by_features], ids=["kernel", "features"])


def diagonal(w, groups) -> np.ndarray:
    n = len(X) if groups is None else len(set(groups.tolist()))
    return naive.noise(w * n / w.sum(), RIDGE)


# New rows ----------------------------------------------------------------------------------------------------


@both
@weightings
@rows_or_groups
def test_outputs_are_those_of_all_given_rows(make, w, groups):
    K, K_new = grams(make)
    outputs, support = make(w, groups)[0].outputs(NEW)
    np.testing.assert_allclose(outputs, naive.outputs(K_new, K, Y, diagonal(w, groups), PRIOR), atol=1e-9)
    assert support.shape == (7,)


@both
def test_outputs_do_not_depend_on_the_blocks(make):
    embedding = make(WEIGHTS, None)[0]
    whole, support = embedding.outputs(NEW)
    for size in (1, 3, 100):
        values, outputs, supports = zip(*embedding.blocks(NEW, n_rows=size), strict=True)
        assert max(len(block) for block in values) <= size
        torch.testing.assert_close(torch.cat(outputs), whole, rtol=0.0, atol=1e-10)
        torch.testing.assert_close(torch.cat(supports), support, rtol=1e-10, atol=1e-12)


@both
def test_no_rows_have_no_outputs(make):
    outputs, support = make(WEIGHTS, None)[0].outputs(np.empty((0, 2)))
    assert (outputs.shape, support.shape) == ((0, M), (0,))


def test_the_support_is_the_value_with_the_nearest_point_in_units_of_what_is_usual():
    embedding, _, _ = by_kernel(WEIGHTS, None)
    _, K_new = grams(by_kernel)
    _, support = embedding.outputs(NEW)
    np.testing.assert_allclose(support, K_new.max(1) / embedding.support.level)
    assert embedding.n_support_rows == embedding.size == len(embedding.points)


def test_inputs_go_through_the_scaler():
    scaler = StandardScaler().fit(X)
    embedding, _, _ = by_kernel(WEIGHTS, None)
    moved = replace(embedding, scaler=scaler)
    expected, _ = embedding.outputs(scaler.transform(NEW))
    torch.testing.assert_close(moved.outputs(NEW)[0], expected)
    torch.testing.assert_close(moved.outputs(None, torch.from_numpy(scaler.transform(NEW)))[0], expected)


def test_predictions_in_single_precision_are_close():
    embedding, _, _ = by_kernel(WEIGHTS, None)
    single = replace(embedding, predicts_in_single=True)
    values, _, _ = next(iter(single.blocks(NEW)))
    assert values.dtype == torch.float32
    np.testing.assert_allclose(single.outputs(NEW)[0], embedding.outputs(NEW)[0], atol=1e-4)


def test_outputs_that_overflow_are_told_with_their_row():
    embedding = replace(by_kernel(WEIGHTS, None)[0], kernel=Linear())
    far = NEW.copy()
    far[4] = 1e308
    with pytest.raises(NumericalError, match="Row 4 is so large"):
        embedding.outputs(far)


@pytest.mark.parametrize("n_rows", [None, 2])
def test_kernel_values_come_in_blocks(n_rows):
    points, new = torch.from_numpy(DISTINCT), torch.from_numpy(NEW)
    found = torch.cat(list(kernel_blocks(Gaussian(0.8), points, new, n_rows=n_rows)))
    np.testing.assert_allclose(found, naive.gram(naive.gaussian(0.8), NEW, DISTINCT), rtol=1e-12)


# Beyond the training rows ------------------------------------------------------------------------------------


def test_support_falls_beyond_the_range_of_squashed_inputs():
    views = TableViews().fit(X)
    embedding, _, _ = by_kernel(WEIGHTS, None)
    half = replace(embedding, scaler=views, points=torch.from_numpy(views.transform(embedding.points.numpy())))
    inside, beyond = X.max(0)[None], X.max(0)[None] + np.array([[2.0, 0.0]])
    support = [float(half.outputs(row)[1]) for row in (inside, beyond)]
    squashed = [float(half.outputs(None, half.encode(row))[1]) for row in (inside, beyond)]
    lost = np.exp(-views.beyond(beyond).sum() / 0.8)
    assert support[0] == pytest.approx(squashed[0])
    assert support[1] == pytest.approx(squashed[1] * lost)
    assert lost < 0.5


def test_support_falls_beyond_the_range_of_periodic_features():
    embedding, data, _ = by_features(WEIGHTS, None)
    waves = RandomFourier(40, lengthscale=0.8).fit(X)
    Z = waves(data.points).detach()
    moments = Moments.of(Z, data.targets, data.weights)
    factor = moments.factor(RIDGE)
    fourier = replace(
        embedding,
        kernel=FeatureKernel(waves),
        features=waves,
        coefficients=moments.weights(factor, data.prior),
        support=FeatureSupport.of(factor, Z, data),
    )
    beyond = X.max(0)[None] + 3.0
    at_points, periodic = (float(fourier.outputs(given, torch.from_numpy(beyond))[1]) for given in (beyond, None))
    assert at_points == pytest.approx(periodic * np.exp(-6.0 / 0.8))


# Training rows -----------------------------------------------------------------------------------------------


@weightings
def test_weights_of_the_given_rows_are_those_of_their_targets(w):
    embedding, _, _ = by_kernel(w, None)
    K, K_new = grams(by_kernel)
    expected = K_new @ np.linalg.inv(K + np.diag(diagonal(w, None)))
    np.testing.assert_allclose(embedding.row_weights(NEW), expected, atol=1e-10)


def test_rows_that_were_not_embedded_have_no_weight():
    embedding, _, _ = by_kernel(WEIGHTS, None)
    given = np.zeros(len(X) + 2, dtype=bool)
    given[1:-1] = True
    found = replace(embedding, rows=replace(embedding.rows, given=given)).row_weights(NEW)
    assert (found[:, [0, -1]] == 0).all()
    np.testing.assert_array_equal(found[:, 1:-1], embedding.row_weights(NEW))


def test_the_training_set_comes_back():
    for groups in (None, GROUPS):
        embedding, data, _ = by_kernel(WEIGHTS, groups)
        again = embedding.rows.training_set(data.points, data.targets, data.prior)
        for name in ("points", "targets", "weights", "prior", "strata", "counts", "groups"):
            first, second = getattr(again, name), getattr(data, name)
            assert (first is None and second is None) or torch.equal(first, second)


@both
@weightings
@rows_or_groups
def test_without_each_row_equals_refits(make, w, groups):
    """Of equal rows one goes, or the whole group: at the row itself, and at every new point."""
    embedding, data, place = make(w, groups)
    K, K_new = grams(make)
    noise = diagonal(w, groups)
    found = embedding.without_each_row(data.targets)
    values = torch.cat([block for block, _, _ in embedding.blocks(NEW)])
    without = embedding.outputs(NEW)[0][:, None, :] - found.change_at(values)
    for i in range(len(X)):
        keep = np.flatnonzero(np.arange(len(X)) != i if groups is None else groups != groups[i])
        K_keep = K[np.ix_(keep, keep)]
        own = naive.outputs(K[i][keep], K_keep, Y[keep], noise[keep], PRIOR)
        np.testing.assert_allclose(found.outputs[place[i]], own, atol=1e-8)
        elsewhere = naive.outputs(K_new[:, keep], K_keep, Y[keep], noise[keep], PRIOR)
        np.testing.assert_allclose(without[:, place[i]], elsewhere, atol=1e-8)
    np.testing.assert_array_equal(found.strata, data.strata)
    assert found.counts.sum() == (len(X) if groups is None or make is by_kernel else len(data))


@rows_or_groups
def test_the_support_of_a_row_left_out_is_that_by_the_others(groups):
    embedding, data, place = by_kernel(WEIGHTS, groups)
    K, _ = grams(by_kernel)
    found = embedding.without_each_row(data.targets)
    for i in range(len(X)):
        others = np.arange(len(X)) != i if groups is None else groups != groups[i]
        assert float(found.support[place[i]]) == pytest.approx(K[i][others].max() / embedding.support.level)


@both
def test_leaving_out_changes_nothing_in_the_embedding(make):
    embedding, data, _ = make(WEIGHTS, None)
    before = {name: getattr(embedding, name).clone() for name in ("points", "coefficients", "prior")}
    embedding.without_each_row(data.targets)
    assert all(torch.equal(getattr(embedding, name), value) for name, value in before.items())
