"""Score predicted distributions of numbers, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelwright.evaluation.scores import NORMAL, Score, mean_score, wilson
from kernelwright.storage.saved import saved

__all__ = ["COVERAGE", "NumberPredictions", "NumberScores", "around_residuals", "score_numbers"]

COVERAGE = 0.9  # of the intervals that are scored


@saved("number-predictions")
@dataclass(frozen=True)
class NumberPredictions:
    """Predictions of numbers, row by row.

    Parameters
    ----------
    means : ndarray of shape (n,)
    low, high : ndarray of shape (n,)
        Ends of the intervals that should hold 90 % of the numbers.
    crps : ndarray of shape (n,)
        Continuous ranked probability score of the predicted distribution at the actual number.
    pit : ndarray of shape (n,)
        Probability that the predicted number is at most the actual one, drawn at random within a step of 5 % and within
        the jumps of the predicted distribution. It is uniform in [0, 1] if the predicted distributions are true.
    """

    means: np.ndarray
    low: np.ndarray
    high: np.ndarray
    crps: np.ndarray
    pit: np.ndarray

    def take(self, rows: np.ndarray) -> NumberPredictions:
        """Return the predictions of some rows."""
        return NumberPredictions(self.means[rows], self.low[rows], self.high[rows], self.crps[rows], self.pit[rows])


@saved("number-scores")
@dataclass(frozen=True)
class NumberScores:
    """The scores of one method: higher is better for R^2, lower for errors, CRPS and width; coverage should be 0.9."""

    r2: Score
    rmse: Score
    mae: Score
    crps: Score
    coverage: Score
    width: Score


def score_numbers(found: NumberPredictions, y: np.ndarray) -> NumberScores:
    """Compute R^2, root mean squared error, mean absolute error, CRPS, and coverage and width of 90 % intervals.

    Each has a 95 % interval: Wilson's for the coverage, and that of a mean for the absolute error, the CRPS, the width
    and the squared error. R^2 is one minus a ratio of means, and has the interval of a linearised ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import around_residuals, score_numbers
    >>> y = np.array([1.0, 2.0, 3.0, 4.0])
    >>> found = around_residuals(np.array([1.5, 1.5, 3.5, 3.5]), np.array([-1.0, 0.0, 1.0]), y)
    >>> round(score_numbers(found, y).r2.value, 6), score_numbers(found, y).rmse.value
    (0.8, 0.5)
    """
    errors = y - found.means
    squares = mean_score(np.square(errors), lowest=0.0)
    inside = (found.low <= y) & (y <= found.high)
    return NumberScores(
        r2=_explained(errors, y),
        rmse=Score(math.sqrt(squares.value), math.sqrt(squares.low), math.sqrt(squares.high)),
        mae=mean_score(np.abs(errors), lowest=0.0),
        crps=mean_score(found.crps, lowest=0.0),
        coverage=wilson(int(inside.sum()), len(y)),
        width=mean_score(found.high - found.low, lowest=0.0),
    )


def _explained(errors: np.ndarray, y: np.ndarray) -> Score:
    """Compute ``R^2 = 1 - mean(e^2) / mean(t^2)`` with ``t = y - mean(y)``; NaN if all numbers are equal.

    To first order, the ratio rho errs by the mean of ``(e_i^2 - rho t_i^2) / mean(t^2)``.
    """
    e, t = np.square(errors), np.square(y - y.mean())
    if t.mean() == 0 or len(y) < 3:
        return Score(math.nan, math.nan, math.nan)
    rho = e.mean() / t.mean()
    half = NORMAL * float(np.std((e - rho * t) / t.mean(), ddof=1)) / math.sqrt(len(y))
    return Score(float(1 - rho), float(1 - rho - half), min(1.0, float(1 - rho + half)))


def around_residuals(means: np.ndarray, residuals: np.ndarray, y: np.ndarray) -> NumberPredictions:
    """Give point predictions the distribution of residuals: ``mean_i + r_j``, each r_j equally probable.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import around_residuals
    >>> around_residuals(np.array([5.0]), np.array([0.0]), np.array([3.0])).crps.tolist()  # certain: absolute error
    [2.0]
    """
    r, z = np.sort(residuals), y - means
    k, sums = len(r), np.append(0.0, np.cumsum(r))
    below, upto = np.searchsorted(r, z, side="left"), np.searchsorted(r, z, side="right")
    # E|R - z| - E|R - R'| / 2, with sums over the residuals on either side of z
    distance = (below * z - sums[below] + (sums[-1] - sums[below]) - (k - below) * z) / k
    spread = float((2 * np.arange(k) - k + 1) @ r) / k**2
    pit = (below + np.random.default_rng(0).uniform(size=len(z)) * (upto - below)) / k
    low, high = np.quantile(r, [0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE])
    return NumberPredictions(means, means + low, means + high, np.maximum(distance - spread, 0.0), pit)
