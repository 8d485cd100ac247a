"""Stretches of a reliability curve in which a model is over- or underconfident."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Stretch", "confidence_sentence", "confidence_stretches"]

BINS = 10  # as in the plot of the curve
SURE = 2.6  # standard errors; stretches are searched for, so more than for a single comparison
WORTH = 0.03  # gap between confidence and accuracy below which a stretch is not worth a word


@dataclass(frozen=True)
class Stretch:
    """Rows of neighbouring confidences, and how often their predictions are right.

    Parameters
    ----------
    low, high : float
        Limits of the confidence.
    confidence, accuracy : float
        Means over the rows.
    rows : int
    """

    low: float
    high: float
    confidence: float
    accuracy: float
    rows: int

    @property
    def gap(self) -> float:
        """Confidence minus accuracy: positive if the model is overconfident."""
        return self.confidence - self.accuracy

    @property
    def sureness(self) -> float:
        """The size of the gap in standard errors."""
        error = math.sqrt(max(self.confidence * (1.0 - self.confidence), 0.25 / (self.rows + 1)) / self.rows)
        return abs(self.gap) / error

    @property
    def clear(self) -> bool:
        """Whether the gap is large, and larger than chance allows."""
        return abs(self.gap) > WORTH and self.sureness > SURE


def confidence_stretches(probabilities: np.ndarray, labels: np.ndarray) -> list[Stretch]:
    """Return the stretches of confidence in which a model is clearly over- or underconfident, by confidence.

    A stretch is a run of neighbouring bins of the reliability curve on the same side of the diagonal: its clearest
    part, and what is clear of the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import confidence_stretches
    >>> p = np.repeat([[0.65, 0.35], [0.95, 0.05]], 200, axis=0)
    >>> labels = np.r_[np.arange(200) % 2, np.arange(200) % 20 == 0].astype(int)
    >>> [(each.low, each.high, round(each.gap, 2)) for each in confidence_stretches(p, labels)]
    [(0.6, 0.7, 0.15)]
    """
    confidence, correct = probabilities.max(1), probabilities.argmax(1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    filled = np.unique(bins)
    sign = {k: float(np.sign((confidence - correct)[bins == k].sum())) for k in filled.tolist()}
    runs: list[list[int]] = []
    for k in filled.tolist():
        if runs and runs[-1][-1] == k - 1 and sign[k] == sign[k - 1]:
            runs[-1].append(k)
        else:
            runs.append([k])
    found = []
    for run in runs:
        clear = _clear_bins(run, lambda part: _stretch(part, bins, confidence, correct))
        together = np.split(clear, np.flatnonzero(np.diff(clear) > 1) + 1) if clear else []
        found += [_stretch(part.tolist(), bins, confidence, correct) for part in together]
    return found


def _clear_bins(run: list[int], stretch: Callable[[list[int]], Stretch]) -> list[int]:
    """Return the bins of the clearest part of a run, and of what is clear on either side of it."""
    parts = [run[i : j + 1] for i in range(len(run)) for j in range(i, len(run))]
    clear = [part for part in parts if stretch(part).clear]
    if not clear:
        return []
    best = max(clear, key=lambda part: stretch(part).sureness)
    left, right = run[: run.index(best[0])], run[run.index(best[-1]) + 1 :]
    return [*_clear_bins(left, stretch), *best, *_clear_bins(right, stretch)]


def _stretch(part: list[int], bins: np.ndarray, confidence: np.ndarray, correct: np.ndarray) -> Stretch:
    inside = (part[0] <= bins) & (bins <= part[-1])
    means = float(confidence[inside].mean()), float(correct[inside].mean())
    return Stretch(part[0] / BINS, (part[-1] + 1) / BINS, *means, int(inside.sum()))


def confidence_sentence(probabilities: np.ndarray, labels: np.ndarray) -> str:
    """Say whether the confidence of a model is justified, and name the stretches where it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import confidence_sentence
    >>> p, labels = np.tile([0.9, 0.1], (1000, 1)), (np.arange(1000) % 10 == 0).astype(int)
    >>> print(confidence_sentence(p, labels))
    Its confidence is justified: it is 90 % sure on average, and right in 90 % of the rows.
    """
    stretches = confidence_stretches(probabilities, labels)
    sure, right = float(probabilities.max(1).mean()), float((probabilities.argmax(1) == labels).mean())
    if not stretches:
        means = f"it is {100 * sure:.0f} % sure on average, and right in {100 * right:.0f} % of the rows"
        if abs(sure - right) > WORTH:
            return f"There are too few rows to tell whether its confidence is justified: {means}."
        return f"Its confidence is justified: {means}."
    parts = [
        f"{'over' if each.gap > 0 else 'under'}confident where it is {100 * each.low:.0f} to {100 * each.high:.0f} % "
        f"sure (right in {100 * each.accuracy:.0f} % of {each.rows:,} rows, {100 * each.confidence:.0f} % claimed)"
        for each in stretches
    ]
    whole = len(stretches) == 1 and stretches[0].rows == len(labels)
    rest = "" if whole else " Elsewhere, its confidence is justified."
    return f"It is {' and '.join(parts)}.{rest}"
