"""Kernels on vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kernelwright.kernels.base import Gradients, Kernel, Pullback
from kernelwright.numerics.distances import (
    euclidean,
    l1,
    l1_weighted_sums,
    median_distance_of,
    squared_euclidean,
    squared_norms,
    squared_outer_sums,
    squared_weighted_sums,
)
from kernelwright.numerics.linalg import Workspace
from kernelwright.numerics.products import Outer
from kernelwright.parameters import Parametrised, Positive
from kernelwright.storage.saved import saved

__all__ = ["Gaussian", "KroneckerDelta", "Laplace", "Linear", "Matern", "Polynomial", "RationalQuadratic"]

MEDIAN_POINTS = 500  # enough points for a median distance: 125,000 pairs


def whole_number(value: Any, name: str, owner: Any) -> int:
    """Check that a parameter is an integer of at least 1."""
    if value != int(value) or value < 1:
        raise ValueError(
            f"The {name!r} parameter of {type(owner).__name__} must be a whole number of at least 1. "
            f"Got {value!r} instead."
        )
    return int(value)


def spread_rows(n_rows: int) -> Tensor:
    """Return enough row indices for a median distance, evenly spread because rows may be sorted."""
    return torch.linspace(0, n_rows - 1, min(n_rows, MEDIAN_POINTS), dtype=torch.float64).long()


class LengthScale(Positive):
    """A positive number, a vector of them, or "median": the median distance between the training points."""

    def __set__(self, module: nn.Module, value: Any) -> None:
        if isinstance(value, str) and value != "median":
            raise ValueError(
                f"The {self.name!r} parameter of {type(module).__name__} must be a positive number, a vector of "
                f"them or 'median'. Got {value!r} instead."
            )
        median = isinstance(value, str)
        super().__set__(module, 1.0 if median else value)
        module.median = median  # type: ignore[assignment]
        if module.get_parameter(self.raw_name).ndim == 1:
            module.ard = True  # type: ignore[assignment]


class HasLengthScales(Parametrised):
    """An object that divides its inputs by length scales, which can be tied, shrunk together, or set to a median."""

    lengthscale = LengthScale()
    log_lengthscale: nn.Parameter
    median: bool
    ard: bool = False  # a length scale for each feature

    def feature_scale(self) -> Tensor:
        """Return the length scale of each feature, or of all."""
        return self.lengthscale

    def use_median_(self) -> None:
        if self.log_lengthscale.requires_grad:  # a frozen part does not change
            self.lengthscale = "median"

    def tie_(self) -> None:
        if self.log_lengthscale.requires_grad:
            self.lengthscale = self.log_lengthscale.detach().mean().exp()

    def stretch_(self, factor: float) -> None:
        if self.log_lengthscale.requires_grad:
            self.lengthscale = factor * self.lengthscale.detach()

    def penalty(self) -> Tensor:
        """Return half the squared spread of the log length scales."""
        return 0.5 * ((self.log_lengthscale - self.log_lengthscale.mean()) ** 2).sum()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return super().get_params(deep) | ({"lengthscale": "median"} if self.median else {})


class LengthScaled(HasLengthScales, Kernel):
    """A kernel of scaled differences: ``k(x, x) = 1``."""

    bounded = True  # type: ignore[assignment]

    def _diag(self, X: Tensor) -> Tensor:
        return X.new_ones(len(X))

    def sup_diag(self, X: Any = None) -> Tensor:
        return torch.ones((), dtype=torch.float64)


class _Stationary(LengthScaled):
    """A kernel of differences between points divided by length scales."""

    def __init__(self, lengthscale: Any = 1.0, ard: bool = False) -> None:
        super().__init__()
        self.ard = ard
        self.lengthscale = lengthscale

    def of_scaled(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        """Return the kernel matrix of points that are already divided by the length scales."""
        raise NotImplementedError

    def distance(self, X: Tensor) -> Tensor:
        """Return the distance whose median is a sensible length scale."""
        return squared_euclidean(X).sqrt()

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        self._check_features(X)
        scale = self.lengthscale
        return self.of_scaled(X / scale, None if Z is None else Z / scale)

    def _check_features(self, X: Tensor) -> None:
        scale = self.log_lengthscale
        if scale.ndim and len(scale) != X.shape[1]:
            raise ValueError(
                f"{type(self).__name__} has {len(scale)} length scales, but the points have {X.shape[1]} features."
            )

    def lengthscale_gradient(self, sums: Tensor) -> Gradients:
        """Convert gradients for each feature to the gradient of the length scale, if it is learned."""
        learned = self.log_lengthscale.requires_grad
        return {"log_lengthscale": sums if self.log_lengthscale.ndim else sums.sum()} if learned else {}

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        if self.median:
            some = spread_rows(len(X))
            self.lengthscale = median_distance_of(X[some], self.distance, None if weights is None else weights[some])
        if self.ard and self.log_lengthscale.ndim == 0:
            self.lengthscale = self.lengthscale.detach().expand(X.shape[1])
        self._check_features(X)


class _Euclidean(_Stationary):
    """A decreasing profile of the squared Euclidean distance D between scaled points."""

    takes_outer = True

    def profile_(self, D: Tensor) -> Tensor:
        """Return the kernel as a function of D, which may be overwritten if ``slope`` does not need it."""
        raise NotImplementedError

    def slope(self, D: Tensor, K: Tensor) -> Tensor:
        """Return minus twice the derivative of the profile, given its value K."""
        raise NotImplementedError

    def profile_gradients(self, D: Tensor, K: Tensor, dK: Tensor) -> Gradients:
        """Return gradients in the parameters of the profile itself, if it has any."""
        return {}

    def squared_distance(self, X: Tensor, Z: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        """Return squared distances between scaled points."""
        return squared_euclidean(X, Z, memory)

    def of_scaled(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return self.profile_(self.squared_distance(X, Z))

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        return self._vjp(X, None)

    def vjp_in(self, workspace: Workspace | None, X: Tensor) -> tuple[Tensor, Pullback]:
        return self._vjp(X, None if workspace is None else workspace.matrix("kernel", len(X)))

    def _vjp(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, Pullback]:
        with torch.no_grad():
            scaled = X / self.lengthscale
            D = self.squared_distance(scaled, memory=memory)
            K = self.profile_(D)

        def pullback(dK: Tensor | Outer) -> Gradients:
            with torch.no_grad():
                if isinstance(dK, Outer):
                    return self.lengthscale_gradient(squared_outer_sums(scaled, dK, self.slope(D, K)))
                others = self.profile_gradients(D, K, dK)
                sums = squared_weighted_sums(scaled, dK.mul_(self.slope(D, K)))
                return self.lengthscale_gradient(sums) | others

        return K, pullback


@saved("gaussian-kernel", fields="ard median", parameters="log_lengthscale")
class Gaussian(_Euclidean):
    """``k(x, z) = exp(-|(x - z) / lengthscale|^2 / 2)``.

    Parameters
    ----------
    lengthscale : float, vector or "median", default=1.0
        One length scale for all features, or one for each; "median" starts at the median distance of the data.
    ard : bool, default=False
        Learn one length scale for each feature (automatic relevance determination).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.kernels import Gaussian
    >>> Gaussian(lengthscale=2.0)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    def profile_(self, D: Tensor) -> Tensor:
        return D.mul_(-0.5).exp_()

    def slope(self, D: Tensor, K: Tensor) -> Tensor:
        return K


@saved("laplace-kernel", fields="ard median", parameters="log_lengthscale")
class Laplace(_Stationary):
    """``k(x, z) = exp(-sum_d |x_d - z_d| / lengthscale_d)``, a product over the features.

    Parameters are those of :class:`Gaussian`; "median" is the median L1 distance.
    """

    def of_scaled(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return (-l1(X, Z)).exp_()

    def distance(self, X: Tensor) -> Tensor:
        return l1(X)

    def vjp(self, X: Tensor) -> tuple[Tensor, Pullback]:
        with torch.no_grad():
            scaled = X / self.lengthscale
            K = self.of_scaled(scaled)

        def pullback(dK: Tensor) -> Gradients:
            sums, _ = l1_weighted_sums(scaled, dK, K)
            return self.lengthscale_gradient(sums)

        return K, pullback


@saved("matern-kernel", fields="ard median _nu", parameters="log_lengthscale")
class Matern(_Euclidean):
    """The Matern kernel of the Euclidean distance, ``nu`` = 0.5, 1.5 or 2.5.

    With ``s = sqrt(2 nu) |(x - z) / lengthscale|``: ``exp(-s)``, ``(1 + s) exp(-s)``, ``(1 + s + s^2/3) exp(-s)``.
    """

    def __init__(self, lengthscale: Any = 1.0, ard: bool = False, nu: float = 1.5) -> None:
        super().__init__(lengthscale, ard)
        self.nu = nu

    @property
    def nu(self) -> float:
        """Smoothness."""
        return self._nu

    @nu.setter
    def nu(self, value: float) -> None:
        if value not in (0.5, 1.5, 2.5):
            raise ValueError(f"The 'nu' parameter of Matern must be 0.5, 1.5 or 2.5. Got {value!r} instead.")
        self._nu = float(value)

    def squared_distance(self, X: Tensor, Z: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        return euclidean(X, Z).square()  # its root is taken: near zero, the errors of a product would show

    def _root(self, D: Tensor) -> Tensor:
        # The clamp keeps the derivative finite at zero, and a power of the root finite far away.
        return (2.0 * self.nu * D).clamp(1e-30, 1e30 if D.dtype == torch.float32 else 1e300).sqrt()

    def profile_(self, D: Tensor) -> Tensor:
        s = self._root(D)
        if self.nu == 0.5:
            return torch.exp(-s)
        return (1.0 + s if self.nu == 1.5 else 1.0 + s + s * s / 3.0) * torch.exp(-s)

    def slope(self, D: Tensor, K: Tensor) -> Tensor:
        s = self._root(D)
        if self.nu == 1.5:
            return 3.0 * torch.exp(-s)
        if self.nu == 2.5:
            return (5.0 / 3.0) * (1.0 + s) * torch.exp(-s)
        return torch.where(D > 0, torch.exp(-s) / s, 0.0)  # the distance of a point to itself is constant


@saved("rational-quadratic-kernel", fields="ard median", parameters="log_lengthscale log_mixture")
class RationalQuadratic(_Euclidean):
    """``k(x, z) = (1 + |(x - z) / lengthscale|^2 / (2 mixture))^(-mixture)``, a mixture of Gaussian widths."""

    takes_outer = False  # its profile has a parameter of its own
    mixture = Positive(1e-2, 1e3, vectors=False)
    log_mixture: nn.Parameter

    def __init__(self, lengthscale: Any = 1.0, ard: bool = False, mixture: float = 1.0) -> None:
        super().__init__(lengthscale, ard)
        self.mixture = mixture

    def profile_(self, D: Tensor) -> Tensor:
        return (1.0 + D / (2.0 * self.mixture)) ** -self.mixture

    def slope(self, D: Tensor, K: Tensor) -> Tensor:
        return K / (1.0 + D / (2.0 * self.mixture.detach()))

    def profile_gradients(self, D: Tensor, K: Tensor, dK: Tensor) -> Gradients:
        if not self.log_mixture.requires_grad:
            return {}
        a = self.mixture.detach()
        share = D / (2.0 * a)
        return {"log_mixture": (dK * K * a * (share / (1.0 + share) - torch.log1p(share))).sum()}


@saved("linear-kernel")
class Linear(Kernel):
    """``k(x, z) = x . z``, unbounded: ``sup_diag`` is empirical."""

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return X @ (X if Z is None else Z).T

    def _diag(self, X: Tensor) -> Tensor:
        return squared_norms(X)


@saved("polynomial-kernel", fields="_degree", parameters="log_lengthscale log_offset")
class Polynomial(Kernel):
    """``k(x, z) = (x . z / lengthscale^2 + offset)^degree``, unbounded: ``sup_diag`` is empirical."""

    lengthscale = Positive(vectors=False)
    offset = Positive(vectors=False)

    def __init__(self, degree: int = 2, lengthscale: float = 1.0, offset: float = 1.0) -> None:
        super().__init__()
        self.degree, self.lengthscale, self.offset = degree, lengthscale, offset

    @property
    def degree(self) -> int:
        """The degree, an integer of at least 1."""
        return self._degree

    @degree.setter
    def degree(self, value: int) -> None:
        self._degree = whole_number(value, "degree", self)

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return (X @ (X if Z is None else Z).T / self.lengthscale**2 + self.offset) ** self.degree

    def _diag(self, X: Tensor) -> Tensor:
        return (squared_norms(X) / self.lengthscale**2 + self.offset) ** self.degree


@saved("delta-kernel")
class KroneckerDelta(Kernel):
    """``k(x, z) = 1 if x = z else 0``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.kernels import KroneckerDelta
    >>> KroneckerDelta()(np.array([[1.0], [2.0], [1.0]]))
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    bounded = True  # type: ignore[assignment]

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        equal = torch.ones(len(X), len(X if Z is None else Z), dtype=torch.bool)
        for x, z in zip(X.T, (X if Z is None else Z).T, strict=True):  # a column at a time saves memory
            equal &= x[:, None] == z
        return equal.to(X.dtype if X.is_floating_point() else torch.float64)  # points may be integers

    def _diag(self, X: Tensor) -> Tensor:
        return X.new_ones(len(X))

    def sup_diag(self, X: Any = None) -> Tensor:
        return torch.ones((), dtype=torch.float64)
