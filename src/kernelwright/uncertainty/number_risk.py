"""Bounds on the mean loss of predicted numbers, clipped at a limit (``docs/theory/numbers.md``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelwright.uncertainty.bounds import (
    NEW_ROWS,
    RADII,
    LeftOutLoss,
    RiskBound,
    check_beta,
    holdout_loss_bound,
    left_out_estimate,
    place_of_radius,
    share_of,
)
from kernelwright.uncertainty.risk import GROUPED, METHODS

__all__ = ["FittedLocation", "NumberLoss", "check_number_method", "held_out_numbers", "left_out_numbers", "norm_bound"]

DEVIATIONS = 3.0  # of the target: the limit, unless it is given
NUMBER_LOSSES = ("absolute", "squared")
LOCATION = "It is about the location of the embedding, without the distribution around it."


@dataclass(frozen=True)
class NumberLoss:
    """The absolute or the squared error, clipped at a limit or at its square.

    Parameters
    ----------
    word : {"absolute", "squared"}
    limit : float
        In units of the target.
    given : bool
        Whether the limit was chosen by the user, and not from training rows.
    """

    word: str
    limit: float
    given: bool

    @classmethod
    def of(cls, word: str, limit: float | None, deviation: float) -> NumberLoss:
        """Check the loss and its limit, which is three standard deviations of the target unless it is given."""
        if word not in NUMBER_LOSSES:
            raise ValueError(f"The 'loss' of risk_bound must be one of {NUMBER_LOSSES}. Got {word!r} instead.")
        if limit is not None and not 0 < limit < math.inf:
            raise ValueError(f"The 'limit' of risk_bound must be a positive number or None. Got {limit!r} instead.")
        usual = DEVIATIONS * deviation if deviation > 0 else 1.0
        return cls(word, usual if limit is None else float(limit), limit is not None)

    @property
    def largest(self) -> float:
        """The largest possible loss."""
        return self.limit if self.word == "absolute" else self.limit**2

    def shares(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss of each row, divided by the largest possible one: between 0 and 1."""
        away = np.minimum(np.abs(predicted - y) / self.limit, 1.0)
        return away if self.word == "absolute" else away**2

    def bound(self, found: RiskBound, *more: str) -> RiskBound:
        """Return a bound on shares as a bound on the loss, with the limit in its conditions."""
        stated = f"Errors beyond {self.limit:.4g} count as {self.limit:.4g}"
        why = "." if self.given else f", at least {DEVIATIONS:g} standard deviations of the target."
        parts = {name: value * self.largest for name, value in found.parts.items()}
        conditions = " ".join([found.conditions, stated + why, *more])
        margin = found.margin * self.largest
        return replace(found, parts=parts, conditions=conditions, loss=self.word, margin=margin, largest=self.largest)


def held_out_numbers(
    loss: NumberLoss, predicted: np.ndarray, y: np.ndarray, beta: float, groups: np.ndarray | None = None
) -> RiskBound:
    """Return the empirical Bernstein bound from rows that were not fitted, or from their means over groups."""
    shares = loss.shares(predicted, y)
    if groups is None:
        return loss.bound(holdout_loss_bound(shares, beta))
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)
    return loss.bound(holdout_loss_bound(np.bincount(number, shares) / np.bincount(number), beta), GROUPED)


def left_out_numbers(
    loss: NumberLoss,
    predicted: np.ndarray,
    y: np.ndarray,
    beta: float,
    *,
    weights: np.ndarray,
    counts: np.ndarray | None,
    groups: np.ndarray | None,
) -> RiskBound:
    """Return the mean loss at left-out rows: a good estimate, but not a guarantee."""
    shares = loss.shares(predicted, y)
    own = LeftOutLoss.of(shares * loss.largest, weights, counts=counts, groups=groups)
    found = left_out_estimate(own, loss.word, beta)
    parts = {name: value / loss.largest for name, value in found.parts.items()}
    return loss.bound(replace(found, parts=parts, margin=found.margin / loss.largest))


@dataclass(frozen=True)
class FittedLocation:
    """The location ``f(x) = b + <w, phi(x)>`` of an embedding at the rows it was solved on, in units of the target."""

    predicted: np.ndarray
    y: np.ndarray
    weights: np.ndarray  # sum to the number of rows
    offset: float  # b
    complexity: float  # alpha |w|, with alpha^2 = sup k(x, x)
    fixed_kernel: bool  # whether the kernel was chosen without these rows
    faults: Sequence[str]  # sentences that say why bounds from training rows do not hold


def norm_bound(method: str, loss: NumberLoss, fit: FittedLocation, beta: float) -> RiskBound:
    """Return a bound by the norm of the embedding, for the squared error clipped at the limit.

    As a share of the largest loss, the clipped squared error has the slope ``2 / limit``. So with probability
    ``1 - beta`` its mean is at most the training loss plus ``4 r / limit``, for a fixed kernel divided by ``sqrt(n)``,
    plus ``2 / n`` for an offset rounded to ``limit / n``, plus ``sqrt(log(1 / (beta p)) / (2 n))``; p is the share of
    beta that the rounded norm, offset and limit get.
    """
    check_beta(beta)
    if loss.word != "squared":
        raise ValueError(f"method={method!r} bounds the squared loss only. Got {loss.word!r}; use 'holdout' for it.")
    if method == "rademacher-fixed-kernel" and not fit.fixed_kernel:
        raise ValueError(
            "The bound for a fixed kernel does not hold here: the kernel was chosen with the rows that the embedding "
            "was solved on. Fit EmbeddingRegressor(learn=learning.Auto(kernel_share=0.5)), which learns the kernel "
            "from half of the rows and solves the embedding on the others; or use method='holdout'."
        )
    n, share = float(fit.weights.sum()), 1.0
    if not loss.given:  # the limit depends on the rows: the next power of two, each with its share of beta
        j = math.ceil(math.log2(loss.limit) - 1e-9)
        loss, share = replace(loss, limit=2.0**j), share_of(j)
    radius, offset = place_of_radius(fit.complexity / loss.limit), round(n * fit.offset / loss.limit)
    share *= share_of(radius) * share_of(offset)
    divisor, name = (math.sqrt(n), "4/sqrt(n)") if method == "rademacher-fixed-kernel" else (1.0, "4")
    parts = {
        "training loss": float(np.average(loss.shares(fit.predicted, fit.y), weights=fit.weights)),
        f"{name} x limit x complexity": 4.0 * RADII**radius / divisor,
        "offset": 2.0 / n,
        "sample size": math.sqrt(math.log(1.0 / (beta * share)) / (2.0 * n)),
    }
    kernel = f"The kernel {'was not' if divisor > 1.0 else 'may have been'} chosen with the rows of the embedding."
    found = RiskBound(method, parts, 0.0 if fit.faults else 1.0 - beta, f"{NEW_ROWS} {kernel}")
    return loss.bound(found, LOCATION, *fit.faults)


def check_number_method(method: str) -> None:
    """Raise an error if the method is unknown."""
    if method not in METHODS:
        raise ValueError(f"The 'method' of risk_bound must be one of {METHODS}. Got {method!r} instead.")
