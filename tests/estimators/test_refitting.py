"""Models of all rows except one part, against models fitted by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_moons

from kernelwright import EmbeddingClassifier
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.calibrating import calibrate
from kernelwright.estimators.checking import plan_of
from kernelwright.estimators.refitting import refitted_losses, without_parts
from kernelwright.features import RandomFourier
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian
from kernelwright.learning import LBFGS, Given, LeaveOneOut
from kernelwright.solvers import Landmarks

X, Y = make_moons(60, noise=0.25, random_state=0)
TWO = ClassTargets(2)


def rows(x=X, y=Y, weights=None, groups=None):
    weights, groups = (None if each is None else torch.from_numpy(each) for each in (weights, groups))
    return TrainingSet.of(torch.from_numpy(x), TWO.encode(y), weights=weights, groups=groups)


def taught(model, data, n_parts=5, balanced=False):
    def new_plan():
        return replace(plan_of(model), targets=TWO)

    outputs, log_p = without_parts(
        data, n_parts, new_plan, lambda *found: calibrate(*found, model.probability), balanced=balanced
    )
    return outputs.numpy(), log_p.numpy(), data.random_parts(n_parts, generator(model.random_state)).numpy()


@pytest.mark.parametrize("learn", [None, LeaveOneOut(optimizer=LBFGS(3)), "auto"], ids=["given", "one", "auto"])
@pytest.mark.parametrize("groups", [None, np.arange(60) // 3], ids=["rows", "groups"])
def test_each_row_is_told_by_a_model_of_the_other_parts(learn, groups):
    model = EmbeddingClassifier(Gaussian(0.7), learn=learn, ridge=0.02, random_state=3)
    outputs, log_p, parts = taught(model, rows(groups=groups))
    assert set(parts) == set(range(5))
    if groups is not None:
        assert all(len(set(parts[groups == name])) == 1 for name in range(20))
    for part in range(5):
        held = parts == part
        own = None if groups is None else groups[~held]
        other = clone(model).fit(X[~held], Y[~held], groups=own)
        np.testing.assert_allclose(outputs[held], other.raw_outputs(X[held]), atol=1e-7)
        np.testing.assert_allclose(log_p[held], other.predict_log_proba(X[held]), atol=1e-6)


@pytest.mark.parametrize("balanced", [False, True])
def test_balanced_classes_weigh_the_same_in_every_part(balanced):
    few = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:10]]
    x, y = X[few], Y[few]
    weights = np.where(y == 1, 20 / 10, 20 / 30)  # of "balanced": both classes weigh as much
    model = EmbeddingClassifier(Gaussian(0.7), learn=None, ridge=0.02, random_state=3)
    outputs, _, parts = taught(model, rows(x, y, weights), 4, balanced)
    for part in range(4):
        held = parts == part
        w = weights[~held]
        if balanced:
            w = 1.0 / np.bincount(y[~held])[y[~held]]
        other = clone(model).fit(x[~held], y[~held], sample_weight=w)
        np.testing.assert_allclose(outputs[held], other.raw_outputs(x[held]), atol=1e-8)


def test_where_one_class_is_left_the_answer_is_its_frequency():
    y = np.r_[1, np.zeros(59, dtype=int)]
    model = EmbeddingClassifier(Gaussian(0.7), learn=None, random_state=3)
    outputs, log_p, parts = taught(model, rows(y=y))
    held = parts == parts[0]  # without the only row of its class
    np.testing.assert_array_equal(outputs[held], 0.0)
    n = (~held).sum()
    np.testing.assert_allclose(np.exp(log_p[held]), np.tile([(n + 0.5) / (n + 1), 0.5 / (n + 1)], (held.sum(), 1)))


def test_losses_of_all_rows_by_models_without_them():
    model = EmbeddingClassifier(Gaussian(0.7), learn=None, ridge=0.02, random_state=3).fit(X, Y)
    found, n_parts = refitted_losses(model, TWO)
    assert n_parts == 10
    order = np.argsort(model.embedding_.rows.place)  # points are sorted
    _, log_p, _ = taught(model, rows(X[order], Y[order]), 10)
    assert found["error"].mean == pytest.approx((log_p.argmax(1) != Y[order]).mean())
    assert 0.0 < found["error"].mean < 0.5
    few = clone(model).fit(X, Y, groups=np.arange(60) % 4)
    assert refitted_losses(few, TWO)[1] == 4


@pytest.mark.parametrize(
    ("options", "inputs"),
    [
        ({"kernel": Gaussian(), "solver": Landmarks(20)}, X),
        ({"features": RandomFourier(20)}, X),
        ({"kernel": "precomputed"}, Gaussian(0.7)(X)),
        ({"kernel": Gaussian(), "learn": Given(kernel_share=0.5)}, X),
    ],
    ids=["landmarks", "features", "precomputed", "a kernel of other rows"],
)
def test_there_are_none_where_they_cannot_be_had(options, inputs):
    model = EmbeddingClassifier(**({"learn": None, "random_state": 0} | options)).fit(inputs, Y)
    assert refitted_losses(model, TWO) == ({}, 0)


def test_there_are_none_of_many_rows(monkeypatch):
    model = EmbeddingClassifier(Gaussian(), learn=None).fit(X, Y)
    assert refitted_losses(model, TWO)[1] == 10
    monkeypatch.setattr("kernelwright.estimators.refitting.REFITTED_UP_TO", 59)
    assert refitted_losses(model, TWO) == ({}, 0)


def test_nothing_of_the_model_is_changed():
    steps = []
    model = EmbeddingClassifier(
        Gaussian(0.7), learn=LeaveOneOut(optimizer=LBFGS(2)), callback=steps.append, random_state=0
    ).fit(X, Y)
    seen, before = len(steps), model.predict_proba(X)
    lengthscale = model.kernel_.get_params()["lengthscale"]
    refitted_losses(model, TWO)
    assert len(steps) == seen  # the user's callback is of the fit that was asked for
    assert model.kernel_.get_params()["lengthscale"] == lengthscale
    assert model.kernel.get_params()["lengthscale"] == 0.7
    np.testing.assert_array_equal(model.predict_proba(X), before)
