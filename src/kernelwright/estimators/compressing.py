"""Fitted models with fewer points that give the same answers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.distributions.fitted import DistributionLink, LeftOutTarget, log_residuals
from kernelwright.embedding.compression import Compressed, Compression, Fold, compressed, fold_without, mean_loss
from kernelwright.embedding.fitted import EmbeddedRows, FittedEmbedding, LeftOutRows
from kernelwright.embedding.support import KernelSupport
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.regression import NOISES
from kernelwright.estimators.spread import predictions_of
from kernelwright.estimators.thinning import Judge, rank_error_within, thinned
from kernelwright.numerics.linalg import factorise
from kernelwright.numerics.threads import threads_for
from kernelwright.uncertainty.calibration import Link

__all__ = ["ClassesCompressed", "NumbersCompressed", "refuse_if_compressed"]

COMPRESSED = "compressed"  # the word of the solver of such an embedding
FOLDS = 5
ROUNDED = 1e-5  # largest change of an output by coefficients in single precision
KEPT_LEFT_OUT = 200  # left-out rows of a regressor that are kept


class _CanBeCompressed:
    """An estimator whose exact embedding can be replaced by one of fewer points."""

    embedding_: FittedEmbedding
    loss_measure: str
    compression_: Compression
    usual_tolerance: ClassVar[float] = 0.003

    def compress(self, tolerance: float | None = None) -> Self:
        """Return a copy of the fitted model with fewer points that gives the same answers: a small file, quick answers.

        Points are chosen one by one where they matter most, and their coefficients solved again by least squares on the
        outputs at all training rows. Their number is the least (of a grid) whose loss at rows left out of everything,
        in five folds, is within the tolerance; if none is, all points are kept. The record ``compression_`` of the copy
        says how many points there were and are, and both losses. The map to probabilities (or distributions) stays.

        The copy keeps no training rows: leave-one-out models, weights of training rows and bounds from training rows
        are refused; ``risk_bound("holdout", X, y)`` works. Nothing that the copy predicts is a new fit.

        Parameters
        ----------
        tolerance : float, optional
            Largest rise of the log loss, by default .003; for a regressor of the CRPS, relative to it, by default .01.

        Returns
        -------
        self : object
            A new estimator of the same class. This one is not changed.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from kernelwright import EmbeddingClassifier
        >>> X, y = load_digits(n_class=4, return_X_y=True)
        >>> model = EmbeddingClassifier(random_state=0).fit(X[::2], y[::2])
        >>> small = model.compress()
        >>> small.compression_.n_before, small.compression_.n_points < 200
        (360, True)
        >>> bool(small.score(X[1::2], y[1::2]) > 0.98)
        True
        """
        check_is_fitted(self)
        allowed = self.usual_tolerance if tolerance is None else tolerance
        if not allowed >= 0:
            raise ValueError(f"The 'tolerance' parameter of compress must not be negative. Got {tolerance!r}.")
        embedding = _rounded(_check_compressible(self.embedding_))
        rows = embedding.rows.training_set(embedding.points, _no_targets(embedding), embedding.prior)
        left_out = self.embedding_.without_each_row(rows.targets)
        with torch.no_grad(), threads_for(len(rows)):
            K = embedding.kernel.matrix(embedding.points)
            outputs = K @ embedding.coefficients
            folds = self._folds(K, rows, left_out.basis)
            judge, relative = self._judge(rows, left_out)
            limit = allowed * mean_loss(folds, judge) if relative else allowed
            found = compressed(K, outputs, folds, judge, limit)
            if len(found.chosen) == len(K):
                found = replace(found, coefficients=embedding.coefficients)
            spare = found.loss_before + limit - found.loss
            rank_error, added = rank_error_within(embedding, K, found, folds, judge, spare)
        small = copy.copy(self)
        small.embedding_ = _smaller(embedding, rows, K, found, rank_error)
        small.compression_ = Compression(
            len(K), len(found.chosen), found.loss_before, found.loss + added, allowed, self.loss_measure
        )
        small._forget_rows()
        return small

    def _folds(self, K: Tensor, rows: TrainingSet, inverse: Tensor) -> list[Fold]:
        """Return the embedding without each part of its points."""
        return [fold_without(K, inverse, self.embedding_.coefficients, part) for part in _parts(rows)]

    def _judge(self, rows: TrainingSet, left_out: LeftOutRows) -> tuple[Judge, bool]:
        """Return the mean loss of outputs at left-out rows, and whether the tolerance is relative to it."""
        raise NotImplementedError

    def _forget_rows(self) -> None:
        """Drop what a compressed model does not need."""
        raise NotImplementedError


class ClassesCompressed(_CanBeCompressed):
    """The same for a classifier."""

    def _judge(self, rows: TrainingSet, left_out: LeftOutRows) -> tuple[Judge, bool]:
        link: Link = vars(self)["link_"]
        lines = link.of_line(rows.points)

        def judge(fold: Fold, outputs: Tensor) -> float:
            part = fold.left_out
            log_p = link(outputs + rows.prior, left_out.support[part], None if lines is None else lines[part])
            w, own = rows.weights[part], log_p[torch.arange(len(part)), rows.strata[part]]
            return -float(w @ own / w.sum())

        return judge, False

    def _forget_rows(self) -> None:
        link: Link = vars(self)["link_"]
        line = None if link.line is None else replace(link.line, left_out=link.line.left_out[:0])
        vars(self).update(link_=replace(link, line=line), history_=vars(self)["history_"][-1:])
        vars(self).update(_risk=replace(vars(self)["_risk"], left_out={}))


class NumbersCompressed(_CanBeCompressed):
    """The same for a regressor."""

    links_: tuple[DistributionLink, ...]
    left_out_: tuple[LeftOutTarget, ...]
    usual_tolerance = 0.01

    def _judge(self, rows: TrainingSet, left_out: LeftOutRows) -> tuple[Judge, bool]:
        def judge(fold: Fold, outputs: Tensor) -> float:
            part = fold.left_out.numpy()
            found = predictions_of(self.links_, (outputs + rows.prior).numpy(), left_out.support.numpy()[part])
            losses = [
                np.average(each.crps(target.y[part]), weights=target.weights[part]) / (target.y.std() or 1.0)
                for each, target in zip(found, self.left_out_, strict=True)
            ]
            return float(np.mean(losses))

        return judge, True

    def _folds(self, K: Tensor, rows: TrainingSet, inverse: Tensor) -> list[Fold]:
        """Return all columns without each part of the points; locations, scales and estimates have their own ridges."""
        V, k = self.embedding_.coefficients, len(self.links_)
        parts = _parts(rows)
        folds = [fold_without(K, inverse, V[:, :k], part) for part in parts]
        start = k
        for targets in self._more_targets():
            columns = V[:, start : (start := start + targets.shape[1])]
            prior = self.embedding_.prior[start - targets.shape[1] : start]
            noise = min(NOISES, key=lambda noise: _misfit(K, rows, columns, targets - prior, noise))
            own = factorise(K, noise / rows.weights).into_inverse_()
            folds = [_joined(fold, fold_without(K, own, columns, fold.left_out)) for fold in folds]
        return folds

    def _more_targets(self) -> Iterator[Tensor]:
        """Yield the targets of the columns after the locations: logarithms of left-out residuals, and indicators."""
        scales = [link.scale for link in self.links_]
        yield torch.from_numpy(
            np.column_stack(
                [
                    log_residuals(scale.encode(rows.y) - rows.location, rows.weights)
                    for scale, rows in zip(scales, self.left_out_, strict=True)
                ]
            )
        )
        for scale, rows in zip(scales, self.left_out_, strict=True):
            if rows.direct is not None:
                yield torch.from_numpy(scale.thresholds.encode(rows.y))

    def _forget_rows(self) -> None:
        self.left_out_ = tuple(each.some(KEPT_LEFT_OUT) for each in self.left_out_)
        vars(self).update(history_=vars(self)["history_"][-1:])


def refuse_if_compressed(model: Any, method: str) -> None:
    """Raise an error if a bound needs training rows, of which a compressed model keeps none."""
    if "compression_" in vars(model) and method != "holdout":
        raise ValueError(
            f"A compressed model keeps no training rows for method={method!r}. Ask the model before it was compressed, "
            "or pass rows that it has not seen: risk_bound('holdout', X, y)."
        )


def _check_compressible(embedding: FittedEmbedding) -> FittedEmbedding:
    if embedding.solver != "exact" or embedding.sparse or not embedding.kernel.takes_vectors:
        raise ValueError(
            "compress needs an exact embedding of rows of numbers: its loss is judged on rows left out in closed form. "
            f"Got solver_={embedding.solver!r}, kernel_={embedding.kernel!r}. Use solver=Exact() if the rows allow it."
        )
    return embedding


def _rounded(embedding: FittedEmbedding) -> FittedEmbedding:
    """Return the embedding with points that single precision can store."""
    return replace(embedding, points=embedding.points.float().double())


def _no_targets(embedding: FittedEmbedding) -> Tensor:
    return torch.zeros_like(embedding.coefficients)  # targets do not enter the closed forms


def _parts(rows: TrainingSet) -> list[Tensor]:
    numbers = torch.from_numpy(rows.folds(FOLDS))
    parts = [(numbers == number).nonzero()[:, 0] for number in range(FOLDS)]
    return [part for part in parts if 0 < len(part) < len(rows)]


def _misfit(K: Tensor, rows: TrainingSet, V: Tensor, centred: Tensor, noise: float) -> float:
    """Return how far ``(K + noise) V`` is from the targets: zero for the noise that V was solved with."""
    return float((K @ V + (noise / rows.weights)[:, None] * V - centred).square().sum())


def _joined(fold: Fold, more: Fold) -> Fold:
    """Return a fold with more columns."""
    outputs = {name: torch.cat([getattr(fold, name), getattr(more, name)], 1) for name in ("at_rest", "at_left_out")}
    return replace(fold, **outputs)


def _smaller(
    embedding: FittedEmbedding, rows: TrainingSet, K: Tensor, found: Compressed, rank_error: float
) -> FittedEmbedding:
    """Return the embedding of the chosen points, with the support that they give to the others."""
    points = embedding.points[found.chosen]
    with torch.no_grad():
        near = embedding.kernel.local.forward(embedding.points, points)
    near[found.chosen, torch.arange(len(points))] = 0.0  # a point is no neighbour of itself
    nothing = np.empty(0)
    return replace(
        embedding,
        scaler=thinned(embedding.scaler, embedding.kernel, rank_error),
        points=points.float(),
        coefficients=_in_single(found.coefficients, K[:, found.chosen]),
        support=KernelSupport.of(near.amax(1), rows.weights),
        rows=EmbeddedRows(embedding.rows.given, nothing, nothing, nothing, nothing, None, None),
        solver=COMPRESSED,
    )


def _in_single(coefficients: Tensor, K: Tensor) -> Tensor:
    """Return coefficients in single precision, if outputs hardly change."""
    rounded = coefficients.float()
    return rounded if float((K @ (rounded.double() - coefficients)).abs().max()) < ROUNDED else coefficients
