"""Losses with their gradients, and the weight of the complexity term."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.uncertainty.calibration import calibrated_log_loss

__all__ = [
    "BRIER",
    "CLIPPED_FORMS",
    "EPSILON",
    "LOG_LOSS",
    "BrierLoss",
    "CalibratedLogLoss",
    "ClippedLogLoss",
    "ClippedSquaredLoss",
    "LogCrpsLoss",
    "LogSquaredLoss",
    "Loss",
    "brier_loss",
    "check_clip",
    "clip_of_loss",
    "clipped_log_loss",
    "complexity_multiplier",
    "half_log",
    "loss_named",
    "unit_of",
]

Loss = Callable[[Tensor, TrainingSet], tuple[float, Tensor]]  # outputs at rows -> mean loss, gradient in the outputs

EPSILON = 1e-15  # the clip of [Hsu2018]_, section 5
CLIPPED_FORMS = ("log", "normalised", "centred")
SMALLEST_ERROR = 1e-12  # of squares: standardised numbers have no more digits


def clipped_log_loss(
    outputs: Tensor, targets: Tensor, weights: Tensor, epsilon: float = EPSILON
) -> tuple[float, Tensor]:
    """Return the weighted mean of ``-log clip(f_y, epsilon, 1)``, Eq. (7), and its gradient in the outputs.

    The gradient is zero on both sides of the clip.
    """
    share = weights / weights.sum()
    own = (outputs * targets).sum(1)
    value = -(share * own.clamp(epsilon, 1.0).log()).sum()
    inside = (own > epsilon) & (own < 1.0)
    slope = torch.where(inside, -share / own.clamp(min=epsilon), 0.0)
    return float(value), slope[:, None] * targets


def brier_loss(outputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[float, Tensor]:
    """Return the weighted mean of ``|f - y|^2`` and its gradient in the outputs."""
    share = weights / weights.sum()
    residual = outputs - targets
    return float((share[:, None] * residual * residual).sum()), 2.0 * share[:, None] * residual


def complexity_multiplier(weight: float | str, n: float) -> float:
    """Return the number tau behind a word: "4e" as printed in Eq. (12), "4e/n", "4e/sqrt(n)" or "1/n"."""
    words = {"4e": 4 * math.e, "4e/n": 4 * math.e / n, "4e/sqrt(n)": 4 * math.e / math.sqrt(n), "1/n": 1 / n}
    if isinstance(weight, str):
        if weight not in words:
            raise ValueError(
                f"The 'complexity_weight' parameter must be a number of at least 0, or one of {list(words)}. "
                f"Got {weight!r} instead."
            )
        return words[weight]
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"The 'complexity_weight' parameter must be at least 0 and finite. Got {weight!r} instead.")
    return float(weight)


def check_clip(epsilon: float) -> None:
    """Raise an error if the clip is not between 0 and 1/e."""
    if not 0 < epsilon < 1 / math.e:
        raise ValueError(f"The 'epsilon' of an objective must lie between 0 and 1/e. Got {epsilon!r} instead.")


@dataclass(frozen=True)
class ClippedLogLoss:
    """The cross entropy of [Hsu2018]_, with outputs clipped to [``epsilon``, 1].

    Parameters
    ----------
    epsilon : float
        Between 0 and 1/e.
    form : {"log", "normalised", "centred"}
        "log": Eq. (7), between 0 and ``M = -log epsilon``. "normalised": Eq. (55), the same divided by M, between 0 and
        1. "centred": Eq. (56), the normalised loss minus its value at output 0, between -1 and 0.

    Notes
    -----
    All three have the same minimum where the loss stands alone. Beside a complexity, "normalised" and "centred" with
    the weight tau equal "log" with the weight ``M tau``; "centred" has the same gradient as "normalised".
    """

    epsilon: float = EPSILON
    form: str = "log"

    def __post_init__(self) -> None:
        check_clip(self.epsilon)
        if self.form not in CLIPPED_FORMS:
            raise ValueError(f"The 'form' of a clipped loss must be one of {CLIPPED_FORMS}. Got {self.form!r}.")

    @property
    def unit(self) -> float:
        """The number by which Eq. (7) is divided."""
        return 1.0 if self.form == "log" else -math.log(self.epsilon)

    def __call__(self, outputs: Tensor, rows: TrainingSet) -> tuple[float, Tensor]:
        """Return the mean loss at the rows, and its gradient in the outputs."""
        value, slope = clipped_log_loss(outputs, rows.targets, rows.weights, self.epsilon)
        return value / self.unit - float(self.form == "centred"), slope / self.unit


@dataclass(frozen=True)
class BrierLoss:
    """The squared distance of outputs from one-hot targets; the squared loss for any other targets."""

    def __call__(self, outputs: Tensor, rows: TrainingSet) -> tuple[float, Tensor]:
        """Return the mean loss at the rows, and its gradient in the outputs."""
        return brier_loss(outputs, rows.targets, rows.weights)


@dataclass(frozen=True)
class LogSquaredLoss:
    """Half the logarithm of the mean squared error, for each column: the cross entropy of normal residuals.

    Their variance is the best one, so the loss does not depend on units, and the complexity weighs as much for data of
    little noise as for noisy data.
    """

    def __call__(self, outputs: Tensor, rows: TrainingSet) -> tuple[float, Tensor]:
        """Return the mean loss at the rows, and its gradient in the outputs."""
        share = (rows.weights / rows.weights.sum())[:, None]
        residual = outputs - rows.targets
        mean = (share * residual * residual).sum(0).clamp(min=SMALLEST_ERROR)
        return 0.5 * float(mean.log().mean()), share * residual / (mean * len(mean))


@dataclass(frozen=True)
class LogCrpsLoss:
    """The logarithm of the mean CRPS: all columns are weighted indicators of one target, whose squares are summed.

    The logarithm makes it independent of units, as in :class:`LogSquaredLoss`.
    """

    def __call__(self, outputs: Tensor, rows: TrainingSet) -> tuple[float, Tensor]:
        """Return the loss at the rows, and its gradient in the outputs."""
        value, slope = brier_loss(outputs, rows.targets, rows.weights)
        value = max(value, SMALLEST_ERROR)
        return math.log(value), slope / value


@dataclass(frozen=True)
class ClippedSquaredLoss:
    """The mean of ``min(|f - y|, limit)^2``: a bounded loss for numbers, as a bound on the risk requires.

    It is at most ``limit^2``, and its slope is at most ``2 limit``. The gradient is zero beyond the limit.
    """

    limit: float = 3.0  # in standard deviations of the target

    def __call__(self, outputs: Tensor, rows: TrainingSet) -> tuple[float, Tensor]:
        """Return the mean loss at the rows, and its gradient in the outputs."""
        share = (rows.weights / rows.weights.sum())[:, None] / outputs.shape[1]
        away = outputs - rows.targets
        value = (share * away.square().clamp(max=self.limit**2)).sum()
        return float(value), torch.where(away.abs() < self.limit, 2.0 * share * away, 0.0)


@dataclass(frozen=True)
class CalibratedLogLoss:
    """The cross entropy of calibrated probabilities, with a power map refitted at every evaluation."""

    def __call__(self, outputs: Tensor, rows: TrainingSet) -> tuple[float, Tensor]:
        """Return the mean loss at the rows, and its gradient in the outputs."""
        frequencies = rows.prior if bool(rows.prior.any()) else None
        return calibrated_log_loss(outputs, rows.targets, rows.weights, frequencies)


LOG_LOSS, BRIER = ClippedLogLoss(), BrierLoss()


def unit_of(loss: Loss) -> float:
    """Return the number by which a clipped cross entropy is divided; one for other losses."""
    return loss.unit if isinstance(loss, ClippedLogLoss) else 1.0


def clip_of_loss(loss: Loss) -> float:
    """Return the clip of a clipped cross entropy; the published one for other losses."""
    return loss.epsilon if isinstance(loss, ClippedLogLoss) else EPSILON


def half_log(loss: Loss, value: float) -> float:
    """Return half the logarithm of a loss, infinite for NaN: differences do not depend on the unit of squared errors.

    Times the number of rows, a difference is a gain in log likelihood if residuals are normal.
    """
    if math.isnan(value):
        return math.inf
    if isinstance(loss, LogSquaredLoss):
        return value
    return 0.5 * (value if isinstance(loss, LogCrpsLoss) else math.log(max(value, SMALLEST_ERROR)))


def loss_named(word: str, epsilon: float = EPSILON) -> Loss:
    """Return the loss behind a word: a form of the clipped cross entropy ("log", ...), "brier" or "calibrated"."""
    losses: dict[str, Loss] = {"brier": BrierLoss(), "calibrated": CalibratedLogLoss()}
    if word in CLIPPED_FORMS:
        return ClippedLogLoss(epsilon, word)
    if word not in losses:
        words = (*CLIPPED_FORMS, *losses)
        raise ValueError(f"The 'loss' of an objective must be one of {words}. Got {word!r} instead.")
    return losses[word]
