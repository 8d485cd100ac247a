"""Cross-validate a classifier next to rivals on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.metrics import confusion_matrix

from kernelwright.evaluation.importance import FoldImportance
from kernelwright.evaluation.scores import Score, Scores, _checked, mean_score, row_losses, score
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.conformal import CalibrationScores, scores_of
from kernelwright.uncertainty.importance import Importance
from kernelwright.uncertainty.scores import Reliability, reliability

__all__ = [
    "Evaluation",
    "HardRow",
    "Rival",
    "cross_validate",
    "hardest_rows",
    "of_rows",
    "prediction_sets",
    "taken",
]


@saved("evaluation-rival")
@dataclass(frozen=True)
class Rival:
    """Another method on the same rows.

    ``gain`` is its log loss minus ours, compared row by row: ours is better if the interval lies above zero.
    """

    scores: Scores
    gain: Score
    seconds: float


@saved("hard-row")
@dataclass(frozen=True)
class HardRow:
    """A row that the model predicted wrongly, or correctly with low confidence."""

    row: int
    actual: str
    predicted: str
    probability: float
    loss: float


def hardest_rows(
    probabilities: np.ndarray, labels: np.ndarray, *, rows: np.ndarray, classes: Sequence[str], count: int = 10
) -> list[HardRow]:
    """Return the rows with the largest log loss, worst first; ``rows`` are the row numbers."""
    losses = row_losses(probabilities, labels)
    predicted = probabilities.argmax(1)
    return [
        HardRow(
            int(rows[i]),
            classes[labels[i]],
            classes[predicted[i]],
            float(probabilities[i, labels[i]]),
            float(losses[i]),
        )
        for i in np.argsort(-losses, kind="stable")[:count]
    ]


@saved("evaluation")
@dataclass(frozen=True)
class Evaluation:
    """Out-of-sample predictions of a model, and their scores.

    Parameters
    ----------
    classes : tuple of str
    labels : ndarray of int, shape (n,)
        Indices into ``classes``.
    probabilities : ndarray of shape (n, n_classes)
    rows : ndarray of int, shape (n,)
        Row numbers in the table.
    protocol : str
        How it was measured, in words.
    scores : Scores
    seconds : float
        Time for fitting and predicting.
    rivals : dict of str to Rival
        Other methods on the same rows.
    row_word : {"row", "line"}
        The unit of ``rows``.
    importance : Importance or None
        The log loss that is added by permuting each column within the test rows of the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import Evaluation
    >>> p = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> found = Evaluation.of(p, np.array([0, 1, 1]), classes=("no", "yes"), protocol="three rows by hand")
    >>> found.confusion().tolist()
    [[1, 0], [1, 1]]
    >>> found.hardest(1)[0].row
    3
    """

    classes: tuple[str, ...]
    labels: np.ndarray
    probabilities: np.ndarray
    rows: np.ndarray
    protocol: str
    scores: Scores
    seconds: float = 0.0
    rivals: dict[str, Rival] = field(default_factory=dict)
    row_word: str = "row"
    importance: Importance | None = None

    @classmethod
    def of(cls, probabilities: np.ndarray, labels: np.ndarray, *, classes: Sequence[str], **rest: Any) -> Evaluation:
        """Score probabilities; rows are numbered from 1 unless ``rows`` is given."""
        probabilities, labels = _checked(probabilities, labels)
        rest.setdefault("rows", np.arange(1, len(labels) + 1))
        scores = score(probabilities, labels)
        return cls(classes=tuple(classes), labels=labels, probabilities=probabilities, scores=scores, **rest)

    def confusion(self) -> np.ndarray:
        """Count the rows by true class (down) and predicted class (across)."""
        return confusion_matrix(self.labels, self.probabilities.argmax(1), labels=range(len(self.classes)))

    def reliability(self, n_bins: int = 10) -> Reliability:
        """Compare confidence with accuracy in bins."""
        return reliability(self.probabilities, self.labels, n_bins)

    def hardest(self, count: int = 10) -> list[HardRow]:
        """Return the rows with the largest log loss, worst first."""
        return hardest_rows(self.probabilities, self.labels, rows=self.rows, classes=self.classes, count=count)

    def compare(self, probabilities: np.ndarray, seconds: float = 0.0) -> Rival:
        """Compare another method's probabilities for the same rows."""
        gap = row_losses(probabilities, self.labels) - row_losses(self.probabilities, self.labels)
        return Rival(score(probabilities, self.labels), mean_score(gap), seconds)

    def summary(self) -> dict[str, Any]:
        """Return the results without the rows, as plain lists and dictionaries."""
        return {
            "protocol": self.protocol,
            "rows": len(self.labels),
            "classes": list(self.classes),
            **asdict(self.scores),
            "seconds": self.seconds,
            "confusion_matrix": self.confusion().tolist(),
            "rivals": {name: asdict(rival) for name, rival in self.rivals.items()},
        }


def prediction_sets(evaluation: Evaluation, probabilities: np.ndarray, coverage: float = 0.9) -> np.ndarray:
    """Return sets of classes that contain the true class with probability ``coverage``, as a boolean matrix.

    These are split conformal sets, calibrated on the rows of an evaluation: a class is in the set unless its
    probability is smaller than that of the true class in all but a share 1 - coverage of those rows. The most probable
    class is always in the set.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import Evaluation, prediction_sets
    >>> p = np.tile([[0.7, 0.3], [0.4, 0.6]], (20, 1))
    >>> seen = Evaluation.of(p, np.tile([0, 1], 20), classes=("no", "yes"), protocol="by hand")
    >>> prediction_sets(seen, np.array([[0.95, 0.05], [0.55, 0.45]]), 0.9).tolist()
    [[True, False], [True, False]]
    """
    if not 0 < coverage < 1:
        raise ValueError(f"The coverage of prediction sets must be between 0 and 1. Got {coverage} instead.")
    seen, new = (scores_of(torch.from_numpy(p).log()) for p in (evaluation.probabilities, probabilities))
    labels = torch.from_numpy(evaluation.labels)
    own = seen.gather(1, labels[:, None])[:, 0]
    calibration = CalibrationScores(own, labels, torch.ones_like(own), coverage, class_conditional=False)
    inside = calibration.sets(calibration.smaller(new)).numpy()
    return inside | (np.arange(probabilities.shape[1]) == probabilities.argmax(1)[:, None])


def cross_validate(
    make_model: Callable[[], Any],
    frame: Any,
    labels: np.ndarray,
    *,
    classes: Sequence[str],
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    rivals: Mapping[str, Callable[[], Any]] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
    protocol: str | None = None,
    progress: Callable[[str], Any] = lambda name: None,
) -> Evaluation:
    """Predict every row with a model that was trained without it, and do the same with rivals on the same folds.

    The models of the folds also say which columns they look at: each column is permuted within the test rows of a fold
    (up to 2000 rows in all, and 3000 predictions for a fold; with more than 150 columns, none is).

    Parameters
    ----------
    make_model : callable
        Returns an unfitted classifier for integer labels.
    frame : array or data frame
    labels : ndarray of int
    classes : sequence of str
        Names of the classes 0, 1, ...
    splits : list of (training indices, test indices)
        See :func:`stratified_folds`, :func:`grouped_folds` and :func:`forward_folds`. Rows that no fold tests are not
        scored.
    rivals : dict of str to callable, optional
        Makers of other classifiers; one that fails on these rows (for example on numbers near 1e300) is left out.
    params : dict of str to ndarray, optional
        Parameters for the ``fit`` of the model, with a value for each row, such as groups. Rivals do not get them.
    protocol : str, optional
        How the rows were divided, in words; by default, by stratified folds.
    progress : callable, optional
        Called after each fit with the name of the method ("" is the model itself).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from kernelwright.evaluation import cross_validate, stratified_folds
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate(
    ...     lambda: LogisticRegression(max_iter=500),
    ...     X,
    ...     y,
    ...     classes=("setosa", "versicolor", "virginica"),
    ...     splits=stratified_folds(y, 3),
    ...     rivals={"majority class": lambda: DummyClassifier(strategy="prior")},
    ... )
    >>> found.scores.accuracy.low > 0.9 > found.rivals["majority class"].scores.accuracy.high
    True
    """
    makers = {"": make_model, **(rivals or {})}
    found = {name: np.zeros((len(labels), len(classes))) for name in makers}
    seconds = dict.fromkeys(makers, 0.0)
    tested = np.zeros(len(labels), dtype=bool)
    columns = FoldImportance("log loss", len(splits), np.random.default_rng(0))
    for train, test in splits:
        tested[test] = True
        for name, make in makers.items():
            if name not in found:
                continue
            started = time.perf_counter()
            try:
                given = {} if name else of_rows(params, train)
                model = make().fit(taken(frame, train), labels[train], **given)
                # A class without training rows in this fold has no column; its probability stays zero.
                found[name][np.ix_(test, model.classes_)] = model.predict_proba(taken(frame, test))
            except ValueError:
                if not name:
                    raise
                del found[name]  # a rival that cannot handle such numbers is no reason to stop
            seconds[name] += time.perf_counter() - started
            if not name:
                columns.add(_log_losses(model, labels[test], len(classes)), taken(frame, test))
            progress(name)
    rows = np.flatnonzero(tested) + 1
    told = "every row" if tested.all() else f"each of {tested.sum()} rows"
    ours = Evaluation.of(
        found[""][tested],
        labels[tested],
        classes=classes,
        rows=rows,
        protocol=protocol
        or f"stratified cross-validation with {len(splits)} folds: {told} was predicted by a model that was trained "
        "without it",
        seconds=seconds[""],
        importance=columns.result(),
    )
    ours.rivals.update({name: ours.compare(found[name][tested], seconds[name]) for name in found if name})
    return ours


def _log_losses(model: Any, labels: np.ndarray, n_classes: int) -> Callable[[Any, np.ndarray], np.ndarray]:
    def losses(rows: Any, places: np.ndarray) -> np.ndarray:
        p = np.zeros((len(places), n_classes))
        p[:, model.classes_] = model.predict_proba(rows)
        return row_losses(p, labels[places])

    return losses


def of_rows(params: Mapping[str, np.ndarray] | None, places: np.ndarray) -> dict[str, np.ndarray]:
    """Return the values that parameters of a fit have for some rows."""
    return {name: values[places] for name, values in (params or {}).items()}


def taken(frame: Any, places: np.ndarray) -> Any:
    """Return some rows of an array or a data frame."""
    return frame.iloc[places] if hasattr(frame, "iloc") else frame[places]
