"""An embedding of features that can take more rows: an accumulator for estimators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import FittedEmbedding
from kernelwright.embedding.primal import FeatureSums, Moments
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.features.nystroem import Nystroem
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.blocks import Block
from kernelwright.inputs.targets import Targets
from kernelwright.kernels import FeatureKernel
from kernelwright.solvers import Solution
from kernelwright.solvers.explicit import FEATURE_ROWS, refuse_too_many_features, solve_sums
from kernelwright.solvers.solution import LEFT_OUT_ROWS

__all__ = ["PointSums", "RunningEmbedding", "known_beforehand", "sum_points"]


@dataclass(frozen=True)
class PointSums:
    """Sums over rows: the moments of their features, and the range of their points."""

    moments: Moments
    low: Tensor
    high: Tensor

    def __add__(self, other: PointSums) -> PointSums:
        low, high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        return PointSums(self.moments + other.moments, low, high)


def sum_points(block: Block, kernel: FeatureKernel, scaler: Any, targets: Targets) -> PointSums:
    """Compute the sums of a block, some rows at a time."""
    found: PointSums | None = None
    refuse_too_many_features(kernel.features)
    with torch.no_grad():
        for start in range(0, len(block.X), FEATURE_ROWS):
            X, y, weights = (column[start : start + FEATURE_ROWS] for column in block)
            points = kernel.encode(X if scaler is None else scaler.transform(X))
            moments = Moments.of(kernel.features(points), targets.encode(y), torch.from_numpy(weights))
            own = PointSums(moments, points.min(0).values, points.max(0).values)
            found = own if found is None else found + own
    assert found is not None
    return found


def known_beforehand(kernel: FeatureKernel, *, learns: bool, scale: str | None) -> bool:
    """Return whether the features do not depend on the rows: no learned parameters, landmarks or scale."""
    from_rows = isinstance(kernel.features, Nystroem) or getattr(kernel.features, "median", False)
    return not learns and scale is None and not from_rows


@dataclass(frozen=True)
class RunningEmbedding:
    """Features, the sums over all rows so far, and a ridge. Rows can be added, and it is then solved again."""

    kernel: FeatureKernel
    scaler: Any
    targets: Targets
    sums: FeatureSums
    ridge: float
    draws_to_prior: bool  # whether outputs shrink towards the marginal mean of the targets
    weighted: bool = False  # whether any added rows had weights

    @classmethod
    def of(cls, embedding: FittedEmbedding, targets: Targets, draws_to_prior: bool) -> RunningEmbedding:
        """Return a running embedding that continues a fitted embedding of features."""
        assert isinstance(embedding.kernel, FeatureKernel)
        assert embedding.sums is not None
        sums, ridge = embedding.sums, embedding.ridge
        return cls(embedding.kernel, embedding.scaler, targets, sums, ridge, draws_to_prior)

    def add(self, block: Block, *, weighted: bool = False) -> RunningEmbedding:
        """Return the embedding with more rows. The absolute ridge n lambda was learned and does not change."""
        before = self.sums
        new = sum_points(block, self.kernel, self.scaler, self.targets)
        new += PointSums(before.moments, before.low, before.high)
        n_rows = before.n_rows + len(block.labels)
        sums = FeatureSums(new.moments, self._resampled(block), n_rows, new.low, new.high)
        ridge = self.ridge * before.moments.total / new.moments.total
        return replace(self, sums=sums, ridge=ridge, weighted=self.weighted or weighted)

    def _resampled(self, block: Block) -> TrainingSet:
        """Return a random sample of all rows so far, for calibration, with at least one row of each class."""
        sample, n_before, n_new = self.sums.sample, self.sums.n_rows, len(block.labels)
        random, n_chosen = np.random.default_rng(n_before), n_new
        if len(sample) + n_new > LEFT_OUT_ROWS:
            n_chosen = min(n_new, random.binomial(LEFT_OUT_ROWS, n_new / (n_new + n_before)))
        order = random.permutation(n_new)
        lacking, first = np.unique(self.targets.strata(block.labels).numpy()[order], return_index=True)
        first = first[np.isin(lacking, sample.strata.numpy(), invert=True)]
        chosen = np.concatenate([order[first], np.delete(order, first)])[: max(n_chosen, len(first))]
        X, y, weights = (column[chosen] for column in block)
        points = self.kernel.encode(X if self.scaler is None else self.scaler.transform(X))
        strata = self.targets.strata(y)
        added = TrainingSet.of(points, self.targets.encode(y), weights=torch.from_numpy(weights), strata=strata)
        return sample.unmerged().sample(LEFT_OUT_ROWS - len(chosen), generator(n_before)).joined(added)

    def widened(self, places: np.ndarray, targets: Targets, n_outputs: int) -> RunningEmbedding:
        """Return the embedding with more outputs; ``places`` are the new indices of the present ones."""
        where, sample = torch.from_numpy(places), self.sums.sample

        def wide(columns: Tensor) -> Tensor:
            made = columns.new_zeros(len(columns), n_outputs)
            made[:, where] = columns
            return made

        moments = replace(self.sums.moments, cross=wide(self.sums.moments.cross))
        prior = wide(sample.prior[None])[0]
        sample = replace(sample, targets=wide(sample.targets), prior=prior, strata=where[sample.strata])
        return replace(self, targets=targets, sums=replace(self.sums, moments=moments, sample=sample))

    def with_prior(self) -> RunningEmbedding:
        """Return the embedding with the prior that follows from its targets."""
        if not self.draws_to_prior:
            return self
        sample = self.sums.sample
        sample = replace(sample, prior=self.targets.prior(sample.targets, sample.weights))
        return replace(self, sums=replace(self.sums, sample=sample))

    def solution(self) -> Solution:
        """Solve the embedding of all rows so far."""
        return solve_sums(self.with_prior().sums, self.kernel.features, self.ridge)

    def embedding(self, before: FittedEmbedding, solution: Solution) -> FittedEmbedding:
        """Return a fitted embedding with the solution of all rows so far."""
        return replace(
            before,
            coefficients=solution.coefficients,
            prior=solution.left_out.rows.prior,
            ridge=self.ridge,
            support=solution.support,
            sums=solution.sums,
            jitter=solution.jitter,
        )
