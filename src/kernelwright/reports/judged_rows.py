"""Targets of rows next to their distributions, as predicted by a model that has not seen them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.evaluation.scores import Score

__all__ = ["COVERAGE", "SCORES", "JudgedRows", "evaluated_rows", "judged_rows", "left_out_rows"]

COVERAGE = 0.9  # of the intervals on a page
BOOTSTRAP = 400
SCORES = {"R²": "r2", "RMSE": "rmse", "MAE": "mae", "CRPS": "crps", "coverage": "coverage", "width": "width"}


@dataclass(frozen=True)
class JudgedRows:
    """Targets, and what was predicted for each: mean, interval, distribution function at the target, and CRPS.

    Parameters
    ----------
    y, weights, mean : ndarray of shape (n,)
    interval : ndarray of shape (n, 2)
        With a coverage of 90 %.
    pit : ndarray of shape (n, 2)
        The distribution function just below the target, and at it.
    crps : ndarray of shape (n,)
    rows : ndarray of int or None
        Row numbers, if they are known.
    row_word, protocol : str
        What ``rows`` counts, and how the predictions were made, in words.
    known_scores : dict of str to Score or None, default=None
        Scores, if they were computed elsewhere.
    """

    y: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    interval: np.ndarray
    pit: np.ndarray
    crps: np.ndarray
    rows: np.ndarray | None
    row_word: str
    protocol: str
    known_scores: Mapping[str, Score] | None = None

    @property
    def tail(self) -> np.ndarray:
        """How probable a target at least as far out was, on either side."""
        return np.minimum(2.0 * np.minimum(self.pit[:, 1], 1.0 - self.pit[:, 0]), 1.0)

    def scores(self) -> Mapping[str, Score]:
        """Return R^2, RMSE, MAE, CRPS, coverage and mean width of the intervals, with bootstrap intervals."""
        if self.known_scores is not None:
            return self.known_scores
        low, high = self.interval.T
        inside = (low <= self.y) & (self.y <= high)
        errors, centred = self.y - self.mean, self.y - np.average(self.y, weights=self.weights)
        columns = np.column_stack([errors**2, np.abs(errors), self.crps, inside, high - low, centred, centred**2])
        draws = np.random.default_rng(0).multinomial(len(self.y), np.full(len(self.y), 1 / len(self.y)), BOOTSTRAP)
        weights = np.vstack([np.ones(len(self.y)), draws]) * self.weights
        means = weights @ columns / weights.sum(1, keepdims=True)
        squared, absolute, crps, covered, width, first, second = means.T
        found = {
            "R²": 1.0 - squared / np.maximum(second - first**2, 1e-300),
            "RMSE": np.sqrt(squared),
            "MAE": absolute,
            "CRPS": crps,
            "coverage": covered,
            "width": width,
        }
        return {name: _score(values) for name, values in found.items()}


def _score(values: np.ndarray) -> Score:
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return Score(float(values[0]), float(min(low, values[0])), float(max(high, values[0])))


def judged_rows(model: Any) -> JudgedRows:
    """Return the rows of a cross-validation if the model of a table has one, else those that its fit left out."""
    return left_out_rows(model.pipeline[-1]) if model.evaluation is None else evaluated_rows(model.evaluation)


def evaluated_rows(evaluation: Any) -> JudgedRows:
    """Return the rows of a cross-validation of numbers."""
    found = evaluation.predictions
    return JudgedRows(
        evaluation.actual,
        np.ones(len(evaluation.actual)),
        found.means,
        np.column_stack([found.low, found.high]),
        np.column_stack([found.pit, found.pit]),
        found.crps,
        evaluation.rows,
        evaluation.row_word,
        evaluation.protocol,
        {name: getattr(evaluation.scores, word) for name, word in SCORES.items()},
    )


def left_out_rows(regressor: Any) -> JudgedRows:
    """Return the rows that a fitted regressor left out, as predicted without them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import EmbeddingRegressor
    >>> from kernelwright.reports.judged_rows import left_out_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 1))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=100)
    >>> found = left_out_rows(EmbeddingRegressor(random_state=0).fit(X, y))
    >>> bool(found.scores()["R²"].low > 0.9), np.allclose(found.y, y[found.rows - 1])
    (True, True)
    """
    link, rows = regressor.links_[0], regressor.left_out_[0]
    prediction = link(rows.location, rows.log_scale, rows.direct, rows.support)
    levels = np.broadcast_to([0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2], (len(rows.y), 2))
    at = np.column_stack([np.nextafter(rows.y, -np.inf), rows.y])
    return JudgedRows(
        rows.y,
        rows.weights,
        prediction.mean(),
        prediction.quantile(levels),
        prediction.cdf(at),
        prediction.crps(rows.y),
        _numbers_of(regressor),
        "training row",
        f"leaving rows out: each of {len(rows.y):,} rows was predicted without it. But the kernel, the ridge and "
        "the shape of the distribution were chosen with the same rows, so the scores are slightly optimistic",
    )


def _numbers_of(regressor: Any) -> np.ndarray | None:
    """Return the number of each left-out row among those passed to ``fit``, from 1; of equal rows, the first one."""
    rows, n = regressor.embedding_.rows, len(regressor.left_out_[0].y)
    if rows is None or len(rows.weights) != n:
        return None  # a sample was left out
    given, first = np.flatnonzero(rows.given) + 1, np.zeros(n, dtype=np.int64)
    first[rows.place[::-1]] = given[::-1]
    return first
