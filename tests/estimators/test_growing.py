"""Rows added later to models with kernels: the same solution as all at once, forgetting, files, weights, faults."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone

import kernelwright as kw
from kernelwright import EmbeddingClassifier, EmbeddingRegressor, features, learning, load, save
from kernelwright.distributions import LocationScale
from kernelwright.embedding.tree import averaged, solve_tree
from kernelwright.kernels import Gaussian, Spectrum
from kernelwright.learning import Auto
from kernelwright.solvers import Tree

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (1500, 3))
SIGNAL = np.sin(2.5 * X[:, 0]) + 0.5 * X[:, 1]
Y = np.digitize(SIGNAL, [-0.4, 0.4])
NUMBERS = SIGNAL + 0.1 * (1 + np.abs(X[:, 1])) * RNG.normal(size=len(X))
FEW = Auto(max_iter=3)
SOLVER = Tree(150, trees=2)


def in_parts(model, y, start, stop, size=100, **options):
    for first in range(start, stop, size):
        part = slice(first, min(first + size, stop))
        model.partial_fit(X[part], y[part], **{name: value[part] for name, value in options.items()})
    return model


def solved_at_once(model, targets, prior):
    """Solve the rows that a model has in its own partitions, with its weights and n lambda."""
    embedding = model.embedding_
    data = embedding.rows.training_set(embedding.points, targets, prior)
    return [solve_tree(embedding.kernel, data, embedding.ridge, each) for each in embedding.trees.partitions]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("solver", [SOLVER, Tree(150, trees=2, max_age=600), Tree(150, half_life=400)], ids=repr)
def test_the_solution_of_a_classifier_is_that_of_all_its_rows_at_once(solver, weighted):
    options = {"sample_weight": RNG.uniform(0.2, 3.0, len(Y))} if weighted else {}
    first = {name: value[:300] for name, value in options.items()}
    model = EmbeddingClassifier(learn=FEW, solver=solver, random_state=0).fit(X[:300], Y[:300], **first)
    noise, before = model.ridge_ * model.embedding_.rows.weights.sum(), model.score(X[1200:], Y[1200:])
    in_parts(model, Y, 300, 1200, 180, **options)
    embedding = model.embedding_
    assert len(embedding.points) == (600 if solver.max_age else 1200)
    assert embedding.trees.partitions[0].n_leaves >= 4
    assert embedding.ridge * embedding.rows.weights.sum() == pytest.approx(noise)
    targets = torch.nn.functional.one_hot(torch.from_numpy(embedding.rows.strata), 3).double()
    frequencies = embedding.rows.weights @ targets.numpy()  # with one row that all classes share
    prior = torch.from_numpy((frequencies + 1.0 / 3.0) / (frequencies.sum() + 1.0))
    solved = solved_at_once(model, targets, prior)
    outputs, _ = embedding.trees.outputs(embedding.kernel, embedding.points, embedding.coefficients, embedding.points)
    torch.testing.assert_close(outputs + prior, averaged(solved).fitted, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(embedding.coefficients, embedding.trees.coefficients(solved), atol=1e-8, rtol=1e-8)
    assert model.score(X[1200:], Y[1200:]) > before


def test_the_solution_of_a_regressor_is_that_of_all_its_rows_at_once():
    model = EmbeddingRegressor(learn=FEW, solver=SOLVER, random_state=0).fit(X[:300], NUMBERS[:300])
    before = model.crps(X[1200:], NUMBERS[1200:]).mean()
    in_parts(model, NUMBERS, 300, 1200, 300)
    targets = model.targets_.encode(model.left_out_[0].y[:, None])
    np.testing.assert_allclose(np.sort(model.left_out_[0].y), np.sort(NUMBERS[:1200]))
    solved = solved_at_once(model, targets, targets.mean(0))
    expected = model.embedding_.trees.coefficients(solved)
    torch.testing.assert_close(model.embedding_.coefficients[:, :1], expected, atol=1e-8, rtol=1e-8)
    np.testing.assert_allclose(model.left_out_[0].location, averaged(solved).left_out[:, 0].numpy(), atol=1e-8)
    assert model.crps(X[1200:], NUMBERS[1200:]).mean() < before
    once = EmbeddingRegressor(learn=FEW, solver=SOLVER, random_state=0).fit(X[:1200], NUMBERS[:1200])
    assert model.crps(X[1200:], NUMBERS[1200:]).mean() < 1.05 * once.crps(X[1200:], NUMBERS[1200:]).mean()
    inside = [low <= t <= high for (low, high), t in zip(model.interval(X[1200:]), NUMBERS[1200:], strict=True)]
    assert 0.8 < np.mean(inside) < 0.97


@pytest.mark.parametrize("cls", [EmbeddingClassifier, EmbeddingRegressor])
def test_a_stream_may_begin_with_few_rows_and_learns_its_kernel_from_more(cls):
    y = Y if cls is EmbeddingClassifier else NUMBERS
    model = in_parts(cls(learn=FEW, solver=SOLVER, random_state=0), y, 0, 640, 80)
    few = cls(learn=FEW, solver=SOLVER, random_state=0).fit(X[:80], y[:80])
    once = cls(learn=FEW, solver=SOLVER, random_state=0).fit(X[:640], y[:640])
    assert model.solver_ == "tree"
    assert len(model.points_) == 640
    assert not np.allclose(model.kernel_.lengthscale.detach(), few.kernel_.lengthscale.detach())
    found, expected, least = (each.score(X[1200:], y[1200:]) for each in (model, once, few))
    assert least < found
    assert found > expected - 0.02


@pytest.mark.parametrize("cls", [EmbeddingClassifier, EmbeddingRegressor])
def test_an_exact_model_stays_exact(cls):
    """With the kernel and n lambda of the first rows, the answers are those of one fit to all."""
    y, start = (Y if cls is EmbeddingClassifier else NUMBERS), {"learn": None, "kernel": Gaussian(0.7), "ridge": 1e-3}
    if cls is EmbeddingRegressor:
        start["distribution"] = LocationScale()
    for solver in ("auto", "exact"):
        model = in_parts(cls(solver=solver, **start).fit(X[:200], y[:200]), y, 200, 600)
        assert model.solver_ == "exact"
        once = cls(**start | {"ridge": 1e-3 * 200 / 600}).fit(X[:600], y[:600])
        if cls is EmbeddingClassifier:
            np.testing.assert_allclose(model.predict_proba(X), once.predict_proba(X), atol=1e-6)
            assert model.embedding_weights(X[:2]).shape == (2, 600)
            np.testing.assert_allclose(model.risk_bound("rademacher").total, once.risk_bound("rademacher").total)
        else:
            targets = [each.targets_.encode(y[600:, None]).numpy().ravel() for each in (model, once)]
            assert np.ptp(targets[0] - targets[1]) < 1.0  # another unit
            np.testing.assert_allclose(model.predict(X), once.predict(X), atol=2e-3)


def drifting(n, seed, period):
    """Rows whose labels turn once in each period."""
    random = np.random.default_rng(seed)
    points, time = random.normal(size=(n, 2)), np.arange(n)
    angle = 2 * np.pi * time / period
    signal = points[:, 0] * np.cos(angle) + points[:, 1] * np.sin(angle)
    return points, signal + 0.1 * random.normal(size=n)


@pytest.mark.parametrize("forgetting", [{"max_age": 200}, {"half_life": 100}], ids=str)
@pytest.mark.parametrize("cls", [EmbeddingClassifier, EmbeddingRegressor])
def test_forgetting_follows_a_drift(cls, forgetting):
    points, signal = drifting(1000, 0, 1000)
    y = signal if cls is EmbeddingRegressor else (signal > 0).astype(int)
    scores = []
    for options in (forgetting, {}):
        settings = {"distribution": LocationScale()} if cls is EmbeddingRegressor else {}
        model = cls(Gaussian(1.5), learn=None, ridge=1e-3, solver=Tree(200, trees=1, **options), **settings)
        model.fit(points[:100], y[:100])
        ahead = []
        for start in range(100, 1000, 100):
            ahead.append(model.score(points[start : start + 100], y[start : start + 100]))
            model.partial_fit(points[start : start + 100], y[start : start + 100])
        scores.append(np.mean(ahead[3:]))
    assert scores[0] > scores[1] + 0.15


def test_decayed_rows_count_by_their_age_and_very_old_ones_are_dropped():
    solver = Tree(100, trees=1, half_life=50)
    model = EmbeddingClassifier(Gaussian(), learn=None, solver=solver).fit(X[:40], Y[:40])
    in_parts(model, Y, 40, 1000, 40)
    weights = model.embedding_.rows.weights
    assert 450 < len(weights) <= 500  # ten half-lives
    np.testing.assert_allclose(weights[51:] / weights[1:-50], 2.0 ** (50 / 50), rtol=1e-9)
    assert 0.5 <= weights[-1] <= 2.0


@pytest.mark.parametrize("cls", [EmbeddingClassifier, EmbeddingRegressor])
def test_a_loaded_or_copied_model_goes_on_as_the_original_does(cls, tmp_path):
    y = Y if cls is EmbeddingClassifier else NUMBERS
    model = cls(learn=FEW, solver=Tree(150, trees=2, half_life=500), random_state=0).fit(X[:300], y[:300])
    in_parts(model, y, 300, 600, 150)
    save(model, tmp_path / "model.kw")
    others = [load(tmp_path / "model.kw"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for each in (model, *others):
        in_parts(each, y, 600, 700)
    expected = model.predict_proba(X[900:]) if cls is EmbeddingClassifier else model.quantile(X[900:], [0.1, 0.9])
    for each in others:
        found = each.predict_proba(X[900:]) if cls is EmbeddingClassifier else each.quantile(X[900:], [0.1, 0.9])
        np.testing.assert_allclose(found, expected, atol=1e-7)


def test_classes_that_come_later_are_named_in_the_first_call():
    two = Y[:600] < 2
    first, rest = X[:600][two], Y[:600][two]
    model = EmbeddingClassifier(learn=FEW, solver=SOLVER, random_state=0).partial_fit(first, rest, classes=[0, 1, 2])
    assert model.predict_proba(X[:3]).shape == (3, 3)
    assert model.predict_proba(X[:3])[:, 2].max() < 0.05
    in_parts(model, Y, 600, 1200, 300)
    assert (model.predict(X[1200:]) == 2)[Y[1200:] == 2].mean() > 0.8
    with pytest.raises(ValueError, match=r"\[np\.\w+\(7\)\] are new|\[7\] are new"):
        model.partial_fit(X[:2], [0, 7])


def test_a_weight_means_the_same_in_every_call_and_zero_is_ignored():
    def model():
        return EmbeddingClassifier(Gaussian(), learn=None, solver=SOLVER, random_state=0)

    few = np.arange(600) % 3 > 0
    heavy = in_parts(model().fit(X[:300], Y[:300], np.full(300, 5.0)), Y, 300, 600, sample_weight=np.full(600, 5.0))
    np.testing.assert_allclose(heavy.embedding_.rows.weights, 1.0)
    some = model().fit(X[:300], Y[:300]).partial_fit(X[300:600][few[300:]], Y[300:600][few[300:]])
    zeros = model().fit(X[:300], Y[:300]).partial_fit(X[300:600], Y[300:600], sample_weight=few[300:].astype(float))
    np.testing.assert_allclose(zeros.predict_proba(X), some.predict_proba(X))


def test_frames_with_gaps_and_words_grow():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["word"] = np.where(SIGNAL > 0, "high", "low")
    frame.loc[::17, "b"] = np.nan
    noisy = np.where(RNG.random(len(Y)) < 0.1, 0, Y)
    model = EmbeddingClassifier(learn=FEW, solver=SOLVER, random_state=0)
    for start in range(0, 600, 200):
        model.partial_fit(frame[start : start + 200], noisy[start : start + 200])
    assert model.score(frame[1200:], noisy[1200:]) > 0.7
    arrays = X.copy()
    arrays[::17, 1] = np.nan
    model = EmbeddingRegressor(learn=FEW, solver=SOLVER, random_state=0).fit(arrays[:300], NUMBERS[:300])
    assert model.partial_fit(arrays[300:700], NUMBERS[300:700]).score(arrays[1200:], NUMBERS[1200:]) > 0.8


def test_several_targets_and_targets_beyond_the_range():
    both = np.column_stack([NUMBERS, np.abs(NUMBERS)])
    model = EmbeddingRegressor(learn=FEW, solver=SOLVER, random_state=0).fit(X[:400], both[:400])
    model.partial_fit(X[400:800], both[400:800])
    assert model.predict(X[1200:]).shape == (300, 2)
    assert model.score(X[1200:], both[1200:]) > 0.8
    model.partial_fit(X[800:820], 4.0 * both[800:820])
    assert model.targets_.scales[0].thresholds.values[-1] > 4.0 * NUMBERS[800:820].max() * 0.9
    counts = np.round(2 * np.abs(NUMBERS))
    model = EmbeddingRegressor(learn=FEW, solver=SOLVER, random_state=0).fit(X[:400], counts[:400])
    model.partial_fit(X[400:800], counts[400:800] + 9)
    assert 9.0 in model.links_[0].scale.values


def test_a_prior_of_other_rows_stays():
    model = EmbeddingClassifier(learn=Auto(max_iter=2, kernel_share=0.5), solver=SOLVER, random_state=0)
    model.fit(X[:400], Y[:400])
    before = model.prior_
    np.testing.assert_array_equal(model.partial_fit(X[400:500], np.zeros(100, dtype=int)).prior_, before)


def test_what_cannot_grow_says_what_to_do():
    for solver in ("nystroem", "herding", kw.solvers.Landmarks(10)):
        for cls in (EmbeddingClassifier, EmbeddingRegressor):
            assert not hasattr(cls(solver=solver), "partial_fit")
            with pytest.raises(AttributeError, match=r"does not keep all rows.*solver='tree'.*RandomFourier"):
                cls(solver=solver).partial_fit(X, Y)
    given = {"learn": None, "kernel": Gaussian()}
    with pytest.raises(ValueError, match=r"landmarks: these connect all leaves.*landmarks=0"):
        EmbeddingClassifier(solver=Tree(100, landmarks=20), **given).fit(X, Y).partial_fit(X, Y)
    with pytest.raises(ValueError, match="with 'groups'"):
        EmbeddingClassifier(**given).fit(X, Y, groups=np.arange(1500) // 2).partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"solver_='compressed'.*solver='tree'"):
        EmbeddingClassifier(**given).fit(X[:300], Y[:300]).compress().partial_fit(X, Y)
    with pytest.raises(ValueError, match="a matrix of kernel values"):
        EmbeddingClassifier("precomputed").partial_fit(np.eye(20), Y[:20])
    with pytest.raises(ValueError, match=r"in memory\. Got a csr"):
        EmbeddingClassifier().partial_fit(scipy.sparse.csr_matrix(X), Y)
    words = ["abab", "baba", "aabb", "bbaa"] * 5
    with pytest.raises(ValueError, match="dense rows of numbers"):
        EmbeddingClassifier(Spectrum(2), learn=None).fit(words, [0, 1] * 10).partial_fit(words, [0, 1] * 10)
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows"):
        EmbeddingClassifier(class_weight="balanced", **given).fit(X, Y).partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"had 1 targets\. Got 2"):
        EmbeddingRegressor(**given).fit(X[:200], NUMBERS[:200]).partial_fit(X, np.column_stack([NUMBERS, NUMBERS]))
    for wrong in ({"max_age": 0}, {"half_life": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            EmbeddingClassifier(solver=Tree(**wrong)).partial_fit(X, Y)


def test_a_fault_in_a_call_leaves_the_model_as_it_was():
    model = EmbeddingClassifier(learn=FEW, solver=SOLVER, random_state=0).fit(X[:300], Y[:300])
    in_parts(model, Y, 300, 400)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="are new"):
        model.partial_fit(X[:3], [0, 1, 9])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:3, :2], [0, 1, 1])
    np.testing.assert_array_equal(model.predict_proba(X), before)
    in_parts(model, Y, 400, 500)
    again = in_parts(EmbeddingClassifier(learn=FEW, solver=SOLVER, random_state=0).fit(X[:300], Y[:300]), Y, 300, 500)
    np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(X), atol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clone(model).solver == SOLVER or repr(clone(model).solver) == repr(SOLVER)


def test_features_still_take_batches_as_sums():
    model = EmbeddingClassifier(features=features.RandomFourier(50), learn=learning.Given(), random_state=0)
    model.partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
    assert model.embedding_.sums.n_rows == 1500
