"""Random Fourier features of stationary kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kernelwright.kernels import ConvexSum, Gaussian, Kernel, Laplace, Matern, Scaled, Sum, Tabular
from kernelwright.kernels.feature import FeatureMap
from kernelwright.kernels.vector import HasLengthScales, spread_rows, whole_number
from kernelwright.numerics.distances import l1, median_distance_of, squared_euclidean
from kernelwright.storage.saved import saved

__all__ = ["RandomFourier", "fourier_features"]


@saved(
    "random-fourier-features",
    fields="_size kernel ard nu seed median",
    parameters="log_lengthscale",
    buffers="frequencies",
)
class RandomFourier(HasLengthScales, FeatureMap):
    """Random Fourier features [Rahimi2008]_: ``sqrt(2/p) [cos(W x / lengthscale), sin(W x / lengthscale)]``.

    Inner products are unbiased estimates of the kernel, with an error of order ``1/sqrt(p)``. The frequencies W are
    drawn once for unit length scale; the length scales are learned.

    Parameters
    ----------
    n_features : int, default=500
        p, rounded up to an even number.
    kernel : {"gaussian", "laplace", "matern"}, default="gaussian"
        The kernel to approximate ("laplace" uses the L1 distance).
    lengthscale : float, vector or "median", default=1.0
    ard : bool, default=False
        Learn one length scale for each input.
    nu : float, default=1.5
        Smoothness of "matern".
    seed : int, default=0
        Seed of the frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.features import RandomFourier
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> features = RandomFourier(2000)
    >>> Z = features.fit(X)(X)
    >>> Z.shape, bool(abs(Z[0] @ Z[1] - np.exp(-0.5)) < 0.05)
    ((2, 2000), True)
    """

    frequencies: Tensor

    KERNELS = ("gaussian", "laplace", "matern")

    def __init__(
        self,
        n_features: int = 500,
        kernel: str = "gaussian",
        lengthscale: Any = 1.0,
        ard: bool = False,
        nu: float = 1.5,
        seed: int = 0,
    ) -> None:
        super().__init__()
        whole_number(n_features, "n_features", self)
        self._size, self.kernel, self.ard, self.nu, self.seed = n_features, kernel, ard, nu, seed
        self.lengthscale = lengthscale
        self.forget_()

    def forget_(self) -> None:
        if self.kernel not in self.KERNELS:
            raise ValueError(
                f"The 'kernel' parameter of RandomFourier must be one of {list(self.KERNELS)}. "
                f"Got {self.kernel!r} instead."
            )
        self.register_buffer("frequencies", torch.empty(0, 0, dtype=torch.float64))

    @property
    def n_features(self) -> int:
        return 2 * math.ceil(self._size / 2)

    @n_features.setter
    def n_features(self, size: int) -> None:
        self._size = whole_number(size, "n_features", self)

    @property
    def bound(self) -> float:
        return 1.0

    def _draw(self, n_inputs: int) -> Tensor:
        generator = torch.Generator().manual_seed(int(self.seed))
        size = (self.n_features // 2, n_inputs)
        normal = torch.randn(size, generator=generator, dtype=torch.float64)
        if self.kernel == "gaussian":
            return normal
        if self.kernel == "laplace":
            return torch.tan(math.pi * (torch.rand(size, generator=generator, dtype=torch.float64) - 0.5))
        # Matern: a multivariate t distribution, a normal over the root of a chi square with 2 nu degrees of freedom
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
        chi = torch.from_numpy(np.random.default_rng(seed).chisquare(2.0 * self.nu, (size[0], 1)))
        return normal / torch.sqrt(chi / (2.0 * self.nu))

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        if self.median:
            some = spread_rows(len(X))
            distance = l1 if self.kernel == "laplace" else lambda Z: squared_euclidean(Z).sqrt()
            self.lengthscale = median_distance_of(X[some], distance, None if weights is None else weights[some])
        if self.ard and self.log_lengthscale.ndim == 0:
            self.lengthscale = self.lengthscale.detach().expand(X.shape[1])
        if self.frequencies.shape != (self.n_features // 2, X.shape[1]):
            self.frequencies = self._draw(X.shape[1])

    def forward(self, X: Tensor) -> Tensor:
        self._check_inputs(X, self.frequencies.shape[1] if len(self.frequencies) else None)
        phases = (X / self.lengthscale.to(X.dtype)) @ self.frequencies.T.to(X.dtype)
        return torch.cat([phases.cos(), phases.sin()], 1) * math.sqrt(1.0 / len(self.frequencies))


@saved("concatenated-features", fields="parts weights columns")
class Concatenated(FeatureMap):
    """Several maps side by side, giving the weighted sum of their kernels. Each sees some of the columns."""

    @property
    def maps(self) -> list[Any]:
        """The maps."""
        return list(self.parts)

    def __init__(self, maps: list[FeatureMap], weights: list[float], columns: list[slice]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(maps)
        self.weights, self.columns = weights, columns

    @property
    def n_features(self) -> int:
        return sum(part.n_features for part in self.maps)

    @property
    def bound(self) -> float:
        return float(sum(self.weights))

    def forward(self, X: Tensor) -> Tensor:
        parts = zip(self.parts, self.weights, self.columns, strict=True)
        return torch.cat([math.sqrt(weight) * part(X[:, columns]) for part, weight, columns in parts], 1)


def fourier_features(kernel: Kernel, n_features: int, n_inputs: int, seed: int) -> FeatureMap:
    """Return random Fourier features of a learned kernel: Gaussian, Laplace, Matern, Tabular, or a sum of them."""
    terms = list(_spectral_terms(kernel, 1.0, n_inputs))
    size = max(2, n_features // len(terms))
    maps: list[FeatureMap] = []
    for number, (_, name, nu, scale, columns) in enumerate(terms):
        maps.append(RandomFourier(size, name, scale, nu=nu, seed=seed + number))
        maps[-1].prepare_(torch.empty(0, len(range(*columns.indices(n_inputs))), dtype=torch.float64))
    return Concatenated(maps, [term[0] for term in terms], [term[4] for term in terms])


def _spectral_terms(
    kernel: Kernel, weight: float, n_inputs: int
) -> Iterator[tuple[float, str, float, np.ndarray, slice]]:
    """Return weight, kind, smoothness, length scales and columns of each stationary part of a kernel."""

    def array(scale: Tensor) -> np.ndarray:
        return scale.detach().numpy()

    everything = slice(0, n_inputs)
    if isinstance(kernel, Sum):
        yield from _spectral_terms(kernel.left, weight, n_inputs)
        yield from _spectral_terms(kernel.right, weight, n_inputs)
    elif isinstance(kernel, Scaled):
        yield from _spectral_terms(kernel.kernel, weight * float(kernel.factor.detach()), n_inputs)
    elif isinstance(kernel, ConvexSum):
        for share, part in zip(kernel.weights.detach().tolist(), kernel.kernels, strict=True):
            yield from _spectral_terms(part, weight * share, n_inputs)
    elif isinstance(kernel, Tabular):
        w, half = [weight * share for share in kernel.weights.detach().tolist()], n_inputs // 2
        squashed, ranks = slice(0, half), slice(half, n_inputs)
        yield w[0], "laplace", 0.5, array(kernel.feature_scale()), squashed
        yield w[1], "gaussian", 0.5, array(kernel.smooth_scale()), squashed
        yield w[2], "laplace", 0.5, array(kernel.feature_scale() * kernel.rank_scale), ranks
    elif isinstance(kernel, (Gaussian, Laplace)):
        yield weight, type(kernel).__name__.lower(), 0.5, array(kernel.lengthscale), everything
    elif isinstance(kernel, Matern):
        yield weight, "matern", kernel.nu, array(kernel.lengthscale), everything
    else:
        raise ValueError(
            f"solver='fourier' supports Gaussian, Laplace, Matern, Tabular and sums of them, not "
            f"{type(kernel).__name__}. Use solver='nystroem'."
        )
