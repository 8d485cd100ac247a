"""Calibration of prediction sets: split, cross-validation, leave-one-out, MAPIE.

Each is a record with one method, ``sets(X)``. Calibrations by scores also have ``smaller(X)``: it counts the
calibration rows with a smaller score than a class at a new row. Only public methods of classifiers are used.
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

LEFT_OUT_OUTPUTS = 2**22  # leave-one-out outputs held at once


class SetCalibration(Protocol):
    """A calibration that makes the prediction sets of new rows."""

    @property
    def n_rows(self) -> int:
        """The number of calibration rows."""

    def sets(self, X: Any) -> np.ndarray:
        """Return which classes are in the set of each row: a boolean array with a column for each class."""


class ScoreCalibration(ABC):
    """A calibration by the scores of calibration rows."""

    scores: CalibrationScores

    @property
    def n_rows(self) -> int:
        """The number of calibration rows."""
        return int(self.scores.counts.sum())

    def sets(self, X: Any) -> np.ndarray:
        """Return which classes are in the set of each row: a boolean array with a column for each class."""
        return self.scores.sets(self.smaller(X)).numpy()

    @abstractmethod
    def smaller(self, X: Any) -> Tensor:
        """Count, for each row and class, the calibration rows with a smaller score."""


@saved("split-calibration")
@dataclass(frozen=True)
class SplitCalibration(ScoreCalibration):
    """Calibration by rows that the classifier has not seen."""

    classifier: Any
    classes: np.ndarray  # columns of the sets; the classifier may know fewer
    scores: CalibrationScores

    def smaller(self, X: Any) -> Tensor:
        """Count smaller scores; all come from one classifier."""
        return self.scores.smaller(scores_of(log_probabilities(self.classifier, X, self.classes)))


@saved("cross-calibration")
@dataclass(frozen=True)
class CrossCalibration(ScoreCalibration):
    """Calibration by each fold, with a classifier fitted to the other folds: CV+ of [Barber2021]_."""

    parts: tuple[SplitCalibration, ...]
    scores: CalibrationScores  # of all folds

    def smaller(self, X: Any) -> Tensor:
        """Count smaller scores, comparing each with the new score by the same classifier."""
        return torch.stack([part.smaller(X) for part in self.parts]).sum(0)


@saved("left-out-calibration")
@dataclass(frozen=True)
class LeftOutCalibration(ScoreCalibration):
    """Calibration by each row, with the leave-one-out embedding in closed form: the jackknife+ of [Barber2021]_."""

    classifier: Any
    left_out: LeftOutRows
    scores: CalibrationScores

    def smaller(self, X: Any) -> Tensor:
        """Count smaller scores, comparing each with the new score by the model without its row."""
        n_rows = max(1, LEFT_OUT_OUTPUTS // self.left_out.change.numel())
        found, start, of_line = [], 0, self.classifier.line_log_p(X)
        for block in self.classifier.output_blocks(X, n_rows):
            own = None if of_line is None else of_line[start : start + len(block[0])]
            found.append(smaller_scores(self.left_out, block, self.scores, self.classifier.link_, own))
            start += len(block[0])
        return torch.cat(found)


@dataclass(frozen=True)
class MapieCalibration:
    """Calibration by a conformity score of MAPIE."""

    model: Any
    n_rows: int

    def sets(self, X: Any) -> np.ndarray:
        """Return which classes are in the set of each row: a boolean array with a column for each class."""
        return self.model.predict_set(X)[1][:, :, 0]


def calibrate_split(
    classifier: Any, X: Any, y: np.ndarray, promise: Promise, *, classes: np.ndarray | None = None
) -> SplitCalibration:
    """Calibrate a classifier with rows that it has not seen; the classes are its own unless given."""
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
    """Fit a copy of a classifier for each fold without that fold, and calibrate it with the fold."""
    parts, n_rows = [], 0
    for others, own in rows.folds(n_folds, random_state):
        fitted = others.fit(classifier)
        parts.append(calibrate_split(fitted, own.X, own.y, promise, classes=classes))
        n_rows += len(own)
    if not parts:
        raise ValueError(
            "method='cross' needs at least two classes in the other rows when a fold (or group) is left out."
        )
    return CrossCalibration(tuple(parts), CalibrationScores.joined([part.scores for part in parts], len(rows) - n_rows))


def calibrate_left_out(classifier: Any, promise: Promise) -> LeftOutCalibration:
    """Calibrate an embedding with its own rows, each left out in closed form."""
    rows = classifier.without_each_row()
    link = classifier.link_
    log_p = link(rows.outputs, rows.support, None if link.line is None else link.line.left_out)
    scores = scores_of(log_p).gather(1, rows.strata[:, None])[:, 0]
    own = CalibrationScores(scores, rows.strata, rows.counts, promise.coverage, promise.by_class)
    return LeftOutCalibration(classifier, rows, own)


def calibrate_by_mapie(
    classifier: Any, X: Any, y: np.ndarray, *, coverage: float, conformity: str, random_state: Any
) -> MapieCalibration:
    """Calibrate a classifier with a score of MAPIE, at rows that it has not seen."""
    try:
        from mapie.classification import SplitConformalClassifier
    except ImportError as error:
        raise ImportError(
            f"conformity={conformity!r} needs MAPIE: pip install 'kernelwright[conformal]', or use 'probability'."
        ) from error
    model = SplitConformalClassifier(
        classifier,
        confidence_level=coverage,
        conformity_score=conformity,
        prefit=True,
        random_state=random_state,
    )
    return MapieCalibration(model.conformalize(X, y), len(y))


def log_probabilities(classifier: Any, X: Any, classes: np.ndarray) -> Tensor:
    """Return log probabilities with a column for each class; classes that the classifier never saw have zero.

    If a classifier has no probabilities, the softmax of its decision values is used: coverage holds for any score; only
    the size of the sets depends on it.

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
