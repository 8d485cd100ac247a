"""A solved embedding, with all that is needed to predict new rows and to leave out its own."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.dual import embed, without_groups
from kernelwright.embedding.primal import FeatureSums, left_out_residuals
from kernelwright.embedding.support import KernelSupport, Support, nearest_other
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.embedding.tree import Trees
from kernelwright.errors import ExtrapolationWarning
from kernelwright.features.fourier import Concatenated, RandomFourier
from kernelwright.inputs.coordinates import TableCoordinates
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels import Kernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.kernels.vector import HasLengthScales
from kernelwright.numerics.linalg import finite
from kernelwright.numerics.products import thin_product
from kernelwright.numerics.sparse_rows import SparseRows
from kernelwright.numerics.threads import threads_for
from kernelwright.storage.saved import saved

__all__ = ["FEATURE_ROWS", "EmbeddedRows", "FittedEmbedding", "LeftOutRows", "kernel_blocks"]

PREDICTED_ENTRIES = 2**20  # kernel values held at once during prediction: more would not stay in the cache
FAR = 0.1  # support below which a row is unlike all training rows
TRUSTED = 3.0  # deviations beyond the training range up to which a trend is trusted
FEATURE_ROWS = 4096  # rows whose features are held at once


@saved("embedded-rows")
@dataclass(frozen=True)
class EmbeddedRows:
    """What is kept of the rows that an embedding was solved on, besides its points."""

    given: np.ndarray  # a mask: which of the rows passed to fit
    place: np.ndarray  # the point of each row
    share: np.ndarray  # the share of each row in the weight of its point
    weights: np.ndarray  # from here on: one entry for each point
    strata: np.ndarray
    counts: np.ndarray | None
    groups: np.ndarray | None

    @classmethod
    def of(cls, given: np.ndarray, place: np.ndarray, weights: np.ndarray, data: TrainingSet) -> EmbeddedRows:
        """Build the record from the weights of the given rows and the training set they were merged into."""
        share = weights / np.bincount(place, weights, len(data))[place]
        counts, groups = (None if each is None else each.numpy() for each in (data.counts, data.groups))
        return cls(given, place, share, data.weights.numpy(), data.strata.numpy(), counts, groups)

    def training_set(self, points: Tensor, targets: Tensor, prior: Tensor | None = None) -> TrainingSet:
        """Return the training set again, with the given targets."""
        weights, strata = torch.from_numpy(self.weights), torch.from_numpy(self.strata)
        counts, groups = (None if each is None else torch.from_numpy(each) for each in (self.counts, self.groups))
        return TrainingSet.of(
            points, targets, weights=weights, prior=prior, strata=strata, counts=counts, groups=groups
        )


@saved("left-out-rows")
@dataclass(frozen=True)
class LeftOutRows:
    """All that leave-one-out needs: the change that each training row makes to the outputs at any point.

    Without row i, the outputs at a point with kernel values (or features) r are ``f - (r basis)_i change_i``, in closed
    form: no model is refitted. Without a group, the changes of its rows are summed.
    """

    basis: Tensor  # A^-1, or S^-1 Z^T
    change: Tensor  # a row for each training row, a column for each output
    outputs: Tensor  # leave-one-out outputs at each training row
    support: Tensor  # leave-one-out support of each row, relative
    strata: Tensor
    counts: Tensor
    groups: Tensor | None = None  # the group of each row, if whole groups are left out

    def change_at(self, values: Tensor) -> Tensor:
        """Return the change by each training row at new points with these kernel values: points x rows x outputs."""
        lost = (values @ self.basis)[:, :, None] * self.change
        if self.groups is None:
            return lost
        names, group = self.groups.unique(return_inverse=True)
        of_group = lost.new_zeros(len(lost), len(names), lost.shape[2]).index_add_(1, group, lost)
        return of_group[:, group]


@saved("fitted-embedding")
@dataclass(frozen=True)
class FittedEmbedding:
    """An embedding in terms of kernel values with its points, or of features.

    Parameters
    ----------
    scaler : transformer or None
        Transform applied to inputs before the kernel.
    kernel : Kernel
        The kernel with its learned parameters.
    features : FeatureMap or None
        The feature map, if the embedding uses features.
    points, coefficients : Tensor
        Training points (or landmarks; none with features) and V of Eq. (5), or W of features.
    prior : Tensor
        Value that outputs approach far from all data.
    ridge : float
    support : Support
    rows : EmbeddedRows
    sums : FeatureSums or None
        Sums over all rows, if the rows were summed up.
    solver : str
        The word of the solver.
    precision : {"single", "double"}
        Precision of the kernel values that were used to solve it.
    predicts_in_single : bool
    jitter : float
        Number added to the diagonal of the system so that it could be factorised.
    trees : Trees or None
        Where the coefficients belong, if the points are in the leaves of trees.
    """

    scaler: Any
    kernel: Kernel
    features: FeatureMap | None
    points: Tensor
    coefficients: Tensor
    prior: Tensor
    ridge: float
    support: Support
    rows: EmbeddedRows
    sums: FeatureSums | None
    solver: str
    precision: str = "double"
    predicts_in_single: bool = False
    jitter: float = 0.0
    trees: Trees | None = None

    @property
    def size(self) -> int:
        """The number of points or features that the coefficients belong to."""
        return len(self.coefficients) if self.trees is None else len(self.points)

    @property
    def sparse(self) -> bool:
        """Whether the points are rows of a sparse matrix."""
        return isinstance(self.points, SparseRows)

    @property
    def n_support_rows(self) -> int:
        """The number of training rows that set the unit of support, a quantile that is exact only for many rows."""
        return self.support.n_rows

    def encode(self, X: Any) -> Tensor:
        """Return rows as the kernel sees them, scaled and encoded."""
        return self.kernel.encode(X if self.scaler is None else self.scaler.transform(X))

    def outputs(self, X: Any, points: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return raw outputs and support of checked rows, or of encoded points."""
        if self.trees is not None:
            return self._outputs_of_trees(X, points)
        outputs, supports = [torch.empty(0, len(self.prior), dtype=torch.float64)], [torch.empty(0).double()]
        for _, some_outputs, some_support in self.blocks(X, points):
            outputs.append(some_outputs)
            supports.append(some_support)
        support = torch.cat(supports)
        if X is not None and self.kernel.local is not self.kernel:
            warn_of_extrapolation(support)
        return torch.cat(outputs), support

    def _outputs_of_trees(self, X: Any, points: Tensor | None) -> tuple[Tensor, Tensor]:
        assert self.trees is not None
        assert isinstance(self.support, KernelSupport)
        points = self.encode(X) if points is None else points
        outputs, nearest = self.trees.outputs(self.kernel, self.points, self.coefficients, points)
        return self.prior + outputs, self.support.relative(nearest) * self._reach(X, points)

    def blocks(
        self, X: Any, points: Tensor | None = None, n_rows: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield kernel values with the training points (or features), raw outputs and support, in blocks of rows."""
        if self.trees is not None:
            raise ValueError("A tree has kernel values within its leaves only: use outputs(X).")
        points = self.encode(X) if points is None else points
        reach, start = self._reach(X, points), 0
        with torch.no_grad():
            for values, support in self._values_and_support(points, n_rows):
                outputs = self.prior + thin_product(values, self.coefficients.to(values.dtype))
                yield values, finite(outputs, start), support * reach[start : start + len(values)]
                start += len(values)

    def _values_and_support(self, points: Tensor, n_rows: int | None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield kernel values or features, and the support of the part of the kernel that falls with distance."""
        if self.features is not None:
            for block in points.split(n_rows or FEATURE_ROWS):
                Z = self.features(block).double()
                yield Z, self.support(Z)
            return
        for K, completed in local_blocks(
            self.kernel, self.points, points, n_rows=n_rows, single=self.predicts_in_single
        ):
            support = self.support(K)
            yield completed(), support

    def _reach(self, X: Any, points: Tensor) -> Tensor:
        """Return the share of support that is left outside the training range, which the kernel does not see.

        Squashed inputs never leave their range, and random Fourier features are periodic. So support is reduced here
        as a kernel of the same length scales would reduce it over that distance.
        """
        everywhere = torch.ones(len(points), dtype=torch.float64)
        if X is None:  # points of rows that were drawn like the training rows
            return everywhere
        if isinstance(self.scaler, TableViews | TableCoordinates):
            beyond = torch.from_numpy(self.scaler.beyond(X))
        elif isinstance(self.features, RandomFourier | Concatenated) and self.sums is not None:
            beyond = (self.sums.low - points).clamp(min=0.0) + (points - self.sums.high).clamp(min=0.0)
        else:
            return everywhere
        parts = [part for part in self.kernel.modules() if isinstance(part, HasLengthScales)]
        with torch.no_grad():
            left = torch.stack([(-(beyond / part.feature_scale()).sum(1)).exp() for part in parts]).max(0).values
        if self.kernel.local is self.kernel:
            return left
        # Beside a trend, length scales may be so long that nothing is far: it is trusted a few deviations further.
        return torch.minimum(left, (TRUSTED - beyond.amax(1)).clamp(max=0.0).exp())

    def row_weights(self, X: Any) -> np.ndarray:
        """Return ``A^-1 k(x)`` of Eq. (2) for the rows passed to fit; the system is solved again."""
        rows, new = self.rows, self.encode(X)
        with torch.no_grad():
            data = rows.training_set(self.points, self.coefficients)  # targets do not enter the weights
            embedding = embed(self.kernel.matrix(data.points), data, self.ridge)
            blocks = kernel_blocks(self.kernel, self.points, new, single=self.predicts_in_single)
            distinct = torch.cat([embedding.weights(K.double()) for K in blocks]).numpy()
        result = np.zeros((len(distinct), len(rows.given)))
        result[:, rows.given] = distinct[:, rows.place] * rows.share
        return result

    def without_each_row(self, targets: Tensor) -> LeftOutRows:
        """Return the change that each training row makes at all other points, for an exact or explicit embedding.

        ``targets`` are the targets of the points; an embedding of features has its own.
        """
        if self.solver not in ("exact", "explicit"):
            raise ValueError(f"Leave-one-out models exist for solver='exact' or features. Got {self.solver!r}.")
        with torch.no_grad(), threads_for(len(self.points)):
            return self._without_points(targets) if self.features is None else self._without_features()

    def _without_points(self, targets: Tensor) -> LeftOutRows:
        V, data = self.coefficients, self.rows.training_set(self.points, targets, self.prior)
        K, noise = self.kernel.local.matrix(data.points), data.noise(self.ridge)
        assert isinstance(self.support, KernelSupport)
        support = self.support.relative(nearest_other(K, data))
        self.kernel.completed_(K, data.points)
        inverse = embed(K, data, self.ridge).factor.into_inverse_()
        counts = torch.from_numpy(np.bincount(self.rows.place, minlength=len(data))).double()
        # Outputs at the points are targets minus noise times coefficients, also for the embedding without a row.
        if data.groups is None:
            # One of c equal rows is left out: its diagonal entry of A grows by noise / (c - 1), to infinity for c = 1.
            change = V / (inverse.diagonal() + (counts - 1.0) / noise)[:, None]
            outputs = self.prior + K @ V - (1.0 - noise * inverse.diagonal())[:, None] * change
        else:
            change = without_groups(lambda rows: inverse[rows[:, :, None], rows[:, None, :]], V, data.groups)
            outputs = self.prior + K @ V + noise[:, None] * V - change
        return LeftOutRows(inverse, change, outputs, support, data.strata, counts, data.groups)

    def _without_features(self) -> LeftOutRows:
        assert self.features is not None
        assert self.sums is not None
        sample, W = self.sums.sample, self.coefficients
        Z = self.features(sample.points).double()
        basis = self.sums.moments.factor(self.ridge).solve(Z.T.contiguous())
        residual = left_out_residuals(Z, basis.T, sample.targets - sample.prior - Z @ W, sample)
        counts = torch.ones_like(sample.weights) if sample.counts is None else sample.counts
        change = (sample.weights / counts)[:, None] * residual
        outputs = sample.targets - residual + (self.prior - sample.prior)
        return LeftOutRows(basis, change, outputs, self.support(Z), sample.strata, counts, sample.groups)


def warn_of_extrapolation(support: Tensor) -> None:
    """Warn about rows where a linear trend goes on but no training row is near."""
    n_far = int((support < FAR).sum())
    if n_far:
        warnings.warn(
            f"{n_far} of {len(support)} rows are far from all training rows (support below {FAR}). The model has a "
            "linear trend: raw outputs and predicted numbers follow it there, and probabilities return to the class "
            "frequencies. To do without a trend, use learn=learning.Auto(trend=False).",
            ExtrapolationWarning,
            stacklevel=4,
        )


def kernel_blocks(
    kernel: Kernel, training: Tensor, points: Tensor, *, n_rows: int | None = None, single: bool = False
) -> Iterator[Tensor]:
    """Yield kernel values of new points with training points, in blocks of rows."""
    for _, completed in local_blocks(kernel, training, points, n_rows=n_rows, single=single):
        yield completed()


def local_blocks(
    kernel: Kernel, training: Tensor, points: Tensor, *, n_rows: int | None = None, single: bool = False
) -> Iterator[tuple[Tensor, Callable[[], Tensor]]]:
    """Yield values of the local part of a kernel, and a function that completes them in the same memory."""
    if single and kernel.takes_vectors:
        kernel, training, points = copy.deepcopy(kernel).float(), training.float(), points.float()
    elif torch.is_tensor(training):
        training = training.to(points.dtype)  # stored points may be in single precision
    rows = n_rows or max(1, PREDICTED_ENTRIES // max(len(training), 1))
    values = kernel.local.against(training)
    for number, block in enumerate(points.split(rows)):
        with torch.no_grad():
            K = values(block)

        def completed(K: Tensor = K, block: Tensor = block, first: int = number * rows) -> Tensor:
            whole = kernel.completed_(K, block, training)
            return whole if kernel.bounded else finite(whole, first)

        yield K, completed
