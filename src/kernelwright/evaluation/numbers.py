"""Cross-validate a regressor that predicts distributions next to rivals on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelwright.evaluation.cross_validation import of_rows, taken
from kernelwright.evaluation.importance import FoldImportance
from kernelwright.evaluation.number_scores import (
    COVERAGE,
    NumberPredictions,
    NumberScores,
    around_residuals,
    score_numbers,
)
from kernelwright.evaluation.scores import Score, mean_score
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.importance import Importance

__all__ = ["HardNumber", "NumberEvaluation", "NumberRival", "cross_validate_numbers", "predictions_of"]

LEVELS = np.arange(1, 20) / 20  # quantiles that intervals and probabilities are read from


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
    importance : Importance or None
        The CRPS that is added by permuting each column within the test rows of the folds.

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
    importance: Importance | None = None

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
    X, regressor = _last_step(model, X)
    quantiles = np.asarray(regressor.quantile(X, LEVELS))
    below, upto = (quantiles < y[:, None]).sum(1), (quantiles <= y[:, None]).sum(1)
    share = np.random.default_rng(0).uniform(size=len(y))
    pit = (below + share * (upto + 1 - below)) / (len(LEVELS) + 1)
    means, crps = np.asarray(regressor.predict(X)), np.asarray(regressor.crps(X, y))
    return NumberPredictions(means, quantiles[:, 0], quantiles[:, -1], crps, pit)


def _last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the rows as the last step of a pipeline sees them, and this step."""
    if not isinstance(model, Pipeline):
        return X, model
    return model[:-1].transform(X) if len(model) > 1 else X, model[-1]


def _crps(model: Any, y: np.ndarray, X: Any, places: np.ndarray) -> np.ndarray:
    rows, regressor = _last_step(model, X)
    return np.asarray(regressor.crps(rows, y[places]))


def cross_validate_numbers(
    make_model: Callable[[], Any],
    frame: Any,
    y: np.ndarray,
    *,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    rivals: Mapping[str, Callable[[], Any]] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
    protocol: str | None = None,
    progress: Callable[[str], Any] = lambda name: None,
) -> NumberEvaluation:
    """Predict every row with a model that was trained without it, and do the same with rivals on the same folds.

    Rivals predict only a mean. In each fold they get the distribution of their own residuals in the other folds, all of
    which are errors at rows that were left out, so that CRPS and intervals can be compared. With :func:`forward_folds`,
    these include later folds, which favours rivals.

    Parameters
    ----------
    make_model : callable
        Returns an unfitted :class:`EmbeddingRegressor`, or a pipeline that ends in one.
    frame : array or data frame
    y : ndarray
        Numbers.
    splits : list of (training indices, test indices)
        At least two, which test each row at most once; see :func:`number_folds`, :func:`grouped_folds` and
        :func:`forward_folds`. Rows that no fold tests are not scored.
    rivals : dict of str to callable, optional
        Makers of other regressors; one that fails on these rows is left out.
    params : dict of str to ndarray, optional
        Parameters for the ``fit`` of the model, with a value for each row, such as groups. Rivals do not get them.
    protocol : str, optional
        How the rows were divided, in words; by default, by random folds.
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
    columns = FoldImportance("CRPS", len(splits), np.random.default_rng(0))
    for train, test in splits:
        started = time.perf_counter()
        model = make_model().fit(taken(frame, train), y[train], **of_rows(params, train))
        rows = taken(frame, test)
        ours.append(predictions_of(model, rows, y[test]))
        seconds[""] += time.perf_counter() - started
        columns.add(partial(_crps, model, y[test]), rows)
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
    tested = np.sort(np.concatenate(tests))
    found = NumberEvaluation.of(
        _in_order(ours, tests),
        y[tested],
        rows=tested + 1,
        protocol=protocol
        or f"cross-validation with {len(splits)} folds: every row was predicted by a model that was trained without it",
        seconds=seconds[""],
        importance=columns.result(),
    )
    for name, predicted in means.items():
        others = [np.setdiff1d(tested, test) for test in tests]
        parts = [
            around_residuals(predicted[test], (y - predicted)[other], y[test])
            for test, other in zip(tests, others, strict=True)
        ]
        found.rivals[name] = found.compare(_in_order(parts, tests), seconds[name])
    return found


def _in_order(parts: Sequence[NumberPredictions], tests: Sequence[np.ndarray]) -> NumberPredictions:
    """Join the predictions of all folds, in the order of the rows."""
    names = ("means", "low", "high", "crps", "pit")
    joined = NumberPredictions(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    return joined.take(np.argsort(np.concatenate(tests)))
