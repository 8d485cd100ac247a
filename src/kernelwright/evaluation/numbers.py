"""Cross-validate a regressor that predicts distributions next to rivals on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from kernelwright.evaluation.cross_validation import taken
from kernelwright.evaluation.number_scores import (
    COVERAGE,
    NumberPredictions,
    NumberScores,
    around_residuals,
    score_numbers,
)
from kernelwright.evaluation.scores import Score, mean_score
from kernelwright.storage.saved import saved

__all__ = ["HardNumber", "NumberEvaluation", "NumberRival", "cross_validate_numbers", "number_folds", "predictions_of"]

LEVELS = np.arange(1, 20) / 20  # quantiles that intervals and probabilities are read from
FEWEST = 4  # rows from which on half of them can be left out


@saved("number-rival")
@dataclass(frozen=True)
class NumberRival:
    """Another method on the same rows.

    ``gain`` is its CRPS minus ours, and ``error_gain`` its squared error minus ours, compared row by row: ours is
    better if the interval lies above zero.
    """

    scores: NumberScores
    gain: Score
    error_gain: Score
    seconds: float


@saved("hard-number")
@dataclass(frozen=True)
class HardNumber:
    """A row whose number is far from what was predicted."""

    row: int
    actual: float
    predicted: float
    low: float
    high: float
    crps: float


@saved("number-evaluation")
@dataclass(frozen=True)
class NumberEvaluation:
    """Out-of-sample predictions of numbers, and their scores.

    Parameters
    ----------
    actual : ndarray of shape (n,)
    predictions : NumberPredictions
    rows : ndarray of int, shape (n,)
        Row numbers in the table.
    protocol : str
        How it was measured, in words.
    scores : NumberScores
    seconds : float
        Time for fitting and predicting.
    rivals : dict of str to NumberRival
        Other methods on the same rows. Their distributions are those of their residuals in the other folds.
    row_word : {"row", "line"}
        The unit of ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import NumberEvaluation, around_residuals
    >>> y = np.array([1.0, 2.0, 9.0])
    >>> said = around_residuals(np.array([1.0, 2.0, 3.0]), np.array([-1.0, 1.0]), y)
    >>> NumberEvaluation.of(said, y, protocol="three rows by hand").hardest(1)[0].row
    3
    """

    actual: np.ndarray
    predictions: NumberPredictions
    rows: np.ndarray
    protocol: str
    scores: NumberScores
    seconds: float = 0.0
    rivals: dict[str, NumberRival] = field(default_factory=dict)
    row_word: str = "row"

    @classmethod
    def of(cls, predictions: NumberPredictions, actual: np.ndarray, **rest: Any) -> NumberEvaluation:
        """Score predictions; rows are numbered from 1 unless ``rows`` is given."""
        rest.setdefault("rows", np.arange(1, len(actual) + 1))
        return cls(actual=actual, predictions=predictions, scores=score_numbers(predictions, actual), **rest)

    def hardest(self, count: int = 10) -> list[HardNumber]:
        """Return the rows with the largest CRPS, worst first."""
        p = self.predictions
        worst = np.argsort(-p.crps, kind="stable")[:count]
        columns = (self.rows, self.actual, p.means, p.low, p.high, p.crps)
        return [
            HardNumber(int(row), *map(float, rest)) for row, *rest in zip(*(c[worst] for c in columns), strict=True)
        ]

    def compare(self, predictions: NumberPredictions, seconds: float = 0.0) -> NumberRival:
        """Compare another method's predictions of the same rows."""
        squares = [np.square(self.actual - each.means) for each in (predictions, self.predictions)]
        return NumberRival(
            score_numbers(predictions, self.actual),
            mean_score(predictions.crps - self.predictions.crps),
            mean_score(squares[0] - squares[1]),
            seconds,
        )

    def summary(self) -> dict[str, Any]:
        """Return the results without the rows, as plain lists and dictionaries."""
        return {
            "protocol": self.protocol,
            "rows": len(self.actual),
            "interval": COVERAGE,
            **asdict(self.scores),
            "seconds": self.seconds,
            "rivals": {name: asdict(rival) for name, rival in self.rivals.items()},
        }


def predictions_of(model: Any, X: Any, y: np.ndarray) -> NumberPredictions:
    """Predict the rows X with a fitted :class:`EmbeddingRegressor`, or a pipeline that ends in one."""
    X, regressor = (model[:-1].transform(X), model[-1]) if isinstance(model, Pipeline) else (X, model)
    quantiles = regressor.quantile(X, LEVELS)
    below, upto = (quantiles < y[:, None]).sum(1), (quantiles <= y[:, None]).sum(1)
    share = np.random.default_rng(0).uniform(size=len(y))
    pit = (below + share * (upto + 1 - below)) / (len(LEVELS) + 1)
    return NumberPredictions(regressor.predict(X), quantiles[:, 0], quantiles[:, -1], regressor.crps(X, y), pit)


def number_folds(n: int, folds: int = 5, *, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the indices of training and test rows of random folds; fewer folds if there are few rows.

    Examples
    --------
    >>> from kernelwright.evaluation import number_folds
    >>> len(number_folds(100, 5)), len(number_folds(6, 5))
    (5, 3)
    """
    if n < FEWEST:
        raise ValueError(f"Cross-validation needs at least {FEWEST} rows. Got {n}. Use --no-cv, or more rows.")
    found = KFold(min(folds, n // 2), shuffle=True, random_state=seed).split(np.zeros(n))
    return [(train, test) for train, test in found]


def cross_validate_numbers(
    make_model: Callable[[], Any],
    frame: Any,
    y: np.ndarray,
    *,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    rivals: Mapping[str, Callable[[], Any]] | None = None,
    progress: Callable[[str], Any] = lambda name: None,
) -> NumberEvaluation:
    """Predict every row with a model that was trained without it, and do the same with rivals on the same folds.

    Rivals predict only a mean. In each fold they get the distribution of their own residuals in the other folds, all of
    which are errors at rows that were left out, so that CRPS and intervals can be compared.

    Parameters
    ----------
    make_model : callable
        Returns an unfitted :class:`EmbeddingRegressor`, or a pipeline that ends in one.
    frame : array or data frame
    y : ndarray
        Numbers.
    splits : list of (training indices, test indices)
        Together they test every row once; see :func:`number_folds`.
    rivals : dict of str to callable, optional
        Makers of other regressors; one that fails on these rows is left out.
    progress : callable, optional
        Called after each fit with the name of the method ("" is the model itself).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from kernelwright import EmbeddingRegressor
    >>> from kernelwright.evaluation import cross_validate_numbers, number_folds
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-2, 2, (120, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * random.normal(size=120)
    >>> make = lambda: EmbeddingRegressor(random_state=0)
    >>> found = cross_validate_numbers(make, X, y, splits=number_folds(120, 2), rivals={"mean": DummyRegressor})
    >>> found.scores.r2.low > 0.9 > found.rivals["mean"].scores.r2.high
    True
    """
    ours: list[NumberPredictions] = []
    means = {name: np.zeros(len(y)) for name in rivals or {}}
    seconds = dict.fromkeys(["", *means], 0.0)
    for train, test in splits:
        started = time.perf_counter()
        ours.append(predictions_of(make_model().fit(taken(frame, train), y[train]), taken(frame, test), y[test]))
        seconds[""] += time.perf_counter() - started
        progress("")
        for name, make in (rivals or {}).items():
            started = time.perf_counter()
            try:
                if name in means:
                    means[name][test] = make().fit(taken(frame, train), y[train]).predict(taken(frame, test))
            except ValueError:
                del means[name]  # a rival that cannot handle such numbers is no reason to stop
            seconds[name] += time.perf_counter() - started
            progress(name)
    tests = [test for _, test in splits]
    found = NumberEvaluation.of(
        _in_order(ours, tests),
        y,
        protocol=f"cross-validation with {len(splits)} folds: every row was predicted by a model that was trained "
        "without it",
        seconds=seconds[""],
    )
    for name, of_rows in means.items():
        parts = [around_residuals(of_rows[test], np.delete(y - of_rows, test), y[test]) for test in tests]
        found.rivals[name] = found.compare(_in_order(parts, tests), seconds[name])
    return found


def _in_order(parts: Sequence[NumberPredictions], tests: Sequence[np.ndarray]) -> NumberPredictions:
    """Join the predictions of all folds, in the order of the rows."""
    names = ("means", "low", "high", "crps", "pit")
    joined = NumberPredictions(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    return joined.take(np.argsort(np.concatenate(tests)))
