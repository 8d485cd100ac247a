"""What a fitted embedding says of new rows, and what it would say without one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.embedding.dual import embed, without_groups
from kernelwright.embedding.entropy import clip_entropy, embedding_entropy
from kernelwright.embedding.primal import left_out_residuals
from kernelwright.embedding.support import KernelSupport, Support, nearest_other
from kernelwright.estimators.base import KernelEstimator, ProbabilityClassifier, by_chunks
from kernelwright.estimators.batches import EmbeddedRows
from kernelwright.features.fourier import Concatenated, FeatureMap, RandomFourier
from kernelwright.inputs.scaling import TableViews
from kernelwright.kernels.vector import HasLengthScales
from kernelwright.numerics.linalg import finite
from kernelwright.numerics.products import thin_product
from kernelwright.numerics.threads import threads_for
from kernelwright.solvers.solvers import FEATURE_ROWS
from kernelwright.uncertainty.conformal import LeftOutRows

__all__ = ["EmbeddingPredictions"]

NOWHERE = 0.1  # support below which raw outputs say nothing


class EmbeddingPredictions(ProbabilityClassifier, KernelEstimator):
    """Predictions of an embedding that has been solved: by kernel values with its points, or by features."""

    if TYPE_CHECKING:  # what a fit leaves behind
        prior_: np.ndarray
        coefficients_: np.ndarray
        ridge_: float
        solver_: str
        features_: FeatureMap | None
        _weighted: bool
        _support: Support
        _range: tuple[Tensor, Tensor]
        _rows: EmbeddedRows
        _moments: Any

        @property
        def _explicit(self) -> bool: ...

    def _outputs_and_support(self, X: Any) -> tuple[Tensor, Tensor]:
        return self._at_rows(self._check_new(X))

    def _at_rows(self, X: Any, points: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Raw outputs and support of checked rows."""
        outputs, supports = [torch.empty(0, len(self.prior_), dtype=torch.float64)], [torch.empty(0).double()]
        for _, some_outputs, some_support in self._blocks(X, points):
            outputs.append(some_outputs)
            supports.append(some_support)
        return torch.cat(outputs), torch.cat(supports)

    def _blocks(
        self, X: Any, points: Tensor | None = None, n_rows: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Kernel values with the training points (or features), raw outputs and support, some rows at a time."""
        points = self._encode(self.kernel_, X) if points is None else points
        prior, V = torch.from_numpy(self.prior_), torch.from_numpy(self.coefficients_)
        reach = self._reach(X, points)
        if self.features_ is None:
            blocks = self._kernel_blocks(points, n_rows)
        else:
            blocks = (self.features_(block).double() for block in points.split(n_rows or FEATURE_ROWS))
        start = 0
        with torch.no_grad():
            for values in blocks:
                outputs = prior + thin_product(values, V.to(values.dtype))
                yield values, finite(outputs, start), self._support(values) * reach[start : start + len(values)]
                start += len(values)

    def _reach(self, X: Any, points: Tensor) -> Tensor:
        """How much support is left beyond the range of the training rows, where the kernel does not see how far.

        Squashed inputs never leave their range, and random Fourier features are periodic; what a kernel of the same
        length scales would lose on the way there is lost here.
        """
        if X is None:  # points of training rows, which lie within the range
            return torch.ones(len(points), dtype=torch.float64)
        if isinstance(self.scaler_, TableViews):
            beyond = torch.from_numpy(self.scaler_.beyond(X))
        elif isinstance(self.features_, RandomFourier | Concatenated):
            low, high = self._range
            beyond = (low - points).clamp(min=0.0) + (points - high).clamp(min=0.0)
        else:
            return torch.ones(len(points), dtype=torch.float64)
        parts = [part for part in self.kernel_.modules() if isinstance(part, HasLengthScales)]
        with torch.no_grad():
            left = [(-(beyond / part.lengthscale).sum(1)).exp() for part in parts]
        return torch.stack(left).max(0).values

    @by_chunks
    def entropy(self, X: Any, method: str = "embedding", *, clip: bool = False) -> np.ndarray:
        """Entropy (in nats) of the label at each row: high at class boundaries and far from the data.

        Both estimates are made of raw outputs. Where a row has almost no :meth:`support` (below 0.1), these say
        nothing, and the entropy goes over to that of the class frequencies.

        Parameters
        ----------
        X : array-like
        method : {"embedding", "clip"}
            The embedding's own estimate, Eq. (37), or the entropy of the clip-normalised outputs, Eq. (33).
        clip : bool, default=False
            Lift the estimates of "embedding" that are slightly negative to zero.
        """
        if method not in ("embedding", "clip"):
            raise ValueError(
                f"The 'method' parameter of entropy must be 'embedding' or 'clip'. Got {method!r} instead."
            )
        outputs, support = self._outputs_and_support(X)
        found = clip_entropy(outputs) if method == "clip" else embedding_entropy(outputs, clip=clip)
        trust = (support / NOWHERE).clamp(max=1.0)
        prior = torch.from_numpy(self.class_prior_)
        return torch.where(trust < 1.0, trust * found - (1.0 - trust) * (prior * prior.log()).sum(), found).numpy()

    def embedding_weights(self, X: Any) -> np.ndarray:
        """``A^-1 k(x)`` of Eq. (2): the weight of each training row in ``E[g(Y) | x] ~ sum_i w_i g(y_i)``.

        The factor of A is not kept after ``fit``, so each call solves anew. Only an exact solution has them.
        """
        check_is_fitted(self)
        if self.solver_ != "exact":
            raise ValueError(f"Weights of all training rows exist with solver='exact' only, not {self.solver_!r}.")
        new = self._new_points(X)
        rows = self._rows
        with torch.no_grad():
            data = rows.training_set(torch.from_numpy(self.points_), torch.from_numpy(self.coefficients_))
            embedding = embed(self.kernel_.matrix(data.points), data, self.ridge_)
            distinct = torch.cat([embedding.weights(K.double()) for K in self._kernel_blocks(new)]).numpy()
        result = np.zeros((len(distinct), len(rows.given)))
        result[:, rows.given] = distinct[:, rows.place] * rows.share
        return result

    # leaving out training rows, for prediction sets ------------------------------------------------------

    def _left_out_rows(self) -> LeftOutRows:
        """What each training row changes at all other points; only an exact or an explicit embedding knows."""
        with torch.no_grad(), threads_for(len(self.points_)):
            return self._left_out_features() if self._explicit else self._left_out_points()

    def _left_out_points(self) -> LeftOutRows:
        prior, V = torch.from_numpy(self.prior_), torch.from_numpy(self.coefficients_)
        data = self._rows.training_set(torch.from_numpy(self.points_), V, prior)
        K, noise = self.kernel_.matrix(data.points), data.noise(self.ridge_)
        inverse = embed(K, data, self.ridge_).factor.into_inverse()
        counts = torch.from_numpy(np.bincount(self._rows.place, minlength=len(data))).double()
        if data.groups is None:
            # One of c equal rows is left out: its diagonal entry of A grows by noise / (c - 1), to infinity for c = 1.
            change = V / (inverse.diagonal() + (counts - 1.0) / noise)[:, None]
        else:
            change = without_groups(lambda rows: inverse[rows[:, :, None], rows[:, None, :]], V, data.groups)
        # Outputs at the points are targets less noise times coefficients, also of the embedding without a row.
        if data.groups is None:
            outputs = prior + K @ V - (1.0 - noise * inverse.diagonal())[:, None] * change
        else:
            outputs = prior + K @ V + noise[:, None] * V - change
        assert isinstance(self._support, KernelSupport)
        support = self._support.relative(nearest_other(K, data))
        return LeftOutRows(inverse, change, outputs, support, data.strata, counts, data.groups)

    def _left_out_features(self) -> LeftOutRows:
        assert self.features_ is not None
        moments, sample, _ = self._moments
        Z, W = self.features_(sample.points).double(), torch.from_numpy(self.coefficients_)
        basis = moments.factor(self.ridge_).solve(Z.T.contiguous())
        residual = left_out_residuals(Z, basis.T, sample.targets - sample.prior - Z @ W, sample)
        shift = torch.from_numpy(self.prior_) - sample.prior
        counts = torch.ones_like(sample.weights) if sample.counts is None else sample.counts
        change = (sample.weights / counts)[:, None] * residual
        outputs = sample.targets - residual + shift
        return LeftOutRows(basis, change, outputs, self._support(Z), sample.strata, counts, sample.groups)

    def _blocks_for_sets(self, X: Any, n_rows: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Kernel values or features, raw outputs and support of new rows, so many at a time."""
        for values, outputs, support in self._blocks(self._check_new(X), n_rows=n_rows):
            yield values.double(), outputs, support
