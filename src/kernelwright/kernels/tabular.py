"""The library's default kernel for tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from kernelwright.kernels.base import Gradients, Kernel, Pullback, simplex_gradient
from kernelwright.kernels.vector import LengthScale, LengthScaled, spread_rows
from kernelwright.numerics.distances import (
    l1,
    l1_weighted_sums,
    median_distance,
    squared_euclidean,
    squared_weighted_sums,
)
from kernelwright.numerics.table_kernel import (
    FalloffSums,
    TableTiles,
    Views,
    falloff_matrices,
    falloff_sums,
    mixture,
    one_pass_pays,
)
from kernelwright.parameters import WEAK_PULL, Positive, Simplex
from kernelwright.storage.saved import saved

__all__ = ["Tabular"]


def _falloff_(D: Tensor) -> Tensor:
    """Return ``exp(-D)``, in the memory of D if no gradient is needed."""
    return (-D).exp_() if D.requires_grad else D.neg_().exp_()


def _sums_in_torch(points: Views, W: Tensor, parts: tuple[Tensor, Tensor, Tensor]) -> FalloffSums:
    """Return :func:`falloff_sums` without a compiled loop; W is overwritten."""
    steps, step_total = l1_weighted_sums(points.first, W, parts[0])
    ranks, rank_total = l1_weighted_sums(points.second, W, parts[2])
    N = W.mul_(parts[1])
    smooth = squared_weighted_sums(points.first, N)
    return FalloffSums(steps, smooth, ranks, torch.stack([step_total, N.sum(), rank_total]))


@saved(
    "tabular-kernel",
    fields="median usual ard groups",
    parameters="log_lengthscale log_smooth log_rank_scale logit_weights",
)
class Tabular(LengthScaled):
    """A learned sum of three kernels on two views of a table.

    A point is ``[z | q]``: the same features squashed (z) and as normal scores of their ranks (q); see
    :class:`~kernelwright.inputs.scaling.TableViews`. With l the ``lengthscale`` of each feature, m its geometric mean::

        k = w_0 exp(-sum_d |z_d - z'_d| / l_d)
          + w_1 exp(-sum_d (z_d - z'_d)^2 / (2 smooth^2 l_d / m))
          + w_2 exp(-sum_d |q_d - q'_d| / (l_d rank_scale))

    Features of one group share a length scale: the indicators of one category, say, of which ``groups`` has the number
    for each feature.

    The first part follows steps and single features. The second follows smooth and rotated structure; on a log scale it
    uses half of the learned relevance. The third ignores the spacing of a feature's values. ``k(x, x) = 1``.
    """

    lengthscale = LengthScale(1e-4, 1e6)
    smooth = Positive(1e-3, 1e5, vectors=False)
    rank_scale = Positive(0.018, 55.0, vectors=False)
    weights = Simplex(3)
    log_smooth: nn.Parameter
    log_rank_scale: nn.Parameter
    usual: tuple[float, float] | None = None  # logarithms of the median distances, once known
    groups: tuple[int, ...] | None = None  # the length scale of each feature; None: each has its own
    logit_weights: nn.Parameter

    START = (-1.0, -0.5)  # logits of the second and third weight: their start, and the target of shrinkage

    def __init__(
        self,
        lengthscale: Any = "median",
        smooth: float = 1.0,
        rank_scale: float = 1.0,
        weights: Any = None,
        groups: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.groups = None if groups is None else tuple(groups)
        self.lengthscale, self.smooth, self.rank_scale = lengthscale, smooth, rank_scale
        start = torch.tensor((0.0, *self.START), dtype=torch.float64)
        self.weights = torch.softmax(start, 0) if weights is None else weights

    def __init_subclass__(cls, **settings: Any) -> None:
        """Reset the pass over pairs in a subclass that defines its own ``forward``."""
        super().__init_subclass__(**settings)
        if "forward" in vars(cls):
            cls.against, cls.matrix = Kernel.against, Kernel.matrix  # type: ignore[method-assign]

    def _views(self, X: Tensor) -> tuple[Tensor, Tensor]:
        half, odd = divmod(X.shape[1], 2)
        scale = self.log_lengthscale
        if odd:
            raise ValueError(f"Tabular expects two views [z | q] of every feature. Got {X.shape[1]} columns.")
        if scale.ndim and len(self.of_features(scale)) != half:
            n_scaled = len(self.of_features(scale))
            raise ValueError(f"Tabular has length scales for {n_scaled} features, but the points have {half}.")
        return X[:, :half], X[:, half:]

    def of_features(self, scale: Tensor) -> Tensor:
        """Return the length scale of each feature from those of the groups."""
        return scale if self.groups is None or scale.ndim == 0 else scale[list(self.groups)]

    def _of_groups(self, sums: Tensor) -> Tensor:
        """Sum over the features of each group."""
        if self.groups is None or self.log_lengthscale.ndim == 0:
            return sums
        return sums.new_zeros(len(self.log_lengthscale)).index_add(0, torch.tensor(self.groups), sums)

    def feature_scale(self) -> Tensor:
        """Return the length scale of each feature."""
        return self.of_features(self.lengthscale)

    def smooth_scale(self) -> Tensor:
        """Return the length scale of each feature in the second part."""
        relevance = 0.5 * (self.log_lengthscale - self.log_lengthscale.mean())
        return self.smooth * self.of_features(relevance).exp()

    def _curvature(self) -> Tensor:
        """Return what squared differences over the length scales are multiplied by in the second part."""
        return 0.5 * (self.feature_scale() / self.smooth_scale()).square()

    def _scaled(self, X: Tensor) -> Views:
        """Return both views of points, divided by their length scales."""
        (z, q), near = self._views(X), self.feature_scale()
        return Views(z / near, q / (near * self.rank_scale))

    def _parts(self, x: Views, z: Views | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the three kernel matrices of scaled points."""
        root = (2.0 * self._curvature()).sqrt()
        smooth = squared_euclidean(x.first * root, None if z is None else z.first * root).mul_(-0.5).exp_()
        steps = _falloff_(l1(x.first, None if z is None else z.first))
        ranked = _falloff_(l1(x.second, None if z is None else z.second))
        return steps, smooth, ranked

    def _differentiable(self, *points: Tensor) -> bool:
        return torch.is_grad_enabled() and any(x.requires_grad for x in (*points, *self.parameters()))

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        other = X if Z is None else Z
        if not self._differentiable(X, other) and one_pass_pays(len(X) * len(other), X.shape[1]):
            return Tabular.against(self, other)(X)
        return self._in_torch(X, Z)

    def _in_torch(self, X: Tensor, Z: Tensor | None) -> Tensor:
        x, z, w = self._scaled(X), None if Z is None else self._scaled(Z), self.weights
        steps, smooth, ranks = self._parts(x, z)
        if not (w.requires_grad or steps.requires_grad):  # prediction: avoid copies
            return steps.mul_(w[0]).add_(smooth.mul_(w[1])).add_(ranks.mul_(w[2]))
        return w[0] * steps + w[1] * smooth + w[2] * ranks

    def against(self, Z: Tensor) -> Callable[[Tensor], Tensor]:
        @cache
        def tiles() -> TableTiles:
            return TableTiles.of(self._scaled(Z), self._curvature(), self.weights)

        def values(X: Tensor) -> Tensor:
            if not one_pass_pays(len(X) * len(Z), X.shape[1]):
                return self._in_torch(X, Z)
            return mixture(self._scaled(X), tiles())

        return values

    def matrix(self, X: Tensor) -> Tensor:
        if not one_pass_pays(len(X) ** 2, X.shape[1]):
            return super().matrix(X)
        with torch.no_grad():
            x = self._scaled(X)
            return mixture(x, TableTiles.of(x, self._curvature(), self.weights), square=True)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        in_one_pass = one_pass_pays(len(X) ** 2, X.shape[1])
        with torch.no_grad():
            w, curvature, x = self.weights, self._curvature(), self._scaled(X)
            parts = falloff_matrices(x, curvature) if in_one_pass else self._parts(x, None)

        def pullback(dK: Tensor) -> Gradients:
            found = falloff_sums(x, dK, parts) if in_one_pass else _sums_in_torch(x, dK, parts)
            smooth_sums = w[1] * self._of_groups(2.0 * curvature * found.smooth)
            steps_and_ranks = self._of_groups(w[0] * found.steps + w[2] * found.ranks)
            in_scales = steps_and_ranks + 0.5 * (smooth_sums - smooth_sums.mean())
            gradients = {
                "log_lengthscale": in_scales if self.log_lengthscale.ndim else in_scales.sum(),
                "log_smooth": smooth_sums.sum(),
                "log_rank_scale": w[2] * found.ranks.sum(),
                "logit_weights": simplex_gradient(w, found.totals),
            }
            return {name: g for name, g in gradients.items() if self.get_parameter(name).requires_grad}

        steps, smooth, ranks = parts
        return (w[0] * steps).add_(smooth, alpha=float(w[1])).add_(ranks, alpha=float(w[2])), pullback

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        z, _ = self._views(X)
        if self.median:
            rows = spread_rows(len(z))
            some, some_weights = z[rows], None if weights is None else weights[rows]
            self.lengthscale = median_distance(l1(some), some_weights)
            self.smooth = median_distance(squared_euclidean(some).sqrt(), some_weights)
            self.usual = (float(self.log_lengthscale.detach()), float(self.log_smooth.detach()))
        if self.log_lengthscale.ndim == 0:
            n_scales = z.shape[1] if self.groups is None else max(self.groups) + 1
            self.lengthscale = self.lengthscale.detach().expand(n_scales)

    def stretch_(self, factor: float) -> None:
        super().stretch_(factor)
        if self.log_smooth.requires_grad:
            self.smooth = factor * self.smooth.detach()

    def penalty(self) -> Tensor:
        """Sum the spread of length scales, half the squared distance of the mixture from its start, and a weak pull.

        The pull towards the starting medians keeps the two common scales from drifting along a plateau.
        """
        start = torch.tensor(self.START, dtype=torch.float64)
        mixture = ((self.logit_weights - start) ** 2).sum() + self.log_rank_scale**2
        if self.usual is not None:
            away = torch.stack([self.log_lengthscale.mean(), self.log_smooth]) - mixture.new_tensor(self.usual)
            mixture = mixture + WEAK_PULL * (away**2).sum()
        return super().penalty() + 0.5 * mixture
