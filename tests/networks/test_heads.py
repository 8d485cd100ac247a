"""Network heads: against autograd through a plain solve, and the sum over mini-batches against one solve."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from kernelwright.embedding import TrainingSet
from kernelwright.embedding.primal import Moments
from kernelwright.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from kernelwright.networks.heads import BatchObjective, EmbeddingNetwork, KernelHead, LinearHead
from kernelwright.objectives import ClippedLogLoss, HeldOutObjective, RademacherObjective
from kernelwright.objectives.splits import LastRows

M, RIDGE = 3, 0.05
weightings = pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weights"])
scorings = pytest.mark.parametrize("scored", [0.0, 0.4], ids=["all rows", "a part"])
intercepts = pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])


def goal(tau, epsilon, sup=None, scored=0.0):
    loss = ClippedLogLoss(epsilon)
    objective = HeldOutObjective(loss=loss, folds=LastRows(scored)) if scored else RademacherObjective(loss=loss)
    return BatchObjective(objective, tau, sup)


def problem(n=14, p=5, weighted=False):
    rng = np.random.default_rng(0)
    Z = torch.from_numpy(rng.normal(size=(n, p))).requires_grad_()
    targets = torch.eye(M, dtype=torch.float64)[torch.from_numpy(rng.integers(0, M, n))]
    weights = torch.from_numpy(rng.uniform(0.3, 3.0, n)) if weighted else None
    return Z, TrainingSet.of(Z.detach(), targets, weights=weights)


def by_autograd(K_of, Z, data, log_ridge, bound, scored):
    """Compute the published Eqs. (12) and (13), differentiated through ``torch.linalg.solve``."""
    n_scored = round(scored * len(Z))
    T = slice(len(Z) - n_scored)
    B = slice(len(Z) - n_scored, None) if n_scored else slice(None)
    K, w = K_of(Z), data.weights
    A = K[T, T] + torch.diag(log_ridge.exp() * w[T].sum() / w[T])
    V = torch.linalg.solve(A, data.targets[T])
    own = ((K[B, T] @ V) * data.targets[B]).sum(1)
    loss = -(w[B] / w[B].sum() * own.clamp(bound.objective.loss.epsilon, 1.0).log()).sum()
    sup = K.diagonal().max() if bound.sup is None else bound.sup
    r = torch.sqrt(sup * torch.trace(V.T @ K[T, T] @ V))
    return loss, r, torch.autograd.grad(loss + bound.tau * r, [Z, log_ridge])


def same(head, K_of, weighted, p=5, *, sup=None, scored=0.0):
    bound = goal(0.3, 1e-3, sup, scored)
    Z, data = problem(p=p, weighted=weighted)
    parts = head.backward(Z, data, bound)
    log_ridge = torch.tensor(math.log(RIDGE), dtype=torch.float64, requires_grad=True)
    again = Z.detach().requires_grad_()
    loss, r, (d_Z, d_log_ridge) = by_autograd(K_of, again, data, log_ridge, bound, scored)
    assert parts.loss == pytest.approx(float(loss.detach()), rel=1e-9)
    assert parts.complexity == pytest.approx(float(r.detach()), rel=1e-9)
    assert parts.value == pytest.approx(float((loss + bound.tau * r).detach()), rel=1e-9)
    np.testing.assert_allclose(Z.grad, d_Z, rtol=1e-7, atol=1e-10)
    assert float(head.log_ridge.grad) == pytest.approx(float(d_log_ridge), rel=1e-7)


@weightings
@scorings
@intercepts
@pytest.mark.parametrize("p", [5, 30], ids=["tall", "wide"])
@pytest.mark.parametrize("sup", [None, 40.0], ids=["empirical", "given"])
def test_linear_head_equals_autograd_through_a_plain_solve(weighted, scored, intercept, p, sup):
    head = LinearHead(RIDGE, intercept=intercept)
    same(head, lambda Z: Z @ Z.T + float(intercept), weighted, p, sup=sup, scored=scored)


KERNELS = [Gaussian(2.0), Laplace(5.0), Matern(3.0, nu=1.5), Polynomial(degree=2), 2.0 * Gaussian(1.5, ard=True) + 0.5]


@weightings
@scorings
@intercepts
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernel_head_equals_autograd_through_a_plain_solve(weighted, scored, intercept, kernel):
    kernel.prepare_(problem()[0].detach())
    head = KernelHead(kernel, RIDGE, intercept=intercept)
    head.zero_grad()
    same(head, lambda Z: kernel(Z) + float(intercept), weighted, scored=scored)


def test_kernel_head_learns_the_numbers_of_its_kernel():
    Z, data = problem()
    head = KernelHead(Gaussian(2.0), RIDGE)
    head.backward(Z, data, goal(0.3, 1e-3))
    step = 1e-5
    values = []
    for sign in (1, -1):
        moved = KernelHead(Gaussian(2.0 * math.exp(sign * step)), RIDGE)
        values.append(moved.backward(Z.detach(), data, goal(0.3, 1e-3)).value)
    assert float(head.kernel.log_lengthscale.grad) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5)


def test_limits_of_what_a_head_learns():
    head = KernelHead(Gaussian(2.0), RIDGE)
    with torch.no_grad():
        head.log_ridge.fill_(-99.0)
        head.kernel.log_lengthscale.fill_(99.0)
    head.keep_in_limits()
    assert head.ridge.item() == pytest.approx(1e-10)
    assert head.kernel.lengthscale.item() == pytest.approx(1e5)


def test_single_precision_features_are_solved_in_double():
    Z, data = problem(60, 8)
    exact = LinearHead(RIDGE).backward(Z, data, goal(0.1, 0.1))
    single = Z.detach().float().requires_grad_()
    rough = LinearHead(RIDGE).backward(single, data, goal(0.1, 0.1))
    assert rough.value == pytest.approx(exact.value, rel=1e-5)
    assert single.grad.dtype == torch.float32
    np.testing.assert_allclose(single.grad, Z.grad, rtol=1e-3, atol=1e-6)


def test_features_that_are_all_zero_have_finite_gradients():
    Z, data = problem()
    dead = torch.zeros_like(Z).requires_grad_()
    parts = LinearHead(RIDGE, intercept=False).backward(dead, data, goal(0.3, 0.1))
    assert parts.complexity == pytest.approx(0.0, abs=1e-100)
    assert torch.isfinite(dead.grad).all()


# The embedding of all rows ---------------------------------------------------------------------------------------


def linear_solution(batch_rows, monkeypatch, choose_ridge=False):
    monkeypatch.setattr("kernelwright.networks.heads.BLOCK_ROWS", batch_rows)
    _, data = problem(40, 5, weighted=True)
    network = EmbeddingNetwork(nn.Sequential(nn.Dropout(0.5)).double(), LinearHead(RIDGE))
    return data, network.train(), network.head.solve(network, data, torch.arange(40), choose_ridge=choose_ridge)


@pytest.mark.parametrize("batch_rows", [1, 7, 100])
def test_the_sum_over_batches_equals_one_solve(batch_rows, monkeypatch):
    data, network, solution = linear_solution(batch_rows, monkeypatch)
    Z, w = np.column_stack([data.points.float().numpy(), np.ones(40)]).astype(float), data.weights.numpy()
    S = Z.T @ (w[:, None] * Z) + RIDGE * w.sum() * np.eye(6)
    W = np.linalg.solve(S, Z.T @ (w[:, None] * data.targets.numpy()))
    np.testing.assert_allclose(solution.coefficients, W, rtol=1e-9, atol=1e-11)
    assert solution.largest == pytest.approx((Z**2).sum(1).max())
    assert solution.squared_norm == pytest.approx((W**2).sum())
    assert network.training  # as it was before


def test_left_out_outputs_are_those_of_the_other_rows():
    Z, data = problem()
    Z, Y = Z.detach(), data.targets
    w = torch.tensor([1.0] * 6 + [0.5] * 4 + [3.0] * 4, dtype=torch.float64)
    moments = Moments.of(Z, Y, w)
    left_out = moments.left_out(moments.factor(RIDGE), Z, TrainingSet.of(Z, Y, weights=w))
    for i in range(len(Z)):
        rest = w.clone()
        rest[i] = 0.0
        S = Z.T @ (rest[:, None] * Z) + RIDGE * w.sum() * torch.eye(5, dtype=torch.float64)
        W = torch.linalg.solve(S, Z.T @ (rest[:, None] * Y))
        np.testing.assert_allclose(left_out[i], Z[i] @ W, rtol=1e-9, atol=1e-10)


def test_a_better_ridge_is_found(monkeypatch):
    learned = linear_solution(100, monkeypatch)[2]
    _, _, chosen = linear_solution(100, monkeypatch, choose_ridge=True)
    ratio = math.log10(chosen.ridge / learned.ridge)
    assert ratio == pytest.approx(round(2 * ratio) / 2)
    assert abs(ratio) <= 3


def test_linear_and_kernel_heads_have_one_solution():
    _, data = problem(30, 4, weighted=True)
    outputs = []
    for head in (LinearHead(RIDGE), KernelHead(Linear(), RIDGE)):
        network = EmbeddingNetwork(nn.Linear(4, 3).double(), head)
        with torch.no_grad():
            network.module.weight.copy_(torch.arange(12).reshape(3, 4) / 6 - 1)
            network.module.bias.zero_()
        solved = head.solve(network, data, torch.arange(30), choose_ridge=False)
        new, _ = head.apply_solution(network.features(data.points), solved.coefficients, solved.points, solved.support)
        outputs.append((new, solved.left_out, solved.squared_norm, solved.largest))
    for linear, kernel in zip(*outputs, strict=True):
        np.testing.assert_allclose(linear, kernel.detach() if torch.is_tensor(kernel) else kernel, rtol=1e-8, atol=1e-9)
