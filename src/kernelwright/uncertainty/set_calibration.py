"""Calibrations of prediction sets: by rows kept aside, by folds, by leaving out each row, by MAPIE.

Each is a record with one verb, ``sets(X)``; those by scores count for it how many calibration rows are less odd than a
class would be at a new row: ``smaller(X)``. Of classifiers they use public methods only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import LeftOutRows
from kernelwright.inputs.labelled_rows import LabelledRows
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.conformal import CalibrationScores, Promise, scores_of, smaller_scores

__all__ = [
    "CrossCalibration",
    "LeftOutCalibration",
    "MapieCalibration",
    "SetCalibration",
    "SplitCalibration",
    "calibrate_by_mapie",
    "calibrate_cross",
    "calibrate_left_out",
    "calibrate_split",
    "log_probabilities",
]

BLOCK_ENTRIES = 2**22  # leave-one-out outputs held at once


class SetCalibration(Protocol):
    """What sets of new rows are made by."""

    @property
    def n_rows(self) -> int:
        """How many rows calibrate."""

    def sets(self, X: Any) -> np.ndarray:
        """Return which classes are in the set of each row: a boolean array, a column for each class."""


class ScoreCalibration(ABC):
    """A calibration by the scores of calibration rows."""

    scores: CalibrationScores

    @property
    def n_rows(self) -> int:
        """How many rows calibrate."""
        return int(self.scores.counts.sum())

    def sets(self, X: Any) -> np.ndarray:
        """Return which classes are in the set of each row: a boolean array, a column for each class."""
        return self.scores.sets(self.smaller(X)).numpy()

    @abstractmethod
    def smaller(self, X: Any) -> Tensor:
        """Count, for each row and class, the calibration rows whose score is below that of the class."""


@saved("split-calibration")
@dataclass(frozen=True)
class SplitCalibration(ScoreCalibration):
    """By rows that the classifier has not seen."""

    classifier: Any
    classes: np.ndarray  # columns of the sets; the classifier may know fewer
    scores: CalibrationScores

    def smaller(self, X: Any) -> Tensor:
        """Count smaller scores; all are by one classifier."""
        return self.scores.smaller(scores_of(log_probabilities(self.classifier, X, self.classes)))


@saved("cross-calibration")
@dataclass(frozen=True)
class CrossCalibration(ScoreCalibration):
    """By the rows of each fold, with a classifier that was fitted to the others: CV+ of [Barber2021]_."""

    parts: tuple[SplitCalibration, ...]
    scores: CalibrationScores  # of all folds

    def smaller(self, X: Any) -> Tensor:
        """Count smaller scores, each with the new one by the same classifier."""
        return torch.stack([part.smaller(X) for part in self.parts]).sum(0)


@saved("left-out-calibration")
@dataclass(frozen=True)
class LeftOutCalibration(ScoreCalibration):
    """By each row, with the embedding of the others in closed form: the jackknife+ of [Barber2021]_."""

    classifier: Any
    left_out: LeftOutRows
    scores: CalibrationScores

    def smaller(self, X: Any) -> Tensor:
        """Count smaller scores, each with the new one by the model without its row."""
        n_rows = max(1, BLOCK_ENTRIES // self.left_out.change.numel())
        blocks = self.classifier.output_blocks(X, n_rows)
        return torch.cat([smaller_scores(self.left_out, block, self.scores, self.classifier.link_) for block in blocks])


@dataclass(frozen=True)
class MapieCalibration:
    """By a score of MAPIE."""

    model: Any
    n_rows: int

    def sets(self, X: Any) -> np.ndarray:
        """Return which classes are in the set of each row: a boolean array, a column for each class."""
        return self.model.predict_set(X)[1][:, :, 0]


def calibrate_split(
    classifier: Any, X: Any, y: np.ndarray, promise: Promise, *, classes: np.ndarray | None = None
) -> SplitCalibration:
    """Calibrate a classifier by rows that it has not seen; the classes are its own unless given."""
    classes = classifier.classes_ if classes is None else classes
    log_p = log_probabilities(classifier, X, classes)
    scores = CalibrationScores.of(log_p, y, classes, promise)
    return SplitCalibration(classifier, classes, scores)


def calibrate_cross(
    classifier: Any,
    rows: LabelledRows,
    classes: np.ndarray,
    promise: Promise,
    *,
    n_folds: int,
    random_state: Any,
) -> CrossCalibration:
    """Fit a copy of a classifier for each fold of the rows, without that fold, which then calibrates it."""
    parts, n_rows = [], 0
    for others, own in rows.folds(n_folds, random_state):
        fitted = others.fit(classifier)
        parts.append(calibrate_split(fitted, own.X, own.y, promise, classes=classes))
        n_rows += len(own)
    if not parts:
        raise ValueError(
            "method='cross' needs two classes among the rows that are left when any part (or group) is left out."
        )
    return CrossCalibration(tuple(parts), CalibrationScores.joined([part.scores for part in parts], len(rows) - n_rows))


def calibrate_left_out(classifier: Any, promise: Promise) -> LeftOutCalibration:
    """Calibrate an embedding by its own rows, each left out in closed form."""
    rows = classifier.without_each_row()
    scores = scores_of(classifier.link_(rows.outputs, rows.support)).gather(1, rows.strata[:, None])[:, 0]
    own = CalibrationScores(scores, rows.strata, rows.counts, promise.coverage, promise.by_class)
    return LeftOutCalibration(classifier, rows, own)


def calibrate_by_mapie(
    classifier: Any, X: Any, y: np.ndarray, *, coverage: float, conformity: str, random_state: Any
) -> MapieCalibration:
    """Calibrate a classifier by a score of MAPIE, at rows that it has not seen."""
    try:
        from mapie.classification import SplitConformalClassifier
    except ImportError as error:
        raise ImportError(f"conformity={conformity!r} is MAPIE's: pip install mapie, or use 'probability'.") from error
    model = SplitConformalClassifier(
        classifier,
        confidence_level=coverage,
        conformity_score=conformity,
        prefit=True,
        random_state=random_state,
    )
    return MapieCalibration(model.conformalize(X, y), len(y))


def log_probabilities(classifier: Any, X: Any, classes: np.ndarray) -> Tensor:
    """Return logarithms of probabilities, a column for each of the classes; one that a classifier never saw has none.

    Where a classifier has no probabilities, those of the softmax of decision values are as good: the promise holds for
    any score, and only how small the sets are depends on it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from kernelwright.uncertainty.set_calibration import log_probabilities
    >>> rival = DummyClassifier().fit([[0], [0], [0], [0]], ["a", "c", "c", "c"])
    >>> log_probabilities(rival, [[0]], np.array(["a", "b", "c"])).exp()
    tensor([[0.2500, 0.0000, 0.7500]], dtype=torch.float64)
    """
    found = _known_log_probabilities(classifier, X)
    if len(classifier.classes_) == len(classes):
        return found
    log_p = torch.full((len(found), len(classes)), -torch.inf, dtype=torch.float64)
    log_p[:, torch.from_numpy(np.searchsorted(classes, classifier.classes_))] = found
    return log_p


def _known_log_probabilities(classifier: Any, X: Any) -> Tensor:
    if hasattr(classifier, "predict_log_proba"):
        return torch.from_numpy(np.asarray(classifier.predict_log_proba(X), dtype=np.float64))
    if not hasattr(classifier, "predict_proba"):
        values = torch.from_numpy(np.asarray(classifier.decision_function(X), dtype=np.float64))
        values = torch.stack([-values, values], 1) if values.ndim == 1 else values
        if values.shape[1] != len(classifier.classes_):
            raise ValueError("The classifier's decision values must have a column for each class ('ovr').")
        return values.log_softmax(1)
    with np.errstate(divide="ignore"):
        return torch.from_numpy(np.log(np.asarray(classifier.predict_proba(X), dtype=np.float64)))
