"""Calibration scores of predicted probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.storage.saved import saved

__all__ = ["Reliability", "expected_calibration_error", "rejection_curve", "reliability"]


@saved("reliability")
@dataclass(frozen=True)
class Reliability:
    """Accuracy by bins of the confidence in the predicted class; empty bins are left out."""

    confidence: np.ndarray  # mean in each bin
    accuracy: np.ndarray
    counts: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between confidence and accuracy over all rows."""
        return float(self.counts @ np.abs(self.confidence - self.accuracy) / self.counts.sum())


def reliability(probabilities: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> Reliability:
    """Compute confidence and accuracy in bins of equal width; ``labels`` index the columns of ``probabilities``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.uncertainty.scores import reliability
    >>> curve = reliability(np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]]), np.array([0, 1, 1]))
    >>> curve.confidence, curve.accuracy, curve.counts, round(curve.error, 2)
    (array([0.6, 0.9]), array([1. , 0.5]), array([1, 2]), 0.4)
    """
    confidence, correct = probabilities.max(1), probabilities.argmax(1) == labels
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    filled = counts > 0
    means = [np.bincount(bins, values, n_bins)[filled] / counts[filled] for values in (confidence, correct)]
    return Reliability(means[0], means[1], counts[filled])


def expected_calibration_error(probabilities: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """Return the mean gap between confidence and accuracy over equal-width bins of confidence."""
    return reliability(probabilities, labels, n_bins).error


def rejection_curve(
    probabilities: np.ndarray, labels: np.ndarray, uncertainty: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of answered rows, and the accuracy on them if the most uncertain rows are rejected.

    Uncertainty is one minus the confidence unless it is given (an entropy, say). Rows of equal uncertainty are answered
    or rejected together.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.uncertainty.scores import rejection_curve
    >>> rejection_curve(np.array([[0.9, 0.1], [0.2, 0.8], [0.55, 0.45], [0.6, 0.4]]), np.array([0, 1, 1, 0]))
    (array([0.25, 0.5 , 0.75, 1.  ]), array([1.  , 1.  , 1.  , 0.75]))
    """
    u = 1.0 - probabilities.max(1) if uncertainty is None else np.asarray(uncertainty, dtype=np.float64)
    order = np.argsort(u, kind="stable")
    correct = (probabilities.argmax(1) == labels)[order]
    last_of_equals = np.append(np.flatnonzero(np.diff(u[order])), len(u) - 1)
    answered = last_of_equals + 1.0
    return answered / len(u), np.cumsum(correct)[last_of_equals] / answered
