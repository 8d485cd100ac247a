"""Rows that come batch by batch, for a regressor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch

from kernelwright.distributions.fitted import DistributionLink, LeftOutTarget
from kernelwright.distributions.number_targets import NumberTargets
from kernelwright.distributions.options import Distribution, LocationScale, distribution_of
from kernelwright.distributions.target import TargetScale
from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.estimators.batches import WhereRowsStay, WithFeatures
from kernelwright.estimators.first_rows import FirstRows
from kernelwright.estimators.growing import (
    GrowingRows,
    Growth,
    NewRows,
    prior_is_fixed,
    refuse_growth,
    refuse_streams,
    tree_of,
)
from kernelwright.estimators.number_batches import add_numbers, checked_numbers, described_again, first_numbers
from kernelwright.estimators.spread import spread_of, with_columns
from kernelwright.estimators.streaming import RunningEmbedding
from kernelwright.inputs.numbers import NumberInfo
from kernelwright.learning import LearningMethod, learning_method
from kernelwright.numerics.threads import threads_for
from kernelwright.solvers.explicit import Explicit

__all__ = ["NumberStreams"]


class NumberStreams:
    """A regressor to which rows can be added."""

    distribution: Distribution | str
    embedding_: FittedEmbedding
    features: Any
    learn: LearningMethod | str | None
    left_out_: tuple[LeftOutTarget, ...]
    links_: tuple[DistributionLink, ...]
    targets_: NumberTargets
    _growing_rows: GrowingRows | None
    _growth: Growth | None
    _info: NumberInfo
    _takes_gaps: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit all rows at once."""
        raise NotImplementedError

    @WhereRowsStay
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to the model, without learning its kernel and ridge again.

        The first call learns the hyperparameters, the scale of the inputs and the map of the target. It may also follow
        ``fit``. Later calls add their rows and fit the distribution again.

        An embedding of explicit features needs only sums over its rows, and a random sample of up to 5000 of them; its
        first rows should be a random sample of a few thousand. An embedding by a kernel keeps its rows in the leaves of
        trees, and only leaves with new rows are solved again. All are solved once by the first call after ``fit`` or
        loading, by a target beyond the range of those before, and when the rows have doubled. If the model begins with
        this method, the kernel is learned again whenever the rows have doubled, up to 2000 of them. How old rows are
        forgotten is a setting of :class:`kernelwright.solvers.Tree`.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright import EmbeddingRegressor
        >>> X = np.random.default_rng(0).uniform(-2, 2, (700, 2))
        >>> y = np.sin(3 * X[:, 0]) * X[:, 1]
        >>> model = EmbeddingRegressor(random_state=0).fit(X[:150], y[:150])
        >>> before = model.score(X[600:], y[600:])
        >>> bool(model.partial_fit(X[150:600], y[150:600]).score(X[600:], y[600:]) > before)
        True
        """
        if self.features is None:
            return self._grown(X, y, sample_weight)
        if "embedding_" not in vars(self):
            return self.fit(X, y, sample_weight)
        return self._continued(add_numbers(self, self._running(), X, y, sample_weight))

    @WithFeatures
    def fit_batches(self, batches: Iterable[tuple[Any, Any]]) -> Self:
        """Fit explicit features to an iterator of (X, y) batches, which need not fit in memory together.

        Batches are collected until there are 5000 rows; the hyperparameters are learned from these.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelwright import EmbeddingRegressor, features
        >>> parts = np.random.default_rng(0).normal(size=(8, 1000, 2))
        >>> batches = ((X, X[:, 0] * X[:, 1]) for X in parts)
        >>> model = EmbeddingRegressor(features=features.RandomFourier(100), random_state=0).fit_batches(batches)
        >>> bool(model.score(parts[0], parts[0].prod(1)) > 0.9)
        True
        """
        rest = iter(batches)
        X, y = first_numbers(rest)
        self.__dict__.pop("embedding_", None)
        running = self.fit(X, y)._running()
        for X, y in rest:
            running = add_numbers(self, running, X, y)
        return self._continued(running)

    def _running(self) -> RunningEmbedding:
        drawn = learning_method(self.learn, type(self).__name__).kernel_share is None  # else the mean of other rows
        return RunningEmbedding.of(self.embedding_, self.targets_, drawn)

    def _continued(self, running: RunningEmbedding) -> Self:
        """Solve the embedding with updated sums, and fit the distribution to a sample of all rows."""
        how = distribution_of(self.distribution, type(self).__name__)
        solution, before = running.solution(), self.embedding_
        targets = described_again(self.targets_, solution.fitted_rows, how)
        more = partial(Explicit().more, running.kernel, solution)
        spread = spread_of(running.kernel, solution, more, targets, how)
        self.embedding_ = with_columns(running.embedding(before, solution), spread)
        self.links_, self.left_out_, self.targets_ = spread.links, spread.left_out, targets
        self._info = replace(self._info, weighted=self._info.weighted or running.weighted)
        vars(self).update(_holdout=None, _apart=None)
        return self

    # Kernels: leaves of trees ---------------------------------------------------------------------------

    def _grown(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Add rows to an embedding by a kernel, or begin one."""
        first: FirstRows | None = vars(self).get("_first")
        if "embedding_" not in vars(self):
            refuse_streams(self, X)
            return self._begun(FirstRows.of(X, y, sample_weight, tree_of(self)))
        refuse_growth(self)
        block = checked_numbers(self, self.targets_, X, y, sample_weight, gaps=self._takes_gaps)
        if first is not None:
            first = first.joined(X, y, sample_weight, tree_of(self))
            if first.teaches:
                return self._begun(first)
        growth = self._growth_now()
        if block is not None and len(block.labels):
            numbers, points = self.targets_.encode(block.labels), self.embedding_.encode(block.X)
            new = NewRows(points, numbers, torch.from_numpy(block.weights), self.targets_.strata(block.labels))
            due = growth.doubled(len(numbers)) or _beyond(self.targets_.scales, block.labels)
            self._solved(growth.advanced(new, due=due))
            self._info = replace(self._info, weighted=self._info.weighted or sample_weight is not None)
        self._first = first
        return self

    def _begun(self, first: FirstRows) -> Self:
        self.fit(first.X, first.y, first.weights)
        self._first = first.learned()
        return self

    def _growth_now(self) -> Growth:
        known, rows = vars(self).get("_growth"), vars(self).get("_growing_rows")
        if known is not None:
            return known.under(tree_of(self))
        targets = None if rows is None else rows.targets
        if targets is None:
            targets = self.targets_.encode(np.column_stack([each.y for each in self.left_out_]))
        return Growth.resumed(self, targets)

    def _solved(self, growth: Growth) -> None:
        """Solve leaves that have changed, and fit the distribution to all rows, left out in turn."""
        how, rows, before = distribution_of(self.distribution, type(self).__name__), growth.data, self.embedding_
        prior = self.targets_.prior(rows.targets, rows.weights)
        if prior_is_fixed(self):
            prior = before.prior[: len(prior)]
        with torch.no_grad(), threads_for(growth.settings.leaf):
            solution = growth.solution(prior)
        targets, noises = self.targets_, growth.rows.spread_noises
        if growth.due:
            noises, targets = (), described_again(targets, solution.fitted_rows, how)
        if len(noises) == 1:  # the direct estimate had no weight when ridges were last chosen
            how = LocationScale()
        more = partial(growth.solver.more, before.kernel, solution)
        spread = spread_of(before.kernel, solution, more, targets, how, noises=noises)
        self.embedding_ = with_columns(growth.embedding(before, solution), spread)
        self.links_, self.left_out_, self.targets_ = spread.links, spread.left_out, targets
        vars(self).update(_holdout=None, _apart=None)
        self._growth = growth.settled(spread.noises if len(noises) != 1 else noises)
        self._growing_rows = self._growth.rows


def _beyond(scales: tuple[TargetScale, ...], y: np.ndarray) -> bool:
    """Return whether a target is beyond the range of those before, or a new one of few values."""
    return any(_is_new(scale, column) for scale, column in zip(scales, y.T, strict=True))


def _is_new(scale: TargetScale, y: np.ndarray) -> bool:
    if scale.values is not None:
        return not np.isin(y, scale.values).all()
    return bool(y.min() < scale.thresholds.start or y.max() > scale.thresholds.values[-1])
