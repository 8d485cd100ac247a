"""A logistic regression beside an embedding."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from kernelwright import EmbeddingClassifier
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import Gaussian
from kernelwright.learning import Auto
from kernelwright.uncertainty import line as module
from kernelwright.uncertainty.line import fit_line, fit_lines, log_loss, pooled, weight_of_line


def drawn(n: int, d: int = 4, m: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, m)) + rng.gumbel(size=(n, m))).argmax(1)


def training_set(X: np.ndarray, y: np.ndarray, **more) -> TrainingSet:
    points = torch.from_numpy(TableViews().fit_transform(X))
    return TrainingSet.of(points, torch.from_numpy(np.eye(int(y.max()) + 1)[y]), **more)


@pytest.mark.parametrize(("n", "d"), [(90, 4), (30, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("m", [2, 3])
def test_slopes_are_those_of_scikit_learn(n, d, m, monkeypatch):
    monkeypatch.setattr(module, "SEARCH", {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9})
    X, y = drawn(n, d, m)
    X = np.hstack([X, X[:, :1]])  # collinear
    w = np.random.default_rng(1).uniform(0.5, 2.0, (n, 2))
    w[: n // 5, 0] = 0.0  # a fold that is left out
    targets = torch.from_numpy(np.eye(m)[y])
    for penalty, (slopes, intercepts) in zip(
        (10.0, 1.0), fit_lines(torch.from_numpy(X), targets, torch.from_numpy(w), (10.0, 1.0)), strict=True
    ):
        for column in range(2):
            # The doubt in the targets, as rows of the other classes.
            doubt = 0.3 / (w[:, -1].sum() + 0.3)
            rows = np.vstack([X] * m)
            labels = np.repeat(np.arange(m), n)
            shares = np.concatenate([w[:, column] * ((1 - doubt) * (y == k) + doubt / m) for k in range(m)])
            # Two classes have one column of slopes there, the difference of ours.
            strength = 1.0 / penalty if m > 2 else 2.0 / penalty
            other = LogisticRegression(C=strength, tol=1e-8, max_iter=5000).fit(rows, labels, shares)
            ours = torch.from_numpy(X) @ slopes[:, column] + intercepts[column]
            expected = other.predict_proba(X)
            np.testing.assert_allclose(torch.softmax(ours, 1), expected, atol=1e-4)


def test_rows_are_left_out_with_their_groups():
    """Labels are noise, but each row has two copies: only whole groups left out show that nothing can be learned."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 30)), 3, 0) + 0.01 * rng.normal(size=(180, 30))
    y, groups = np.repeat(rng.integers(2, size=60), 3), torch.arange(60).repeat_interleave(3)
    losses = []
    for data in (training_set(X, y, groups=groups), training_set(X, y)):
        line = fit_line(data, data, torch.full_like(data.targets, 0.5).log())
        assert line is not None
        losses.append(log_loss(line.left_out, data))
    assert losses[0] > np.log(2) - 0.06  # chance
    assert losses[1] < np.log(2) - 0.3


def test_left_out_log_loss_is_that_of_new_rows():
    X, y = drawn(400, d=20, m=2)
    views = TableViews().fit(X[:200])
    data = TrainingSet.of(torch.from_numpy(views.transform(X[:200])), torch.from_numpy(np.eye(2)[y[:200]]))
    new = TrainingSet.of(torch.from_numpy(views.transform(X[200:])), torch.from_numpy(np.eye(2)[y[200:]]))
    line = fit_line(data, data, torch.full_like(data.targets, 0.5).log())
    assert line is not None
    assert log_loss(line.left_out, data) == pytest.approx(log_loss(line.log(new.points), new), abs=0.1)
    assert log_loss(line.log(data.points), data) < log_loss(line.left_out, data) - 0.02


@pytest.mark.parametrize("seed", range(5))
def test_pooled_log_loss_is_hardly_above_the_better_one(seed):
    """The better one is not known beforehand: its name is drawn."""
    rng = np.random.default_rng(seed)
    n = 300
    logits = 2.0 * rng.normal(size=(2 * n, 3))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    noise = (0.3, 3.0) if seed % 2 else (3.0, 0.3)
    both = [torch.from_numpy(logits + s * rng.normal(size=logits.shape)).log_softmax(1) for s in noise]
    rows = [
        TrainingSet.of(torch.zeros(n, 2), torch.from_numpy(np.eye(3)[y[part]]))
        for part in np.split(np.arange(2 * n), 2)
    ]
    weight = weight_of_line(*(p[:n] for p in both), rows[0])
    losses = [log_loss(p[n:], rows[1]) for p in both]
    assert log_loss(pooled(*(p[n:] for p in both), weight), rows[1]) < min(losses) + 0.01


def test_a_useless_line_is_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X.prod(1) > 0).astype(int)
    data = training_set(X, y)
    sure = torch.from_numpy(np.where(np.eye(2)[y] > 0, 0.9, 0.1)).log()
    assert fit_line(data, data, sure) is None


def test_a_classifier_follows_a_line_where_one_is_true():
    X, y = drawn(1200, d=30, m=2, seed=3)
    slopes = np.random.default_rng(4).normal(size=30)
    y = (X @ slopes > 0).astype(int)
    model = EmbeddingClassifier(random_state=0).fit(X[:200], y[:200])
    plain = EmbeddingClassifier(random_state=0, probability="power").fit(X[:200], y[:200])
    assert plain.link_.line is None
    assert model.link_.line is not None
    np.testing.assert_array_equal(model.raw_outputs(X), plain.raw_outputs(X))
    p = model.predict_proba(X[200:])
    np.testing.assert_array_equal(model.predict(X[200:]), p.argmax(1))
    own = torch.from_numpy(model.raw_outputs(X[200:]))
    of_line = model.line_log_p(X[200:])
    expected = model.link_(own, torch.from_numpy(model.support(X[200:])), of_line).exp()
    np.testing.assert_allclose(p, expected, rtol=1e-12)
    assert model.score(X[200:], y[200:]) > plain.score(X[200:], y[200:]) + 0.005
    with pytest.raises(ValueError, match="has a line"):
        model.link_(own, torch.ones(len(own)))


@pytest.mark.parametrize("how", [{"kernel": Gaussian()}, {"learn": Auto(trend=False)}, {"learn": "leave-one-out"}])
def test_there_is_no_line_beside_a_given_kernel_or_method(how):
    X, y = drawn(60, m=2)
    assert EmbeddingClassifier(random_state=0, **how).fit(X, y).link_.line is None
