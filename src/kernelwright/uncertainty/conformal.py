"""Prediction sets: sets of classes that hold the true class with the stated probability.

A class is in the set of a row unless its score exceeds too many of the calibration scores. The score is
``log (1 - p_y) / p_y``: it has the order of ``1 - p_y``, but confident rows do not become equal by rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import LeftOutRows
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.calibration import Link

__all__ = ["CalibrationScores", "Promise", "scores_of", "smaller_scores"]


def scores_of(log_p: Tensor) -> Tensor:
    """Return the score of every class in each row of log probabilities."""
    best = log_p.argmax(-1, keepdim=True)
    others = log_p.scatter(-1, best, -torch.inf).logsumexp(-1, keepdim=True)  # log (1 - p) without cancellation
    complement = torch.log1p(-log_p.exp().clamp(max=1.0)).scatter(-1, best, others)
    return (complement - log_p).nan_to_num(nan=torch.inf)  # p = 0 for all others: infinitely nonconforming


@dataclass(frozen=True)
class Promise:
    """The coverage of prediction sets: over all rows, or over the rows of each class."""

    coverage: float
    by_class: bool = False


@saved("calibration-scores")
@dataclass(frozen=True)
class CalibrationScores:
    """Scores of the true classes at rows that the classifier has not seen."""

    scores: Tensor
    labels: Tensor
    counts: Tensor  # the number of equal rows merged into each
    coverage: float
    class_conditional: bool

    @classmethod
    def of(cls, log_p: Tensor, y: np.ndarray, classes: np.ndarray, promise: Promise) -> CalibrationScores:
        """Compute the scores of the labels of some rows from the log probabilities of all classes.

        A label outside the classes gets an infinite score; if coverage is promised for each class, it is dropped.
        """
        y = np.asarray(y)
        known = np.isin(y, classes)
        labels = torch.from_numpy(np.searchsorted(classes, y[known]))
        scores = scores_of(log_p)[torch.from_numpy(known)].gather(1, labels[:, None])[:, 0]
        found = cls(scores, labels, torch.ones_like(scores), promise.coverage, promise.by_class)
        return found if promise.by_class else cls.joined([found], int((~known).sum()))

    @classmethod
    def joined(cls, parts: Sequence[CalibrationScores], n_missed: int = 0) -> CalibrationScores:
        """Join the scores of several sets of rows, and of rows that no model can predict correctly."""
        odd = torch.full((n_missed,), torch.inf, dtype=torch.float64)  # no score is larger
        return cls(
            torch.cat([*(part.scores for part in parts), odd]),
            torch.cat([*(part.labels for part in parts), torch.zeros(n_missed, dtype=torch.int64)]),
            torch.cat([*(part.counts for part in parts), torch.ones(n_missed, dtype=torch.float64)]),
            parts[0].coverage,
            parts[0].class_conditional,
        )

    def sets(self, smaller: Tensor) -> Tensor:
        """Return which classes are in the sets of new rows, given the number of smaller calibration scores.

        With n scores, a class is excluded if at least ``coverage (n + 1)`` of them are smaller: the rank of a new score
        among n + 1 exchangeable ones is uniform.
        """
        limit = self.coverage * (self.compared(smaller.shape[1]) + 1.0)
        return smaller < limit - 1e-9  # rounding: 0.56 * 100 is a little above 56

    def compared(self, n_classes: int) -> Tensor:
        """Return the number of scores each class is compared with: those of its own rows, or all."""
        own = torch.bincount(self.labels, self.counts, n_classes)
        return own if self.class_conditional else own.sum().expand(n_classes)

    def smaller(self, new: Tensor) -> Tensor:
        """Count the calibration scores below each new score, for scores by one classifier."""
        if not self.class_conditional:
            return self._below(new, self.scores, self.counts)
        columns = []
        for k in range(new.shape[1]):
            own = self.labels == k
            columns.append(self._below(new[:, k], self.scores[own], self.counts[own]))
        return torch.stack(columns, 1)

    @staticmethod
    def _below(new: Tensor, scores: Tensor, counts: Tensor) -> Tensor:
        order = scores.argsort()
        running = torch.cat([counts.new_zeros(1), counts[order].cumsum(0)])
        return running[torch.searchsorted(scores[order].contiguous(), new.contiguous())]


def smaller_scores(
    left_out: LeftOutRows,
    block: tuple[Tensor, Tensor, Tensor],
    calibration: CalibrationScores,
    link: Link,
    of_line: Tensor | None = None,
) -> Tensor:
    """Count, for each new point and class, the training rows i with a smaller score by the model without i.

    ``block`` has kernel values (or features), raw outputs and support of the points. This is the rule of the
    jackknife+ [Barber2021]_ for scores [Romano2020]_. ``of_line`` are log probabilities of the points by the line
    beside the embedding. It is that of all rows; the training rows' own scores are by lines of fewer rows, so they are
    rather too large, and the sets too.
    """
    values, outputs, support = block
    without = outputs[:, None, :] - left_out.change_at(values)
    n_points, n_rows, n_classes = without.shape
    of_line = None if of_line is None else of_line.repeat_interleave(n_rows, 0)
    log_p = link(without.reshape(-1, n_classes), support.repeat_interleave(n_rows), of_line)
    below = calibration.scores[:, None] < scores_of(log_p).reshape(n_points, n_rows, n_classes)
    if calibration.class_conditional:
        below &= left_out.strata[:, None] == torch.arange(n_classes)
    return (below * left_out.counts[:, None]).sum(1)
