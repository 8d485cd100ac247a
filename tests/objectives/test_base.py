"""From hyperparameters to a value and its gradient, against autograd through a factorisation."""

import math

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian, Laplace, Tabular
from kernelwright.numerics import distances
from kernelwright.numerics.linalg import Workspace
from kernelwright.objectives import Hyperparameters, Objective, objective_named
from tests import reference as naive
from tests.cases import Case
from tests.objectives.problem import (
    EPSILON,
    LABELS,
    RIDGE,
    TAU,
    WEIGHTS,
    M,
    N,
    X,
    Y,
    assert_gradients_close,
    each_loss,
    each_objective,
    kernels,
    settings,
    weightings,
)


@each_objective
@each_loss
def test_value_with_a_prior_equals_the_naive_one(name, loss):
    prior, kernel = np.array([0.5, 0.3, 0.2]), Gaussian(1.5)
    data = TrainingSet.of(
        torch.from_numpy(X), one_hot(LABELS, M), weights=torch.from_numpy(WEIGHTS), prior=torch.from_numpy(prior)
    )
    how = objective_named(name, complexity_weight=TAU, loss=loss, epsilon=EPSILON)
    found = how(Hyperparameters(kernel, RIDGE), data)
    K = naive.gram(naive.gaussian(1.5), X)
    expected = naive.objective(name, K, Y, WEIGHTS, RIDGE, **settings(loss=loss, sup=1.0, prior=prior))
    assert found.value == pytest.approx(expected, rel=1e-9)


def autograd(
    name: str, hyper: Hyperparameters, data: TrainingSet, how: Objective, loss: str
) -> tuple[float, dict[str, torch.Tensor]]:
    ridge = hyper.ridge
    value = naive.torch_objective(
        name,
        hyper.kernel.forward(data.points),
        data.targets,
        data.weights,
        ridge,
        sup=hyper.kernel.sup_diag(data.points),
        prior=data.prior,
        **settings(loss=loss, tau=how.complexity_weight),
    )
    away = (torch.log(ridge * data.total_weight) - math.log(5.0)) / 2.0  # the absolute ridge is drawn to 5
    value = value + how.shrinkage / data.total_weight * (hyper.kernel.penalty() + torch.log(1 + 0.5 * away**2))
    raw = dict(hyper.named_parameters())
    grads = torch.autograd.grad(value, list(raw.values()), allow_unused=True)
    return float(value.detach()), {
        key: torch.zeros_like(p) if g is None else g for (key, p), g in zip(raw.items(), grads, strict=True)
    }


@each_objective
@each_loss
@weightings
@kernels(
    "gaussian-vector",
    "laplace-vector",
    "matern-0.5",
    "rational-quadratic-vector",
    "linear",
    "polynomial",
    "cosine",
    "unbounded-sum",
    "convex-sum",
    "nested",
    "nested-scalars",
    "tabular",
    "tabular-one-scale",
    "tabular-nested",
)
def test_gradient_equals_autograd_through_a_cholesky_factor(name, loss, w, case: Case):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M), weights=None if w is None else torch.from_numpy(w))
    hyper = Hyperparameters(case.make(), RIDGE)
    how = objective_named(name, complexity_weight=TAU, loss=loss, epsilon=EPSILON)
    found = how(hyper, data)
    value, expected = autograd(name, hyper, data, how, loss)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert_gradients_close(found.gradients, expected)


@each_objective
@each_loss
@kernels("gaussian-vector", "tabular", "nested")
def test_gradient_with_prior_and_shrinkage_equals_autograd(name, loss, case: Case):
    data = TrainingSet.of(
        torch.from_numpy(X),
        one_hot(LABELS, M),
        weights=torch.from_numpy(WEIGHTS),
        prior=torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64),
    )
    hyper = Hyperparameters(case.make(), RIDGE)
    how = objective_named(name, complexity_weight=TAU, loss=loss, epsilon=EPSILON, shrinkage=0.8)
    found = how(hyper, data)
    value, expected = autograd(name, hyper, data, how, loss)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert_gradients_close(found.gradients, expected)


@each_objective
def test_gradient_is_the_same_through_the_compiled_loops(name, monkeypatch):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M))
    hyper = Hyperparameters(Tabular([0.7, 1.3]), RIDGE)
    how = objective_named(name, complexity_weight=TAU, loss="brier")
    results = []
    for compiled_from in (0, 10**12):
        monkeypatch.setattr(distances, "COMPILED_FROM", compiled_from)
        results.append(how(hyper, data).gradients)
    assert_gradients_close(*results, tol=1e-10)


@each_objective
def test_a_frozen_parameter_has_no_gradient_and_changes_no_other(name):
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M))
    how = objective_named(name, complexity_weight=TAU, loss="brier")
    free, frozen = (Hyperparameters(2.0 * Gaussian(1.5) + Laplace(2.0), RIDGE) for _ in range(2))
    frozen.kernel.left.kernel.log_lengthscale.requires_grad_(False)
    expected = how(free, data).gradients
    expected.pop("kernel.left.kernel.log_lengthscale")
    assert_gradients_close(how(frozen, data).gradients, expected, tol=1e-12)


def test_parts_of_an_evaluation_add_up():
    data = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M))
    kernel = Gaussian([0.5, 1.0, 2.0, 4.0])
    found = objective_named("rademacher", complexity_weight=TAU, shrinkage=1.0)(Hyperparameters(kernel, RIDGE), data)
    caution = math.log(1 + 0.5 * (math.log(RIDGE * N / 5.0) / 2.0) ** 2)
    penalty = (float(kernel.penalty().detach()) + caution) / N
    assert found.value == pytest.approx(found.loss + TAU * found.complexity + penalty, rel=1e-12)
    K = naive.gram(naive.gaussian([0.5, 1.0, 2.0, 4.0]), X)
    assert found.complexity == pytest.approx(
        math.sqrt(naive.squared_norm(K, Y, naive.noise(np.ones(N), RIDGE))), rel=1e-9
    )


@pytest.mark.parametrize("name", ["rademacher", "leave-one-out", "folds"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5, ard=True), Laplace(3.0), Gaussian(1.0) + Laplace(2.0)])
def test_a_workspace_changes_nothing_but_where_numbers_lie(name, kernel):
    rng, workspace = np.random.default_rng(1), Workspace()
    for n in (40, 40, 25):  # other numbers in the same memory, then another size
        data = TrainingSet.of(torch.from_numpy(rng.normal(size=(n, 3))), one_hot(np.arange(n) % 3, 3))
        kernel.prepare_(data.points)
        hyper, objective = Hyperparameters(kernel, 0.01), objective_named(name, complexity_weight=0.1)
        plain, reused = objective(hyper, data), objective(hyper, data, workspace)
        assert reused.value == pytest.approx(plain.value, rel=1e-12)
        for parameter, gradient in plain.gradients.items():
            np.testing.assert_allclose(reused.gradients[parameter], gradient, rtol=1e-9, atol=1e-12)
