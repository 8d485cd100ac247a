"""Bounds on the risk of an embedding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta as binomial_tail
from scipy.stats import t as student
from torch import Tensor

from kernelwright.storage.saved import saved

__all__ = [
    "CLASS_LOSSES",
    "LARGEST_CLIP",
    "LOSSES",
    "NEW_ROWS",
    "RADII",
    "LeftOutLoss",
    "RiskBound",
    "any_target_bound",
    "check_beta",
    "check_epsilon",
    "clipped_losses",
    "fixed_kernel_bound",
    "holdout_error_bound",
    "holdout_loss_bound",
    "left_out_estimate",
    "place_of_radius",
    "rademacher_bound",
    "share_of",
]


LARGEST_CLIP = math.exp(-1)  # where the clipped loss is never above 1
CLASS_LOSSES = ("clipped", "error")
LOSSES = {
    "clipped": "cross entropy of the raw outputs, clipped at {clip} (never above {largest:.4g})",
    "error": "share of wrong answers",
    "embedding": "squared distance of target and embedding, over 2 sup l(y, y) and clipped there (never above 1)",
    "absolute": "absolute error, clipped at a limit",
    "squared": "squared error, clipped at the square of a limit",
}


@saved("risk-bound")
@dataclass(frozen=True)
class RiskBound:
    """An upper bound on an expected loss, with its terms and the conditions under which it holds.

    Examples
    --------
    >>> from kernelwright.uncertainty.bounds import holdout_error_bound
    >>> bound = holdout_error_bound([0, 0, 1, 0] * 25, beta=0.05)
    >>> print(bound)
    Upper bound by "holdout" on the share of wrong answers
    held-out error rate       0.2500
    exact binomial margin     0.0813
    total                     0.3313
    Not vacuous. Holds with probability 0.95.
    New rows are drawn like the held-out rows, none of which was used in fitting.
    """

    method: str
    parts: Mapping[str, float]
    confidence: float  # zero if nothing is guaranteed
    conditions: str
    loss: str = "clipped"  # the bounded loss: a word of LOSSES
    margin: float = 0.0  # from an estimate to its approximate upper limit
    largest: float = 1.0  # the largest possible loss

    @property
    def bounded_loss(self) -> str:
        """The bounded loss in words."""
        clip = "1/e" if self.largest == 1.0 else f"{math.exp(-self.largest):.4g}"
        return LOSSES[self.loss].format(clip=clip, largest=self.largest)

    @property
    def total(self) -> float:
        """The bound, or the estimate."""
        return float(sum(self.parts.values()))

    @property
    def upper(self) -> float:
        """The bound; for an estimate, the upper limit that holds about as often as the conditions say."""
        return min(self.total + self.margin, max(self.total, self.largest))

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: it is not below the largest possible loss."""
        return self.total >= self.largest

    @property
    def guaranteed(self) -> bool:
        """Whether this is a proven bound and not only an estimate."""
        return self.confidence > 0

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.parts, "total")) + 1
        form = "10.4f" if self.largest == 1.0 else "10.4g"
        rows = [f"{name:<{width}} {value:{form}}" for name, value in (*self.parts.items(), ("total", self.total))]
        head = f'{"Upper bound" if self.guaranteed else "Estimate"} by "{self.method}" on the {self.bounded_loss}'
        verdict = f"Vacuous: the loss is never above {self.largest:g} anyway." if self.vacuous else "Not vacuous."
        holds = f"Holds with probability {self.confidence:g}." if self.guaranteed else "No guarantee."
        return "\n".join([head, *rows, f"{verdict} {holds}", self.conditions])


NEW_ROWS = "New rows are drawn like the training rows."


def _in_words(epsilon: float) -> str:
    return "4e" if epsilon == LARGEST_CLIP else f"4/{epsilon:g}"


def rademacher_bound(
    loss: float, complexity: float, n: float, beta: float, *, prior: float = 0.0, epsilon: float | None = None
) -> RiskBound:
    """Return the bound of Theorem 4, Eq. (11) of [Hsu2018]_: data fit, ``4e`` times the complexity, a sample size term.

    ``prior`` is the norm of the constant added to all raw outputs; it is zero in the theorem. With ``epsilon`` it is
    the bound of lemma 15 (of the long version) on the loss clipped at ``epsilon``, times its largest value
    ``M = -log epsilon``: ``loss`` is the mean of that loss, the complexity counts ``4 / epsilon`` times, and the term
    of the sample size M times. At 1/e both are the same.

    Examples
    --------
    >>> from kernelwright.uncertainty.bounds import rademacher_bound
    >>> bound = rademacher_bound(0.5, 0.001, n=100_000, beta=0.05, epsilon=0.01)
    >>> {name: round(value, 3) for name, value in bound.parts.items()}
    {'training loss': 0.5, '4/0.01 x complexity': 0.4, 'sample size': 0.079}
    >>> round(bound.largest, 3), bound.vacuous
    (4.605, False)
    """
    check_beta(beta)
    if epsilon is not None:
        return _lemma_15(loss, complexity, n, beta, prior=prior, epsilon=epsilon)
    parts = {"training loss": loss, "4e x complexity": 4 * math.e * complexity}
    if prior:
        parts["4e/sqrt(n) x prior"] = 4 * math.e * prior / math.sqrt(n)
    parts["sample size"] = math.sqrt(8 / n * math.log(2 / beta))
    conditions = (
        f"{NEW_ROWS} As stated by Theorem 4 of [Hsu2018], for a kernel learned from the same rows; the theorem "
        "treats the norm of the embedding as if it had been known in advance."
    )
    return RiskBound("rademacher", parts, 1 - beta, conditions)


def _lemma_15(loss: float, complexity: float, n: float, beta: float, *, prior: float, epsilon: float) -> RiskBound:
    check_epsilon(epsilon)
    times, largest = _in_words(epsilon), -math.log(epsilon)
    parts = {"training loss": loss, f"{times} x complexity": 4 / epsilon * complexity}
    if prior:
        parts[f"{times}/sqrt(n) x prior"] = 4 / epsilon * prior / math.sqrt(n)
    parts["sample size"] = largest * math.sqrt(8 / n * math.log(2 / beta))
    conditions = (
        f"{NEW_ROWS} As stated by lemma 15 of [Hsu2018], for a kernel learned from the same rows; the lemma treats the "
        "norm of the embedding as if it had been known in advance."
    )
    return RiskBound("rademacher", parts, 1 - beta, conditions, largest=largest)


RADII = 1.1  # ratio of the grid of norms over which the fixed-kernel bound is uniform


def place_of_radius(complexity: float) -> int:
    """Return the j for which ``RADII^j`` is the complexity, rounded up."""
    return math.ceil(math.log(max(complexity, 1e-12)) / math.log(RADII) - 1e-9)


def share_of(j: int) -> float:
    """Return the share of beta that the statement number j gets; the shares of all whole numbers sum to one."""
    return 1 / (1.5 * (abs(j) + 1) * (abs(j) + 2))


def fixed_kernel_bound(
    loss: float, complexity: float, n: float, beta: float, *, epsilon: float = LARGEST_CLIP
) -> RiskBound:
    """Return the bound for a kernel not chosen with these n rows: ``4 / (epsilon sqrt(n))`` times the complexity.

    ``loss`` is the mean over the rows, clipped at ``epsilon``, by default 1/e. The norm of the embedding does depend on
    the rows, so the bound holds for a geometric grid of norms at once: norm j gets a share ``1 / (1.5 (|j| + 1) (|j| +
    2))`` of beta (the shares sum to one), and the complexity is rounded up to the grid. The proof is in
    ``docs/theory/bounds.md``.
    """
    check_beta(beta)
    check_epsilon(epsilon)
    radius, share = _radius_and_share(complexity)
    times, largest = _in_words(epsilon), -math.log(epsilon)
    return RiskBound(
        "rademacher-fixed-kernel",
        {
            "training loss": loss,
            f"{times}/sqrt(n) x complexity": 4 / epsilon * radius / math.sqrt(n),
            "sample size": largest * math.sqrt(8 / n * math.log(2 / (beta * share))),
        },
        1 - beta,
        f"{NEW_ROWS} The kernel and the scale of the inputs were not chosen with the rows the embedding was solved on.",
        largest=largest,
    )


def _radius_and_share(complexity: float) -> tuple[float, float]:
    """Return the complexity rounded up to the grid of norms, and the share of beta that this norm gets."""
    j = place_of_radius(complexity)
    return RADII**j, share_of(j)


def any_target_bound(loss: float, complexity: float, n: float, beta: float, *, shift: float = 0.0) -> RiskBound:
    """Return the bound for targets of any kind and kernels not chosen with these n rows.

    ``loss`` is the mean over the rows of ``min(|l(y, .) - mu(x)|^2 / (2 kappa^2), 1)`` with ``kappa^2 = sup l(y, y)``,
    and ``complexity`` is r in units of kappa. ``shift`` is a bound in the same unit on the norm of the constant that is
    added to all embeddings: zero, or one for the mean embedding of all targets. With ``R = r + shift`` the expected
    loss is at most ``loss + (2 R + R^2) / sqrt(n) + sqrt(log(1 / beta) / (2 n))``, for a grid of r at once as in
    :func:`fixed_kernel_bound`. The proof is in ``docs/theory/bounds.md``.
    """
    check_beta(beta)
    radius, share = _radius_and_share(complexity)
    R = radius + shift
    return RiskBound(
        "rademacher-fixed-kernel",
        {
            "training loss": loss,
            "(2R + R^2)/sqrt(n)": (2 * R + R**2) / math.sqrt(n),
            "sample size": math.sqrt(math.log(1 / (beta * share)) / (2 * n)),
        },
        1 - beta,
        f"{NEW_ROWS} Both kernels and the scales were not chosen with the rows the embedding was solved on.",
        loss="embedding",
    )


HELD_OUT_ROWS = "New rows are drawn like the held-out rows, none of which was used in fitting."


def holdout_loss_bound(losses: ArrayLike, beta: float) -> RiskBound:
    """Return the empirical Bernstein bound (theorem 4 of [Maurer2009]_) for losses in [0, 1] at held-out rows."""
    check_beta(beta)
    losses = np.asarray(losses, dtype=np.float64)
    n = len(losses)
    if n < 2:
        raise ValueError(f"A bound from held-out losses needs at least 2 held-out rows. Got {n}.")
    log = math.log(2 / beta)
    parts = {
        "held-out loss": float(losses.mean()),
        "spread": math.sqrt(2 * float(losses.var(ddof=1)) * log / n),
        "sample size": 7 * log / (3 * (n - 1)),
    }
    return RiskBound("holdout", parts, 1 - beta, HELD_OUT_ROWS)


def holdout_error_bound(wrong: ArrayLike, beta: float) -> RiskBound:
    """Return the exact binomial bound (Clopper and Pearson) from errors (1) or successes (0) at held-out rows."""
    check_beta(beta)
    wrong = np.asarray(wrong, dtype=bool)
    n, k = len(wrong), int(wrong.sum())
    if n < 1:
        raise ValueError("A bound from held-out rows needs at least one held-out row.")
    upper = 1.0 if k == n else float(binomial_tail.ppf(1 - beta, k + 1, n - k))
    parts = {"held-out error rate": k / n, "exact binomial margin": upper - k / n}
    return RiskBound("holdout", parts, 1 - beta, HELD_OUT_ROWS, loss="error")


@saved("left-out-loss")
@dataclass(frozen=True)
class LeftOutLoss:
    """The mean loss at left-out rows, with its standard error."""

    mean: float
    standard_error: float
    n_effective: float  # the number of equally weighted, independent rows with the same information

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        weights: ArrayLike,
        *,
        counts: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> LeftOutLoss:
        """Average the losses of rows with their weights; rows of a group are not independent.

        For a point that stands for several equal rows, ``counts`` is their number.
        """
        v, w = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
        mean = float(np.average(v, weights=w))
        if groups is None:
            c = np.ones(len(w)) if counts is None else np.asarray(counts, dtype=np.float64)
            squares, of_weights, n = float((w**2 / c * (v - mean) ** 2).sum()), float((w**2 / c).sum()), float(c.sum())
        else:
            group = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
            sums, totals = np.bincount(group, w * (v - mean)), np.bincount(group, w)
            squares, of_weights, n = float((sums**2).sum()), float((totals**2).sum()), float(len(totals))
        error = math.sqrt(squares * n / max(n - 1.0, 1.0)) / float(w.sum())
        return cls(mean, error, float(w.sum()) ** 2 / of_weights)

    def with_shared_rows(self, n_parts: float = math.inf) -> LeftOutLoss:
        """Return the loss with a larger standard error, because the models of different parts share rows.

        Losses in ``n_parts`` parts are not independent: the models fitted without each part share most of their rows.
        The variance grows by the factor ``1 + k / (k - 1)`` of [Nadeau2003]_, about two.
        """
        factor = 2.0 if math.isinf(n_parts) else 1.0 + n_parts / (n_parts - 1.0)
        return LeftOutLoss(self.mean, self.standard_error * math.sqrt(factor), self.n_effective / factor)

    def upper(self, beta: float, *, share: bool) -> float:
        """Return the limit that the expected loss exceeds with probability of about ``beta``.

        For a share of rows it is the limit of a binomial proportion with the same standard error (Clopper and Pearson),
        for other losses that of Student's t.
        """
        check_beta(beta)
        n = self.n_effective
        if not share:
            return self.mean + float(student.ppf(1 - beta, max(n - 1.0, 1.0))) * self.standard_error
        if 0.0 < self.mean < 1.0 and self.standard_error > 0.0:
            n = min(n, self.mean * (1.0 - self.mean) / self.standard_error**2)
        wrong = self.mean * n
        return 1.0 if wrong >= n else float(binomial_tail.ppf(1 - beta, wrong + 1.0, n - wrong))


REFITTED = (
    "Rows were left out in {parts} parts; each time the kernel, the ridge and the calibration were learned from the "
    "other rows."
)
NOT_REFITTED = (
    "The hyperparameters and the calibration were chosen with the same rows, so the estimate is a little too low."
)


def left_out_estimate(
    closed_form: LeftOutLoss, loss: str, beta: float, refitted: LeftOutLoss | None = None, n_parts: int = 0
) -> RiskBound:
    """Return the mean loss at left-out rows: a good estimate, but not a guarantee.

    The closed form leaves a row out of the embedding, but not out of the choice of hyperparameters. If everything was
    ``refitted`` without it, the difference between the two is added.
    """
    word = "loss" if loss == "clipped" else loss
    parts = {f"leave-one-out {word}": closed_form.mean}
    found = closed_form.with_shared_rows() if refitted is None else refitted.with_shared_rows(n_parts)
    if refitted is not None:
        parts["hidden by learning from the same rows"] = refitted.mean - closed_form.mean
    upper = found.upper(beta, share=loss == "error")
    how = NOT_REFITTED if refitted is None else REFITTED.format(parts=n_parts)
    form = ".3f" if loss in CLASS_LOSSES else ".4g"
    conditions = (
        f"{NEW_ROWS} {how} Its standard error is about {found.standard_error:.2g}; the true value is below "
        f"{upper:{form}} in about {100 * (1 - beta):g} % of cases, which is measured and not proved."
    )
    return RiskBound("leave-one-out", parts, 0.0, conditions, loss, margin=max(upper - found.mean, 0.0))


def clipped_losses(outputs: Tensor, targets: Tensor, epsilon: float = LARGEST_CLIP) -> Tensor:
    """Return the loss of the bounds, row by row: ``-log clip(f_y, epsilon, 1)``, by default between 0 and 1."""
    return -(outputs * targets).sum(1).clamp(epsilon, 1.0).log()


def check_epsilon(epsilon: float) -> None:
    """Raise an error if the clip of a bound is not above 0 and at most 1/e."""
    if not 0 < epsilon <= LARGEST_CLIP:
        raise ValueError(
            f"The 'epsilon' of a risk bound must lie between 0 and 1/e = {LARGEST_CLIP:.4f}. Got {epsilon!r} instead."
        )


def check_beta(beta: float) -> None:
    """Raise an error if beta is no probability."""
    if not 0 < beta < 1:
        raise ValueError(f"The 'beta' parameter must lie between 0 and 1. Got {beta!r} instead.")
