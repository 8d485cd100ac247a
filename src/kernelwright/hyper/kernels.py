"""Hyper-kernels: kernels between pairs of points.

A hyper-kernel kk((x, x'), (r, s)) is symmetric within each pair and between the pairs, and positive definite; for a
fixed pair (r, s) it is a kernel of (x, x') (definition 1 of [Liu2021]_). Constant factors are left out: with 60
features they range from 1e-190 to 1e130, and they change only the scale of the ridge.
"""

from __future__ import annotations

import copy
import math
import operator
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from kernelwright.inputs.arrays import as_matrix
from kernelwright.kernels.vector import whole_number
from kernelwright.numerics.distances import squared_euclidean
from kernelwright.numerics.linalg import Factor, factorise, spectrum, triangular_solve
from kernelwright.parameters import Parametrised, Positive
from kernelwright.storage.saved import saved

__all__ = ["Gaussian", "HyperKernel", "PointPairs", "Sum", "Wishart"]


@saved("point-pairs")
class PointPairs(NamedTuple):
    """Pairs (x, x') as two matrices with one row for each pair."""

    left: Tensor
    right: Tensor

    @property
    def middle(self) -> Tensor:
        """The midpoint of each pair."""
        return 0.5 * (self.left + self.right)

    @property
    def squared_length(self) -> Tensor:
        """``|x - x'|^2`` of each pair."""
        return (self.left - self.right).square().sum(1)


class Number(Positive):
    """A positive number, or None: it is then set from the variance of the points."""

    def __init__(self) -> None:
        super().__init__(1e-100, 1e100, vectors=False)  # points may be in any unit

    def __set__(self, module: nn.Module, value: Any) -> None:
        super().__set__(module, 1.0 if value is None else value)
        module.open = {*module.open, self.name} if value is None else module.open - {self.name}  # type: ignore


class HyperKernel(Parametrised):
    """A kernel between pairs of points. Subclasses implement ``of_scaled``.

    ``lengthscale`` is the metric. Points are divided by it: all features by one number, or each by its own.
    """

    lengthscale = Positive(1e-100, 1e100)
    log_lengthscale: nn.Parameter
    open: frozenset[str] = frozenset()  # names of the parameters that the user has not set

    def of_scaled(self, first: PointPairs, second: PointPairs) -> Tensor:
        """Return the matrix of hyper-kernel values between pairs already divided by the length scales."""
        raise NotImplementedError

    def forward(self, first: PointPairs, second: PointPairs) -> Tensor:
        """Return the matrix ``kk(first_i, second_j)``."""
        return self.of_scaled(self.scaled_pairs(first), self.scaled_pairs(second))

    def scaled(self, X: Tensor) -> Tensor:
        """Divide points by the length scales."""
        n_scales = self.log_lengthscale.numel()
        if n_scales not in (1, X.shape[1]):
            raise ValueError(
                f"{type(self).__name__} has {n_scales} length scales, but the points have {X.shape[1]} features."
            )
        return X / self.lengthscale

    def scaled_pairs(self, pairs: PointPairs) -> PointPairs:
        """Divide both points of each pair by the length scales."""
        return PointPairs(self.scaled(pairs.left), self.scaled(pairs.right))

    def __call__(self, first: Any, second: Any) -> Any:
        """Return the values between two lists of pairs, each given as ``(X, X')``; NumPy in, NumPy out."""
        pairs = [PointPairs(*(as_matrix(x) for x in pair)) for pair in (first, second)]
        if len({x.shape[1] for pair in pairs for x in pair}) > 1 or any(len(x) != len(y) for x, y in pairs):
            shapes = ", ".join(str(tuple(x.shape)) for pair in pairs for x in pair)
            raise ValueError(
                f"Pairs (X, X') need two arrays of equal shape, with as many features as the other pairs. Got {shapes}."
            )
        if any(torch.is_tensor(x) for pair in (first, second) for x in pair):
            return super().__call__(*pairs)
        with torch.no_grad():
            return super().__call__(*pairs).numpy()

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        """Set the missing parameters from the total variance of the points (the sum over features)."""
        w = torch.ones(len(X), dtype=torch.float64) if weights is None else weights
        with torch.no_grad():
            x = self.scaled(X)
            centred = x - (w @ x) / w.sum()
            variance = float((w @ centred.square()).sum() / w.sum())
        if not math.isfinite(variance):
            raise ValueError("The points are so large that their variance overflows. Divide them by a constant first.")
        self.use_variance_(variance if variance > 0 else 1.0)

    def use_variance_(self, variance: float) -> None:
        """Set the missing parameters from the total variance."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return super().get_params(deep) | dict.fromkeys(self.open)

    def with_free_metric(self, n_features: int) -> Self:
        """Return a copy with one length scale for each feature, to be learned."""
        made = copy.deepcopy(self)
        made.lengthscale = self.lengthscale.detach().expand(n_features)
        return made

    def fixed(self) -> Self:
        """Return a hyper-kernel with the same parameters, all of them fixed: itself, or a copy."""
        if not any(parameter.requires_grad for parameter in self.parameters()):
            return self
        return copy.deepcopy(self).requires_grad_(False)

    def widths(self) -> tuple[Tensor, Tensor] | None:
        """Return the squared widths (a_s, c_s) of lengths and midpoints, or None if it is not made of Gaussians.

        A hyper-kernel made of Gaussians separates: see :class:`kernelwright.hyper.bases.MidpointBasis`.
        """
        return None


@saved("gaussian-hyperkernel", fields="form open", parameters="log_lengthscale log_sigma log_sigma_h")
class Gaussian(HyperKernel):
    """``exp(-|x - x'|^2/2a - |r - s|^2/2a - |m - m'|^2/2c)`` with midpoints m, m' and ``c = sigma^2 + sigma_h^2``.

    Parameters
    ----------
    sigma : float or None, default=None
        If None, ``sigma^2`` is the total variance of the points.
    sigma_h : float or None, default=None
        If None, it equals ``sigma``. A large value relates pairs that are far apart.
    form : {"integral", "printed"}, default="integral"
        "integral": ``a = 2 sigma^2``, from the defining integral of four Gaussians. "printed": ``a = sigma^2``, as
        printed in [Liu2021]_ (also a hyper-kernel).
    lengthscale : float or vector, default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.hyperkernels import Gaussian
    >>> x, y = np.zeros((1, 2)), np.ones((1, 2))
    >>> Gaussian(sigma=1.0, sigma_h=1.0)((x, x), (y, y)).round(4)  # exp(-2/4)
    array([[0.6065]])
    """

    sigma = Number()
    sigma_h = Number()

    def __init__(
        self, sigma: float | None = None, sigma_h: float | None = None, form: str = "integral", lengthscale: Any = 1.0
    ) -> None:
        super().__init__()
        self.form, self.lengthscale, self.sigma, self.sigma_h = form, lengthscale, sigma, sigma_h

    def use_variance_(self, variance: float) -> None:
        if "sigma" in self.open:
            self.sigma = variance**0.5
        if "sigma_h" in self.open:
            self.sigma_h = self.sigma

    def widths(self) -> tuple[Tensor, Tensor]:
        if self.form not in ("integral", "printed"):
            raise ValueError(
                f"The 'form' parameter of Gaussian must be 'integral' or 'printed'. Got {self.form!r} instead."
            )
        a = self.sigma**2 * (2.0 if self.form == "integral" else 1.0)
        return a[None], (self.sigma**2 + self.sigma_h**2)[None]

    def of_scaled(self, first: PointPairs, second: PointPairs) -> Tensor:
        a, c = self.widths()
        lengths = (first.squared_length[:, None] + second.squared_length) / (2 * a)
        return torch.exp(-lengths - squared_euclidean(first.middle, second.middle) / (2 * c))


@saved("wishart-hyperkernel", fields="nu open _D _factor", parameters="log_lengthscale log_delta")
class Wishart(HyperKernel):
    """``|I + S/delta|^(-nu/2)``, where S is the scatter matrix of the four points about their mean.

    It is an average over Gaussian hyper-kernels of all shapes. It decays slowly, and works where no single width is
    right. In [Liu2021]_, ``nu = b + 3`` and ``D = delta I``. Every integer ``nu >= 1`` gives a hyper-kernel; small
    values work with many features.

    Parameters
    ----------
    delta : float or None, default=None
        If None, the total variance of the points.
    nu : int, default=4
    D : matrix or None, default=None
        A positive definite matrix that replaces the identity: points are whitened by it first. For a diagonal
        matrix use ``lengthscale``, which can be learned.
    lengthscale : float or vector, default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.hyperkernels import Wishart
    >>> x, y = np.zeros((1, 1)), np.ones((1, 1))
    >>> Wishart(delta=1.0, nu=2)((x, x), (x, y)).round(4)  # scatter 3/4: 1 / 1.75
    array([[0.5714]])
    """

    delta = Number()
    _factor: Factor | None

    def __init__(self, delta: float | None = None, nu: int = 4, D: Any = None, lengthscale: Any = 1.0) -> None:
        super().__init__()
        self.nu, self.lengthscale, self.delta, self.D = nu, lengthscale, delta, D

    @property
    def D(self) -> np.ndarray | None:
        """The matrix that points are whitened by."""
        return self._D

    @D.setter
    def D(self, D: Any) -> None:
        self._D = None if D is None else np.array(D, dtype=np.float64)
        if self._D is None:
            self._factor = None
            return
        square = self._D.ndim == 2 and self._D.shape[0] == self._D.shape[1]
        if not square or not np.allclose(self._D, self._D.T) or spectrum(torch.from_numpy(self._D))[0] <= 0:
            raise ValueError(
                "The 'D' parameter of Wishart must be a symmetric positive definite matrix. "
                f"Got shape {self._D.shape} instead."
            )
        self._factor = factorise(torch.from_numpy(self._D))

    def use_variance_(self, variance: float) -> None:
        if "delta" in self.open:
            self.delta = variance

    def _whitened(self, X: Tensor) -> Tensor:
        if self._factor is None:
            return X
        if len(self._factor) != X.shape[1]:
            raise ValueError(
                f"D is for points with {len(self._factor)} features. Got points with {X.shape[1]} instead."
            )
        return triangular_solve(self._factor, X.detach().T).T

    def scaled(self, X: Tensor) -> Tensor:
        return super().scaled(self._whitened(X))

    def of_scaled(self, first: PointPairs, second: PointPairs) -> Tensor:
        """Compute the determinant of ``I + Z Z^T/delta``; its rows: (x - x')/sqrt 2, (r - s)/sqrt 2, m - m'."""
        delta, nu = self.delta, whole_number(self.nu, "nu", self)
        u, v = (first.left - first.right) / (2 * delta) ** 0.5, (second.left - second.right) / (2 * delta) ** 0.5
        m, n = first.middle / delta**0.5, second.middle / delta**0.5
        uu, vv, tt = 1 + u.square().sum(1)[:, None], 1 + v.square().sum(1), 1 + squared_euclidean(m, n)
        uv = u @ v.T
        ut = (u * m).sum(1)[:, None] - u @ n.T
        vt = m @ v.T - (v * n).sum(1)
        # The determinant is at least 1, but rounding can make it smaller.
        determinant = uu * (vv * tt - vt**2) - uv * (uv * tt - ut * vt) + ut * (uv * vt - vv * ut)
        return determinant.clamp(min=1.0) ** (-0.5 * nu)


@saved("sum-hyperkernel", fields="kernels", parameters="log_lengthscale")
class Sum(HyperKernel):
    """``sum_s kk_s``, a sum of hyper-kernels; by default Gaussian ones of eight widths.

    A hyper-kernel of one width cannot fit a kernel of another width, but a sum over widths can. Without ``parts``,
    ``a_s = 50, 50/3, 50/9, ...`` times the total variance (eight values, the last 0.023), all with ``c = 37.5`` times
    the total variance.

    Parameters
    ----------
    parts : list of HyperKernel or None, default=None
    lengthscale : float or vector, default=1.0
        Shared by all parts, applied before their own.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.hyperkernels import Gaussian, Sum
    >>> x = np.zeros((1, 2))
    >>> Sum([Gaussian(sigma=1.0), Gaussian(sigma=2.0)])((x, x), (x, x))
    array([[2.]])
    """

    WIDEST, COUNT = 50.0, 8

    def __init__(self, parts: list[HyperKernel] | None = None, lengthscale: Any = 1.0) -> None:
        super().__init__()
        self.lengthscale, self.parts = lengthscale, parts

    @property
    def parts(self) -> list[HyperKernel] | None:
        """The hyper-kernels that are summed; None until their widths are set from data."""
        parts = list(self._modules["kernels"])  # type: ignore[call-overload]
        return parts or None

    @parts.setter
    def parts(self, parts: list[HyperKernel] | None) -> None:
        if parts is not None and (len(parts) == 0 or not all(isinstance(part, HyperKernel) for part in parts)):
            raise ValueError(
                f"The 'parts' parameter of Sum must be a list of at least one hyper-kernel. Got {parts!r}."
            )
        self._modules["kernels"] = nn.ModuleList(copy.deepcopy(parts or []))

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        super().prepare_(X, weights)
        for part in self._ready():
            part.prepare_(self.scaled(X).detach(), weights)

    def use_variance_(self, variance: float) -> None:
        if self.parts is None:
            # With these ratios each falloff is a product of earlier ones: see `cubed_sum`.
            a = [self.WIDEST * variance / 3.0**s for s in range(self.COUNT)]
            c = 0.75 * a[0]
            self.parts = [Gaussian(sigma=(a_s / 2) ** 0.5, sigma_h=(c - a_s / 2) ** 0.5) for a_s in a]
            for part in self._ready():
                part.requires_grad_(False)  # the widths already cover every length; only the metric is learned

    def _ready(self) -> list[HyperKernel]:
        if self.parts is None:
            raise ValueError("Sum() has no parts yet: their widths depend on the points. Use prepared(X) first.")
        return self.parts

    def widths(self) -> tuple[Tensor, Tensor] | None:
        found = [part.widths() if part.log_lengthscale.numel() == 1 else None for part in self._ready()]
        if any(w is None for w in found):
            return None
        # A part's own length scale makes it wider, because points are divided by it.
        scales = [part.lengthscale**2 for part in self._ready()]
        a, c = zip(*[(w[0] * s, w[1] * s) for w, s in zip(found, scales, strict=True) if w is not None], strict=True)
        return torch.cat(a), torch.cat(c)

    def of_scaled(self, first: PointPairs, second: PointPairs) -> Tensor:
        # One after the other: all matrices of pairs at once might not fit in memory.
        return reduce(operator.add, (part.forward(first, second) for part in self._ready()))
