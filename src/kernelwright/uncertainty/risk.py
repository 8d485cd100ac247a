"""Bounds on the risk of a fitted classifier, from quantities stored by its fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.bounds import (
    CLASS_LOSSES,
    LARGEST_CLIP,
    LeftOutLoss,
    RiskBound,
    any_target_bound,
    check_epsilon,
    clipped_losses,
    fixed_kernel_bound,
    holdout_error_bound,
    holdout_loss_bound,
    rademacher_bound,
)

__all__ = [
    "GROUPED",
    "HERDED",
    "METHODS",
    "UNBOUNDED",
    "UNBOUNDED_TARGETS",
    "WEIGHTED",
    "AnyTargetRisk",
    "RiskTerms",
    "check_any_method",
    "check_method",
    "held_out_bound",
    "left_out_losses",
    "means_of_groups",
    "training_bound",
]

METHODS = ("rademacher", "rademacher-fixed-kernel", "holdout", "leave-one-out")
WEIGHTED = "But rows had weights: they were not drawn as often as they count."
UNBOUNDED = "But k(x, x) has no known bound: its largest value was taken over the training rows."
GROUPED = "Each group counts once, whatever its number of rows: the statement is about rows of a new group."
HERDED = "But solver='herding' selected the rows: they are not a random sample."


@saved("risk-terms")
@dataclass(frozen=True)
class RiskTerms:
    """Quantities stored by a fit for bounds on its risk."""

    training_loss: float  # Eq. (7), clipped as it was learned
    clipped_loss: float  # clipped at 1/e
    n_clipped: float  # number of rows in that mean
    n_rows: float
    prior: float  # norm of the constant added to all outputs
    left_out: dict[str, LeftOutLoss]
    fixed_kernel: bool  # whether the kernel was chosen without the rows of the embedding
    faults: tuple[str, ...]  # sentences that say why bounds from training rows do not hold
    own: np.ndarray | None = None  # outputs of the own class of each fitted row, for the loss at other clips
    weights: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        fitted: tuple[Tensor, TrainingSet],
        left_out: tuple[Tensor, Tensor, TrainingSet],
        *,
        epsilon: float,
        n_rows: float,
        prior: float = 0.0,
        fixed_kernel: bool = False,
        faults: tuple[str, ...] = (),
    ) -> RiskTerms:
        """Compute the terms from outputs at fitted rows, and outputs and log probabilities at left-out rows.

        ``epsilon`` is the clip of the loss that was learned with.
        """
        outputs, rows = fitted
        training, clipped = (
            float(clipped_losses(outputs, rows.targets, clip) @ rows.weights / rows.weights.sum())
            for clip in (epsilon, LARGEST_CLIP)
        )
        return cls(
            training,
            clipped,
            rows.total_weight,
            n_rows,
            prior,
            left_out_losses(*left_out),
            fixed_kernel,
            faults,
            (outputs * rows.targets).sum(1).numpy(),
            rows.weights.numpy(),
        )

    def loss_at(self, epsilon: float) -> float:
        """Return the mean training loss with another clip."""
        check_epsilon(epsilon)
        if self.own is None or self.weights is None:
            raise ValueError("This model was saved without what a bound at another clip needs. Fit it again.")
        return float(np.average(-np.log(np.clip(self.own, epsilon, 1.0)), weights=self.weights))


def means_of_groups(losses: tuple[np.ndarray, np.ndarray], groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean loss and mean error of each group."""
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)
    first, second = (np.bincount(number, each) / np.bincount(number) for each in losses)
    return first, second


def left_out_losses(outputs: Tensor, log_p: Tensor, rows: TrainingSet) -> dict[str, LeftOutLoss]:
    """Return the two losses of outputs and probabilities at left-out rows."""
    losses = {
        "clipped": clipped_losses(outputs, rows.targets),
        "error": log_p.argmax(1) != rows.targets.argmax(1),
    }
    options = {"counts": rows.counts, "groups": rows.groups}
    return {word: LeftOutLoss.of(values, rows.weights, **options) for word, values in losses.items()}


def check_method(method: str, loss: str, epsilon: float | None = None) -> None:
    """Raise an error if the method or the loss is unknown, or if they (or a clip) do not go together."""
    if epsilon is not None:
        check_epsilon(epsilon)
    if epsilon is not None and (loss != "clipped" or method == "leave-one-out"):
        raise ValueError(
            "The 'epsilon' of risk_bound is the clip of loss='clipped' for 'rademacher', 'rademacher-fixed-kernel' and "
            f"'holdout'. Got it with method={method!r} and loss={loss!r}."
        )
    if method not in METHODS or loss not in CLASS_LOSSES:
        raise ValueError(
            f"The 'method' of risk_bound must be one of {METHODS} and its 'loss' one of {CLASS_LOSSES}. "
            f"Got {method!r} and {loss!r} instead."
        )
    if loss == "error" and method.startswith("rademacher"):
        raise ValueError(f"method={method!r} bounds the clipped loss only; for the error rate use 'holdout'.")


def training_bound(
    terms: RiskTerms, method: str, complexity: float, beta: float, epsilon: float | None = None
) -> RiskBound:
    """Return a bound made of the training loss and the complexity; with a clip, on the loss at that clip."""
    if method == "rademacher":
        loss = terms.training_loss if epsilon is None else terms.loss_at(epsilon)
        bound = rademacher_bound(loss, complexity, terms.n_rows, beta, prior=terms.prior, epsilon=epsilon)
    elif terms.fixed_kernel:
        clip = LARGEST_CLIP if epsilon is None else epsilon
        loss = terms.clipped_loss if epsilon is None else terms.loss_at(epsilon)
        bound = fixed_kernel_bound(loss, complexity, terms.n_clipped, beta, epsilon=clip)
    else:
        raise ValueError(
            "The bound for a fixed kernel does not hold here: the kernel was chosen with the rows that the embedding "
            "was solved on. Fit EmbeddingClassifier(learn=learning.Auto(kernel_share=0.5)), which learns the kernel "
            "from half of the rows and solves the embedding on the others; or use method='holdout'."
        )
    if not terms.faults:
        return bound
    return replace(bound, confidence=0.0, conditions=" ".join([bound.conditions, *terms.faults]))


def held_out_bound(
    losses: np.ndarray, wrong: np.ndarray, loss: str, beta: float, epsilon: float | None = None
) -> RiskBound:
    """Return a bound from losses and errors at rows that were not fitted, or from their means over groups.

    ``epsilon`` is the clip of the losses, if it is not 1/e: the bound is that of the losses divided by their largest
    value, times this value.
    """
    if epsilon is not None:
        largest = -math.log(epsilon)
        found = holdout_loss_bound(losses / largest, beta)
        return replace(found, parts={name: part * largest for name, part in found.parts.items()}, largest=largest)
    if wrong.dtype != bool:  # means over groups, which are the independent draws
        bound = holdout_loss_bound(wrong if loss == "error" else losses, beta)
        return replace(bound, loss=loss, conditions=f"{bound.conditions} {GROUPED}")
    return holdout_error_bound(wrong, beta) if loss == "error" else holdout_loss_bound(losses, beta)


ANY_METHODS = ("holdout", "rademacher-fixed-kernel")
UNBOUNDED_TARGETS = "But l(y, y) has no known bound: its largest value was taken over the training targets."


def check_any_method(method: str, X: object, y: object) -> None:
    """Raise an error if a bound for any target is unknown, or if its rows are incomplete."""
    if method not in ANY_METHODS:
        raise ValueError(f"The 'method' of risk_bound must be one of {ANY_METHODS}. Got {method!r} instead.")
    if (X is None) != (y is None):
        raise ValueError("Held-out rows need both X and y.")
    if X is not None and method != "holdout":
        raise ValueError(f"Only method='holdout' takes X and y. Got them with method={method!r}.")


@dataclass(frozen=True)
class AnyTargetRisk:
    """Losses ``|l(y, .) - mu(x)|^2`` at some rows, for bounds on their expectation in units of ``2 sup l(y, y)``."""

    losses: np.ndarray
    largest: float  # sup l(y, y)
    faults: tuple[str, ...] = ()

    @property
    def clipped(self) -> np.ndarray:
        """The losses of the bounds, between 0 and 1; an embedding with no negative weights is hardly ever clipped."""
        return np.clip(self.losses / (2.0 * self.largest), 0.0, 1.0)

    def held_out(self, beta: float) -> RiskBound:
        """Return a bound from rows that were not fitted."""
        return replace(holdout_loss_bound(self.clipped, beta), loss="embedding")

    def fixed_kernel(self, counts: np.ndarray, complexity: float, beta: float, *, shift: float) -> RiskBound:
        """Return a bound from the rows that the embedding was solved on, each standing for some equal rows."""
        loss, r = float(np.average(self.clipped, weights=counts)), complexity / self.largest**0.5
        bound = any_target_bound(loss, r, float(counts.sum()), beta, shift=shift)
        if not self.faults:
            return bound
        return replace(bound, confidence=0.0, conditions=" ".join([bound.conditions, *self.faults]))
