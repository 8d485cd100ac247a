"""Streaming embeddings: against sums by hand, and against a fit of all rows at once."""

import numpy as np
import pytest
import torch

from kernelwright import EmbeddingClassifier
from kernelwright.estimators import streaming
from kernelwright.estimators.streaming import RunningEmbedding, known_beforehand, sum_points
from kernelwright.features import Nystroem, Polynomial, RandomFourier
from kernelwright.inputs.blocks import Block
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import FeatureKernel, Gaussian
from kernelwright.learning import Auto, learning_method

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2)) * [1.0, 3.0] + [0.0, 7.0]
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 8.0)
W = RNG.uniform(0.5, 2.0, 300)
CLASSES = ClassTargets(3)


def block(rows):
    return Block(X[rows], Y[rows], W[rows])


def running(n, *, learn=None, scale=None, features=None, y=Y):
    """Return the state after a fit of the first rows, whose mean weight is one."""
    features = features or RandomFourier(30, lengthscale=2.0, seed=0)
    model = EmbeddingClassifier(features=features, learn=learn, scale=scale, ridge=0.01, random_state=0)
    model.fit(X[:n], y[:n], sample_weight=W[:n])
    draws = learning_method(learn, "EmbeddingClassifier").shrinks_to_frequencies
    return RunningEmbedding.of(model.embedding_, CLASSES, draws), W[:n].mean()


def features_of(embedding, rows):
    points = X[rows] if embedding.scaler is None else embedding.scaler.transform(X[rows])
    return embedding.kernel.features(torch.from_numpy(points)).detach().numpy()


# sums ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [4096, 37])
def test_sums_of_a_block_are_those_of_the_formulas(at_once, monkeypatch):
    monkeypatch.setattr(streaming, "FEATURE_ROWS", at_once)
    kernel = FeatureKernel(Polynomial(2))
    kernel.prepare_(torch.from_numpy(X))
    found = sum_points(block(slice(None)), kernel, None, CLASSES)
    Z, T = kernel.features(torch.from_numpy(X)).detach().numpy(), np.eye(3)[Y]
    moments = found.moments
    np.testing.assert_allclose(moments.gram, Z.T @ (W[:, None] * Z), rtol=1e-12)
    np.testing.assert_allclose(moments.cross, Z.T @ (W[:, None] * T), rtol=1e-12)
    assert moments.total == pytest.approx(W.sum())
    assert moments.largest == pytest.approx((Z**2).sum(1).max())
    np.testing.assert_array_equal(found.low, X.min(0))
    np.testing.assert_array_equal(found.high, X.max(0))


def test_sums_of_two_blocks_add_up_to_those_of_both():
    kernel = FeatureKernel(RandomFourier(12, seed=1))
    kernel.prepare_(torch.from_numpy(X))
    first, second, both = (
        sum_points(block(rows), kernel, None, CLASSES) for rows in (slice(0, 120), slice(120, 300), slice(None))
    )
    added = first + second
    np.testing.assert_allclose(added.moments.gram, both.moments.gram, rtol=1e-12)
    np.testing.assert_allclose(added.moments.cross, both.moments.cross, rtol=1e-12, atol=1e-12)
    assert added.moments.total == pytest.approx(both.moments.total)
    np.testing.assert_array_equal(added.low, both.low)
    np.testing.assert_array_equal(added.high, both.high)


@pytest.mark.parametrize(
    ("features", "learns", "scale", "expected"),
    [
        (RandomFourier(5), False, None, True),
        (Polynomial(2), False, None, True),
        (RandomFourier(5), True, None, False),
        (RandomFourier(5), False, "standard", False),
        (RandomFourier(5, lengthscale="median"), False, None, False),
        (Nystroem(Gaussian(), 5), False, None, False),
    ],
)
def test_features_that_take_nothing_from_the_rows_are_known_beforehand(features, learns, scale, expected):
    assert known_beforehand(FeatureKernel(features), learns=learns, scale=scale) is expected


# more rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("learn", [None, "auto"])
def test_rows_that_are_added_count_as_in_a_fit_of_all_rows(learn, scale):
    """By hand: sums over all rows, the absolute ridge of the first, and the class frequencies of all as the prior."""
    first, unit = running(100, learn=learn, scale=scale)
    found = first.add(Block(X[100:180], Y[100:180], W[100:180] / unit))
    found = found.add(Block(X[180:], Y[180:], W[180:] / unit))
    Z, T, w = features_of(first, slice(None)), np.eye(3)[Y], W / unit
    sums = found.sums
    np.testing.assert_allclose(sums.moments.gram, Z.T @ (w[:, None] * Z), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums.moments.cross, Z.T @ (w[:, None] * T), rtol=1e-9, atol=1e-9)
    assert sums.moments.total == pytest.approx(w.sum())
    assert sums.n_rows == len(sums.sample) == 300
    assert found.ridge * w.sum() == pytest.approx(first.ridge * 100)  # n lambda
    counts = w @ T
    prior = (counts + 1 / 3) / (counts.sum() + 1) if learn else np.zeros(3)
    solution = found.solution()
    noise = first.ridge * 100 * np.eye(Z.shape[1])
    expected = np.linalg.solve(Z.T @ (w[:, None] * Z) + noise, Z.T @ (w[:, None] * (T - prior)))
    np.testing.assert_allclose(solution.coefficients, expected, atol=1e-8)
    points = X if scale is None else first.scaler.transform(X)
    np.testing.assert_allclose(sums.low, points.min(0))
    np.testing.assert_allclose(sums.high, points.max(0))


def test_adding_rows_leaves_the_embedding_before_as_it_was():
    first, _ = running(100)
    before = first.sums.moments.gram.clone(), first.ridge, len(first.sums.sample)
    more = first.add(block(slice(100, 200)), weighted=True)
    assert torch.equal(first.sums.moments.gram, before[0])
    assert (first.ridge, len(first.sums.sample), first.weighted) == (*before[1:], False)
    assert more.weighted
    assert more.add(block(slice(200, 300))).weighted


def test_the_sample_to_calibrate_on_is_a_fair_one(monkeypatch):
    monkeypatch.setattr(streaming, "LEFT_OUT_ROWS", 90)
    found, _ = running(100)
    assert len(found.sums.sample) == 100
    found = found.add(block(slice(100, 300)))
    sample = found.sums.sample.points.numpy()
    assert len(sample) == 90
    rows = np.array([np.flatnonzero((point == X).all(1))[0] for point in sample])
    assert len(set(rows)) == 90
    assert (rows >= 100).mean() == pytest.approx(2 / 3, abs=0.15)
    np.testing.assert_array_equal(found.sums.sample.strata, Y[rows])


def test_a_class_that_the_sample_lacks_has_a_row_in_it(monkeypatch):
    monkeypatch.setattr(streaming, "LEFT_OUT_ROWS", 50)
    for n in range(100, 106):  # of one row more, mostly none would be drawn
        first, _ = running(n, y=np.minimum(Y, 1))
        first = first.widened(np.array([0, 1]), CLASSES, 3)
        sample = first.add(Block(X[n : n + 1], np.array([2]), W[n : n + 1])).sums.sample
        assert (len(sample), int((sample.strata == 2).sum())) == (50, 1)
        labels = np.r_[np.zeros(59, dtype=int), 2]
        assert 2 in first.add(Block(X[n : n + 60], labels, W[n : n + 60])).sums.sample.strata


# more classes ----------------------------------------------------------------------------------------------------


def test_room_for_a_class_between_the_known_ones():
    two, _ = running(100, y=np.minimum(Y, 1))
    wide = two.widened(np.array([0, 2]), CLASSES, 3)
    before, after = two.sums, wide.sums
    np.testing.assert_array_equal(after.moments.cross[:, [0, 2]], before.moments.cross)
    np.testing.assert_array_equal(after.moments.cross[:, 1], 0.0)
    np.testing.assert_array_equal(after.sample.targets[:, [0, 2]], before.sample.targets)
    np.testing.assert_array_equal(after.sample.strata, 2 * before.sample.strata)
    assert (after.moments.gram is before.moments.gram, wide.ridge) == (True, two.ridge)
    narrow, broad = two.solution().coefficients, wide.solution().coefficients
    np.testing.assert_allclose(broad[:, [0, 2]], narrow, atol=1e-12)
    np.testing.assert_allclose(broad[:, 1], 0.0, atol=1e-12)


def test_the_prior_is_that_of_the_rows_so_far():
    drawn, _ = running(100, learn="auto")
    sample = drawn.with_prior().sums.sample
    counts = sample.weights.numpy() @ sample.targets.numpy()
    np.testing.assert_allclose(sample.prior, (counts + 1 / 3) / (counts.sum() + 1))
    plain, _ = running(100)
    assert plain.with_prior() is plain


def test_the_prior_of_a_kernel_of_other_rows_stays_when_rows_are_added():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 2
    model = EmbeddingClassifier(features=RandomFourier(20), learn=Auto(kernel_share=0.5, max_iter=2), random_state=0)
    before = model.fit(X, y).prior_.copy()
    model.partial_fit(X + 1.0, np.zeros(200, dtype=int))
    np.testing.assert_allclose(model.prior_, before, atol=1e-12)


def test_batches_can_be_fitted_twice_from_a_warm_start():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), np.arange(100) % 2
    model = EmbeddingClassifier(features=RandomFourier(20), learn=Auto(max_iter=2), warm_start=True, random_state=0)
    model.fit_batches([(X, y)])
    model.fit_batches([(X, y)])
    assert model.predict_proba(X).shape == (100, 2)


def test_features_take_no_other_solver():
    with pytest.raises(ValueError, match="leave solver='auto'"):
        EmbeddingClassifier(features=RandomFourier(20), solver="exact").fit([[0.0], [1.0]], [0, 1])
