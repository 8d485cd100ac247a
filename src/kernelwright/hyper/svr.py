"""Support vector regression over pairs, Eqs. (7) and (8) of [Liu2021]_."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from sklearn.svm import SVR, LinearSVR
from torch import Tensor

from kernelwright.hyper.bases import Basis, whitening
from kernelwright.hyper.moments import pair_values
from kernelwright.hyper.pairs import Pairs
from kernelwright.hyper.regression import Coefficients, PairPart, listed, power_of_m
from kernelwright.numerics.memory import check_memory

__all__ = ["PairSVR", "support_vector", "support_vector_primal"]

MOST_STEPS = 1_000_000  # of a support vector solver, which might never stop; it warns when it stops here
COSTS = tuple(10.0 ** np.arange(-3.0, 4.0))


@dataclass(frozen=True)
class PairSVR:
    """Support vector regression over pairs, with the epsilon-insensitive loss (squared, if the solver is not exact)."""

    C: float | str = "auto"
    epsilon: float | str = "auto"
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
        solve = _exact if part.solver.exact else _on_features
        return basis, solve(self.C, epsilon, part, basis, pairs, random)


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
    C: float | str, epsilon: float, part: PairPart, basis: Basis, pairs: Pairs, random: torch.Generator
) -> Coefficients:
    T = whitening(basis.gram())
    check_memory(
        3 * 8.0 * len(pairs) * T.shape[1],
        f"The features of {len(pairs)} pairs ({T.shape[1]} each)",
        f"Learn from fewer pairs or with fewer landmarks: solver={type(part.solver).__name__}(n=..., n_pairs=...).",
    )
    Z = pair_values(basis, part.points)(pairs) @ T
    if isinstance(C, str):
        C = _least_good_cost(lambda fit, new: (Z[fit], Z[new]), support_vector_primal, epsilon, part, pairs, random)
    found = support_vector_primal(Z, pairs, C=float(C), epsilon=epsilon)  # a quadratic loss: C has no unit
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


def support_vector(K: Tensor, pairs: Pairs, *, C: float, epsilon: float) -> Coefficients:
    """Solve Eq. (8) on unique pairs; the weights make it equal to the regression over all pairs."""
    machine = SVR(kernel="precomputed", C=C, epsilon=epsilon, cache_size=1000, max_iter=MOST_STEPS)
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
