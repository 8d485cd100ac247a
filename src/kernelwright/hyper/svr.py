"""Support vector regression over pairs, Eqs. (7) and (8) of [Liu2021]_."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR, LinearSVR
from torch import Tensor

from kernelwright.hyper.bases import Basis, whitening
from kernelwright.hyper.moments import pair_values
from kernelwright.hyper.pairs import Pairs
from kernelwright.hyper.regression import Coefficients, PairPart, listed, power_of_m
from kernelwright.numerics.linalg import factorise
from kernelwright.numerics.memory import check_memory

__all__ = ["LOSSES", "PairSVR", "insensitive_primal", "support_vector", "support_vector_primal"]

LOSSES = ("auto", "linear")
MOST_STEPS = 1_000_000  # of a support vector solver, which might never stop; it warns when it stops here
MOST_ROUNDS = 2000  # of alternating directions
RELAXED = 1.6  # over-relaxation of alternating directions
COSTS = tuple(10.0 ** np.arange(-3.0, 4.0))


@dataclass(frozen=True)
class PairSVR:
    """Support vector regression over pairs, with the epsilon-insensitive loss.

    With ``loss="auto"`` it is squared unless the solver is exact; "linear" is that of Eq. (7) with any solver.
    """

    C: float | str = "auto"
    epsilon: float | str = "auto"
    loss: str = "auto"
    usual_pairs: int = 20_000
    centred: ClassVar[bool] = True
    exact_first: ClassVar[bool] = True
    refine: ClassVar[bool] = False
    definite: ClassVar[bool] = False

    def solve(self, part: PairPart, random: torch.Generator) -> tuple[Basis, Coefficients]:
        pairs, basis = listed(part, self.usual_pairs, random, matrices=4)
        # Targets and errors are in units of `scale`; the penalty has the unit squared.
        given = self.epsilon != "auto"
        epsilon = power_of_m(self.epsilon, len(part.points), "epsilon") / part.scale if given else 0.1
        if part.solver.exact:
            return basis, _exact(self.C, epsilon, part, basis, pairs, random)
        return basis, _on_features(self.C, epsilon, part, basis, pairs, random, linear=self.loss == "linear")


def _exact(
    C: float | str, epsilon: float, part: PairPart, basis: Basis, pairs: Pairs, random: torch.Generator
) -> Coefficients:
    G = basis.gram()
    if isinstance(C, str):
        C = _least_good_cost(
            lambda fit, new: (G[fit][:, fit], G[new][:, fit]), support_vector, epsilon, part, pairs, random
        )
    else:
        C = C / part.scale  # the loss is linear in the errors, so C depends on their unit
    return replace(support_vector(G, pairs, C=C, epsilon=epsilon), ridge=C * part.scale)


def _on_features(
    C: float | str,
    epsilon: float,
    part: PairPart,
    basis: Basis,
    pairs: Pairs,
    random: torch.Generator,
    *,
    linear: bool,
) -> Coefficients:
    T = whitening(basis.gram())
    check_memory(
        3 * 8.0 * len(pairs) * T.shape[1],
        f"The features of {len(pairs)} pairs ({T.shape[1]} each)",
        f"Learn from fewer pairs or with fewer landmarks: solver={type(part.solver).__name__}(n=..., n_pairs=...).",
    )
    Z = pair_values(basis, part.points)(pairs) @ T
    solve = insensitive_primal if linear else support_vector_primal
    unit = part.scale if linear else 1.0  # with the squared loss, C has no unit
    if isinstance(C, str):
        C = unit * _least_good_cost(lambda fit, new: (Z[fit], Z[new]), solve, epsilon, part, pairs, random)
    found = solve(Z, pairs, C=float(C) / unit, epsilon=epsilon)
    return replace(found, weights=T @ found.weights, ridge=float(C))


def _least_good_cost(
    features: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    solve: Callable[..., Coefficients],
    epsilon: float,
    part: PairPart,
    pairs: Pairs,
    random: torch.Generator,
) -> float:
    """Return the smallest C that is about as good as the best, by the absolute error at held-out points."""
    out = torch.zeros(len(part.points), dtype=torch.bool)
    out[torch.randperm(len(out), generator=random)[: max(1, len(out) // 3)]] = True
    judged = out[pairs.first] | out[pairs.second]
    fit, judge = (~judged).nonzero()[:, 0], judged.nonzero()[:, 0]
    if len(fit) == 0 or len(judge) == 0:
        return 1.0  # too few known pairs to compare
    rows, new = features(fit, judge)
    known, some = pairs.subset(fit), pairs.subset(judge)

    def error(C: float) -> float:
        found = solve(rows, known, C=C, epsilon=epsilon)
        return float((some.weights * (new @ found.weights + found.bias - some.targets).abs()).sum())

    errors = np.array([error(C) for C in COSTS])
    return COSTS[int(np.argmax(errors <= 1.025 * errors.min()))]


def support_vector(K: Tensor, pairs: Pairs, *, C: float, epsilon: float, most_steps: int | None = None) -> Coefficients:
    """Solve Eq. (8) on unique pairs; the weights make it equal to the regression over all pairs."""
    steps = MOST_STEPS if most_steps is None else most_steps
    machine = SVR(kernel="precomputed", C=C, epsilon=epsilon, cache_size=1000, max_iter=steps)
    machine.random_state = 0  # otherwise it would use NumPy's global random state
    machine.fit(K.numpy(), pairs.targets.numpy(), sample_weight=pairs.weights.numpy())
    weights = torch.zeros(len(pairs), dtype=torch.float64)
    weights[torch.from_numpy(machine.support_).long()] = torch.from_numpy(machine.dual_coef_[0])
    return Coefficients(weights, float(machine.intercept_[0]))


def support_vector_primal(Z: Tensor, pairs: Pairs, *, C: float, epsilon: float) -> Coefficients:
    """Fit a linear model on features Z of the pairs, with the squared loss above epsilon, in the (faster) primal."""
    machine = LinearSVR(
        loss="squared_epsilon_insensitive", dual=False, C=C, epsilon=epsilon, intercept_scaling=100.0, random_state=0
    )
    # liblinear penalises the intercept. With a large constant feature this penalty is negligible.
    machine.fit(Z.numpy(), pairs.targets.numpy(), sample_weight=pairs.weights.numpy())
    return Coefficients(torch.from_numpy(machine.coef_), float(machine.intercept_[0]))


def insensitive_primal(
    Z: Tensor, pairs: Pairs, *, C: float, epsilon: float, most_rounds: int = MOST_ROUNDS, tol: float = 1e-4
) -> Coefficients:
    """Minimise ``|u|^2/2 + C sum_p w_p max(|z_p u + b - y_p| - epsilon, 0)``, the loss of Eq. (7) on features Z.

    Alternating directions: with errors ``e = Z u + b - y`` as variables of their own, u is a least squares solution of
    one matrix and e is shrunk, entry by entry. A round costs two products with Z. It warns if it does not converge.
    """
    A = torch.cat([Z, torch.ones_like(Z[:, :1])], 1)
    penalty = torch.ones_like(A[0])
    penalty[-1] = 0.0  # the constant is free
    y, price = pairs.targets, C * pairs.weights
    rate = C * float(pairs.weights.mean()) / max(float(y.std()), 1e-12)
    factor = factorise(A.T @ A, penalty / rate)
    errors, dual = -y, torch.zeros_like(y)
    for round_ in range(most_rounds):
        v = factor.solve((A.T @ (errors + y - dual))[:, None])[:, 0]
        here = A @ v - y
        relaxed, before = RELAXED * here + (1 - RELAXED) * errors, errors
        errors = _shrunk(relaxed + dual, price / rate, epsilon)
        dual = dual + relaxed - errors
        if round_ % 10 == 9:
            primal, moved = float((here - errors).norm()), float((A.T @ (errors - before)).norm())
            size = tol * max(float(y.norm()), 1e-12)
            pull = tol * max(float((A.T @ dual).norm()), 1e-12)
            if primal < size and moved < pull:
                return Coefficients(v[:-1], float(v[-1]))
            change = 2.0 if primal / size > 10 * moved / pull else 0.5 if moved / pull > 10 * primal / size else 1.0
            if change != 1.0 and round_ % 50 == 49:
                rate, dual = rate * change, dual / change
                factor = factorise(A.T @ A, penalty / rate)
    warnings.warn(
        f"Support vector regression over {len(y)} pairs did not converge in {most_rounds} rounds. The result is close; "
        "a smaller C converges faster.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return Coefficients(v[:-1], float(v[-1]))


def _shrunk(v: Tensor, by: Tensor, epsilon: float) -> Tensor:
    """Return the minimiser of ``by * max(|e| - epsilon, 0) + (e - v)^2 / 2`` for each entry."""
    excess = v.abs() - epsilon
    return v - v.sign() * torch.minimum(excess.clamp(min=0.0), by)
