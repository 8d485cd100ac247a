"""Both forms of every objective, for features Z and for the kernel matrix Z Z^T, against autograd."""

import numpy as np
import pytest
import torch

from kernelwright.numerics.products import Outer
from kernelwright.objectives import HeldOutObjective, RademacherObjective, objective_named
from kernelwright.objectives.losses import BRIER, loss_named
from kernelwright.objectives.primal import split_terms
from kernelwright.objectives.splits import LastRows
from kernelwright.objectives.terms import Setting
from tests import reference as naive
from tests.objectives.problem import EPSILON, GROUPS, PRIOR, RIDGE, TAU, WEIGHTS, N, each_objective, rows

SUP = 3.7  # any number: it need not be the largest of these
NARROW, WIDE = 5, N + 6
COUNTS = np.where(np.arange(N) % 4 == 1, 3.0, 1.0)
LOSSES = {"log": loss_named("log", EPSILON), "brier": BRIER, "calibrated": loss_named("calibrated")}

each_width = pytest.mark.parametrize("width", [NARROW, WIDE], ids=["p < n", "p > n"])
columns = pytest.mark.parametrize(
    "given",
    [
        {},
        {"weights": WEIGHTS},
        {"prior": PRIOR},
        {"weights": WEIGHTS, "prior": PRIOR},
        {"groups": GROUPS},
        {"weights": WEIGHTS, "groups": GROUPS, "prior": PRIOR},
        {"weights": WEIGHTS * COUNTS, "counts": COUNTS, "prior": PRIOR},
    ],
    ids=lambda given: "+".join(given) or "plain",
)


def features(width: int, n: int = N) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(width).normal(size=(n, width)) / np.sqrt(width))


def both(objective, data, Z, loss, ridge=RIDGE):
    at = Setting(ridge, objective.tau(data), SUP, loss)
    return objective.dual(Z @ Z.T, data, at), objective.primal(Z, data, at)


def slope_in_features(d_kernel, Z):
    """Compute ``dq/dZ`` from ``dq/dK`` for ``K = Z Z^T``; a gradient in K need not be symmetric."""
    d_K = d_kernel.dense() if isinstance(d_kernel, Outer) else d_kernel
    return (d_K + d_K.T) @ Z


@each_objective
@each_width
@columns
@pytest.mark.parametrize("loss", LOSSES)
def test_both_forms_agree(name, width, given, loss):
    objective = objective_named(name, complexity_weight=TAU)
    data = objective.arranged(rows(**given))
    Z = features(width, len(data))
    dual, primal = both(objective, data, Z, LOSSES[loss])
    assert primal.loss == pytest.approx(dual.loss, rel=1e-9)
    assert primal.complexity == pytest.approx(dual.complexity, rel=1e-9)
    assert primal.d_ridge == pytest.approx(dual.d_ridge, rel=1e-7, abs=1e-9)
    assert primal.d_sup == pytest.approx(dual.d_sup, rel=1e-9)
    expected = slope_in_features(dual.d_kernel, Z)
    torch.testing.assert_close(primal.d_features, expected, rtol=1e-7, atol=1e-8 * float(expected.abs().max()))


@each_objective
@each_width
@columns
@pytest.mark.parametrize("loss", ["log", "brier"])
def test_both_forms_equal_autograd_through_refits(name, width, given, loss):
    """Rows that were merged are apart in the refits, which share their features."""
    objective = objective_named(name, complexity_weight=TAU)
    data = objective.arranged(rows(**given))
    Z = features(width, len(data))
    terms = dict(zip(("dual", "primal"), both(objective, data, Z, LOSSES[loss]), strict=True))

    z, ridge = Z.clone().requires_grad_(), torch.tensor(RIDGE, dtype=torch.float64, requires_grad=True)
    apart = torch.arange(len(data))
    if data.counts is not None:
        apart = apart.repeat_interleave(data.counts.long())
    refitted = data.unmerged()
    folds = (
        np.sort(refitted.folds(2))
        if name not in ("rademacher", "empirical-risk", "leave-one-out")
        else np.zeros(len(refitted))
    )
    value = naive.torch_objective(
        name,
        z[apart] @ z[apart].T,
        refitted.targets,
        refitted.weights,
        ridge,
        tau=TAU,
        sup=torch.tensor(SUP, dtype=torch.float64),
        loss=loss,
        epsilon=EPSILON,
        folds=folds,
        prior=data.prior,
        groups=None if data.groups is None else data.groups.numpy(),
    )
    d_z, d_ridge = torch.autograd.grad(value, [z, ridge])
    tol = {"rtol": 1e-7, "atol": 1e-8 * float(d_z.abs().max())}
    for form, found in terms.items():
        total = found.loss + objective.tau(data) * found.complexity
        assert total == pytest.approx(float(value.detach()), rel=1e-9), form
        assert found.d_ridge == pytest.approx(float(d_ridge), rel=1e-6, abs=1e-9), form
    torch.testing.assert_close(slope_in_features(terms["dual"].d_kernel, Z), d_z, **tol)
    torch.testing.assert_close(terms["primal"].d_features, d_z, **tol)


@pytest.mark.parametrize("share", [0.25, 0.6])
def test_both_forms_agree_where_the_last_rows_are_held_out(share):
    objective, data, Z = (
        HeldOutObjective(TAU, folds=LastRows(share)),
        rows(weights=WEIGHTS, prior=PRIOR),
        features(NARROW),
    )
    dual, primal = both(objective, data, Z, BRIER)
    assert primal.loss == pytest.approx(dual.loss, rel=1e-9)
    assert primal.d_ridge == pytest.approx(dual.d_ridge, rel=1e-7)
    torch.testing.assert_close(primal.d_features, slope_in_features(dual.d_kernel, Z), rtol=1e-7, atol=1e-10)


@each_objective
def test_the_slope_in_sup_is_that_of_the_value(name):
    objective = objective_named(name, complexity_weight=TAU)
    data = objective.arranged(rows(weights=WEIGHTS))
    Z, tau = features(NARROW), objective.tau(data)

    def value(sup):
        terms = objective.primal(Z, data, Setting(RIDGE, tau, sup, BRIER))
        return terms.loss + tau * terms.complexity

    found = objective.primal(Z, data, Setting(RIDGE, tau, SUP, BRIER)).d_sup
    assert found == pytest.approx((value(SUP + 1e-5) - value(SUP - 1e-5)) / 2e-5, rel=1e-6, abs=1e-10)


@each_objective
@pytest.mark.parametrize("given", [{}, {"weights": WEIGHTS}, {"groups": GROUPS}], ids=["plain", "weights", "groups"])
def test_what_is_given_is_left_as_it_was(name, given):
    objective = objective_named(name, complexity_weight=TAU)
    data = objective.arranged(rows(**given))
    Z = features(NARROW)
    K, at = Z @ Z.T, Setting(RIDGE, TAU, SUP, BRIER)
    before = [each.clone() for each in (Z, K, data.targets, data.weights)]
    objective.dual(K, data, at)
    objective.primal(Z, data, at)
    assert all(torch.equal(*pair) for pair in zip((Z, K, data.targets, data.weights), before, strict=True))


def test_features_in_single_precision_are_solved_in_double():
    data, Z = rows(weights=WEIGHTS), features(NARROW)
    at = Setting(RIDGE, TAU, SUP, BRIER)
    single, double = (RademacherObjective(TAU).primal(z, data, at) for z in (Z.float(), Z))
    assert single.loss == pytest.approx(double.loss, rel=1e-5)
    torch.testing.assert_close(single.d_features.double(), double.d_features, rtol=1e-3, atol=1e-5)


def test_shares_weigh_the_parts_of_a_split():
    data, Z, at = rows(), features(NARROW), Setting(RIDGE, TAU, SUP, BRIER)
    whole = split_terms(Z, data, at, noise=1.0)
    part = split_terms(Z, data, at, noise=1.0, loss_share=0.3, complexity_share=0.3)
    assert (part.loss, part.complexity) == pytest.approx((0.3 * whole.loss, 0.3 * whole.complexity))
    torch.testing.assert_close(part.d_features, 0.3 * whole.d_features)
