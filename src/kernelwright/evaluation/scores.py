"""Score predicted probabilities, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import binomtest

from kernelwright.storage.saved import saved
from kernelwright.uncertainty.scores import expected_calibration_error

__all__ = ["NORMAL", "Score", "Scores", "mean_score", "score", "wilson"]


NORMAL = float(ndtri(0.975))
SMALLEST = 1e-15  # a probability of zero would have an infinite loss
BOOTSTRAP = (400, 20_000_000)  # number of samples, and most rows in all samples together


@saved("evaluation-score")
@dataclass(frozen=True)
class Score:
    """A number and its 95 % interval.

    Examples
    --------
    >>> from kernelwright.evaluation import Score
    >>> print(Score(0.95, 0.91, 0.98))
    0.950 (0.910 to 0.980)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@saved("evaluation-scores")
@dataclass(frozen=True)
class Scores:
    """The scores of one method. Higher is better for the accuracy, lower for the others."""

    accuracy: Score
    log_loss: Score
    brier: Score
    calibration_error: Score


def score(probabilities: np.ndarray, labels: np.ndarray) -> Scores:
    """Compute accuracy, log loss, Brier score and expected calibration error (10 bins), each with an interval.

    The interval is Wilson's for the accuracy, that of a mean for log loss and Brier score, and a bootstrap interval
    for the calibration error.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    labels : ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import score
    >>> p = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.9, 0.1]])
    >>> print(score(p, np.array([0, 1, 1, 0])).accuracy)
    0.750 (0.301 to 0.954)
    """
    probabilities, labels = _checked(probabilities, labels)
    correct = probabilities.argmax(1) == labels
    return Scores(
        accuracy=wilson(int(correct.sum()), len(labels)),
        log_loss=mean_score(row_losses(probabilities, labels), lowest=0.0),
        brier=mean_score(((probabilities - _one_hot(labels, probabilities.shape[1])) ** 2).sum(1), lowest=0.0),
        calibration_error=_calibration_error(probabilities, labels),
    )


def row_losses(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return minus the logarithm of the probability of the true class, row by row."""
    return -np.log(np.clip(probabilities[np.arange(len(labels)), labels], SMALLEST, 1.0))


def _checked(probabilities: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    probabilities, labels = np.asarray(probabilities, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    if probabilities.ndim != 2 or len(probabilities) != len(labels) or len(labels) == 0:
        raise ValueError(
            f"Scores need a row of probabilities for each label. Got shapes {probabilities.shape} and {labels.shape}."
        )
    return probabilities, labels


def _one_hot(labels: np.ndarray, m: int) -> np.ndarray:
    return (labels[:, None] == np.arange(m)).astype(np.float64)


def wilson(hits: int, n: int) -> Score:
    """Compute Wilson's interval of a share, which stays inside [0, 1] and is not empty at 0 or n hits."""
    interval = binomtest(hits, n).proportion_ci(method="wilson")
    return Score(hits / n, float(interval.low), float(interval.high))


def mean_score(values: np.ndarray, lowest: float = -math.inf) -> Score:
    """Compute the mean of independent values and its interval, which does not go below ``lowest``."""
    mean = float(values.mean())
    half = NORMAL * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Score(mean, max(lowest, mean - half), mean + half)


def _calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> Score:
    """Compute a bootstrap interval, corrected for bias: resampling increases a sum of absolute values."""
    n, random = len(labels), np.random.default_rng(0)
    value = expected_calibration_error(probabilities, labels)
    samples = []
    for _ in range(max(50, min(BOOTSTRAP[0], BOOTSTRAP[1] // n))):
        rows = random.integers(n, size=n)
        samples.append(expected_calibration_error(probabilities[rows], labels[rows]))
    low, high = np.quantile(samples, [0.025, 0.975]) - (np.mean(samples) - value)
    return Score(value, max(0.0, min(float(low), value)), min(1.0, max(float(high), value)))
