"""Explicit feature maps: ``z(x)`` with ``<z(x), z(x')>`` equal or close to a kernel.

A map is prepared once on training points (frequencies are drawn, landmarks chosen) and then applies to any. Its
numbers can be learned like a kernel's: pass it as ``EmbeddingClassifier(features=...)``.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor, nn

from kernelwright.kernels import ConvexSum, Gaussian, Kernel, Laplace, Matern, Scaled, Sum, Tabular
from kernelwright.kernels.feature import FeatureMap
from kernelwright.kernels.vector import HasLengthScales, spread_rows, whole_number
from kernelwright.numerics.distances import l1, median_distance_of, squared_euclidean
from kernelwright.numerics.linalg import Factor, eigen, factorise, triangular_solve
from kernelwright.parameters import Positive
from kernelwright.storage.saved import saved

__all__ = ["FeatureMap", "Network", "Nystroem", "Polynomial", "RandomFourier", "fourier_features"]


@saved(
    "random-fourier-features",
    fields="_size kernel ard nu seed median",
    parameters="log_lengthscale",
    buffers="frequencies",
)
class RandomFourier(HasLengthScales, FeatureMap):
    """Random Fourier features [Rahimi2008]_: ``sqrt(2/p) [cos(W x / lengthscale), sin(W x / lengthscale)]``.

    Inner products are unbiased estimates of the kernel, with an error of order ``1/sqrt(p)``. The frequencies W are
    those of unit length scale and stay; the length scales are learned.

    Parameters
    ----------
    n_features : int, default=500
        p, rounded up to an even number.
    kernel : {"gaussian", "laplace", "matern"}, default="gaussian"
        Which kernel is approximated (with ``laplace`` that of the L1 distance).
    lengthscale : float, vector or "median", default=1.0
    ard : bool, default=False
        Learn one length scale for each input.
    nu : float, default=1.5
        Smoothness of "matern".
    seed : int, default=0
        Of the frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.features import RandomFourier
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> features = RandomFourier(2000)
    >>> Z = features(X)
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
        self.forget()

    def forget(self) -> None:
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

    def prepare(self, X: Tensor, weights: Tensor | None = None) -> None:
        if self.median:
            some = spread_rows(len(X))
            distance = l1 if self.kernel == "laplace" else lambda Z: squared_euclidean(Z).sqrt()
            self.lengthscale = median_distance_of(X[some], distance, None if weights is None else weights[some])
        if self.ard and self.log_lengthscale.ndim == 0:
            self.lengthscale = self.lengthscale.detach().expand(X.shape[1])
        if self.frequencies.shape != (self.n_features // 2, X.shape[1]):
            self.frequencies = self._draw(X.shape[1])

    def forward(self, X: Tensor) -> Tensor:
        if self.frequencies.shape[1] != X.shape[1]:
            self.prepare(X.detach())
        phases = (X / self.lengthscale.to(X.dtype)) @ self.frequencies.T.to(X.dtype)
        return torch.cat([phases.cos(), phases.sin()], 1) * math.sqrt(2.0 / self.n_features)


@saved("nystroem-features", fields="kernel n_landmarks landmarks seed", buffers="points root")
class Nystroem(FeatureMap):
    """Nystroem features [Williams2001]_: ``z(x) = L^-1 k(x)``, k(x) the kernel values with landmarks, ``K_MM = L L^T``.

    Inner products equal the kernel wherever one of the two points is a landmark. Of a kernel that may be indefinite,
    such as a learned one, they are those of the flipped one: ``z(x) = |L|^-1/2 U^T k(x)`` with ``K_MM = U L U^T``.

    Parameters
    ----------
    kernel : Kernel, default=Gaussian("median")
        Its numbers are learned; the landmarks stay.
    n_landmarks : int, default=500
    landmarks : {"uniform", "kmeans", "leverage"}, default="uniform"
        Random training points, centres of k-means, or random points drawn by their approximate ridge leverage scores,
        which favours points that others do not explain.
    seed : int, default=0
        Of the choice of landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.features import Nystroem
    >>> from kernelwright.kernels import Gaussian
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> features = Nystroem(Gaussian(), n_landmarks=20)
    >>> Z = features.fit(X)(X)
    >>> bool(np.abs(Z @ Z.T - Gaussian()(X)).max() < 1e-6)
    True
    """

    RULES = ("uniform", "kmeans", "leverage")
    points: Tensor
    root: Tensor

    def __init__(
        self, kernel: Kernel | None = None, n_landmarks: int = 500, landmarks: str = "uniform", seed: int = 0
    ) -> None:
        super().__init__()
        self.kernel = Gaussian("median") if kernel is None else kernel
        self.n_landmarks, self.landmarks, self.seed = whole_number(n_landmarks, "n_landmarks", self), landmarks, seed
        self.forget()

    def forget(self) -> None:
        if self.landmarks not in self.RULES:
            raise ValueError(
                f"The 'landmarks' parameter of Nystroem must be one of {list(self.RULES)}. "
                f"Got {self.landmarks!r} instead."
            )
        self.register_buffer("points", torch.empty(0, 0, dtype=torch.float64))
        self.register_buffer("root", torch.empty(0, 0, dtype=torch.float64))

    @property
    def n_features(self) -> int:
        if len(self.points) and not self.kernel.definite:
            return self.flipped_root.shape[1]
        return len(self.points) or self.n_landmarks

    @property
    def bound(self) -> float | None:
        return float(self.kernel.sup_diag().detach()) if self.kernel.bounded else None

    def fit(self, X: Any) -> Nystroem:
        """Choose the landmarks among the rows of X."""
        self.prepare(self.kernel.encode(X))
        return self

    def prepare(self, X: Tensor, weights: Tensor | None = None) -> None:
        super().prepare(X, weights)  # the kernel
        if not self.kernel.definite:
            self.kernel.requires_grad_(False)  # the flipped features are not differentiated
        if len(self.points) == 0:
            with torch.no_grad():
                self.points = self._choose(X)

    def _choose(self, X: Tensor) -> Tensor:
        size, generator = min(self.n_landmarks, len(X)), torch.Generator().manual_seed(int(self.seed))
        order = torch.randperm(len(X), generator=generator)
        if self.landmarks == "kmeans" and size < len(X):
            means = MiniBatchKMeans(size, random_state=int(self.seed), n_init=1, batch_size=max(1024, 3 * size))
            return torch.from_numpy(means.fit(X[order[: 50 * size]].numpy()).cluster_centers_)
        if self.landmarks == "leverage" and size < len(X):
            scores = self._leverages(X, X[order[:size]])
            return X[torch.multinomial(scores, size, generator=generator).sort().values]
        return X[order[:size].sort().values]

    def _leverages(self, X: Tensor, sample: Tensor) -> Tensor:
        """Ridge leverage scores by a first set of landmarks: what k(x, x) has that they do not explain, and more."""
        noise = len(sample) * 1e-3
        factor = factorise(self.kernel.matrix(sample), noise)
        scores = [
            (self.kernel._diag(block) - (triangular_solve(factor, self.kernel.forward(sample, block)) ** 2).sum(0))
            for block in X.split(4096)
        ]
        return torch.cat(scores).clamp(min=1e-12)

    def forward(self, X: Tensor) -> Tensor:
        if len(self.points) == 0:
            self.prepare(X.detach())
        if not self.kernel.definite:
            return self.kernel.forward(X, self.points) @ self.flipped_root.to(X.dtype)
        return _Whitened.apply(self.kernel.forward(X, self.points), self.kernel.forward(self.points))

    @property
    def flipped_root(self) -> Tensor:
        """``U |L|^-1/2`` without directions that are zero to working precision, made once: such a kernel is fixed."""
        if self.root.numel() == 0:
            values, vectors = eigen(self.kernel.matrix(self.points).double())
            kept = values.abs() > 1e-10 * values.abs().max()
            self.root = vectors[:, kept] / values[kept].abs().sqrt()
        return self.root


class _Whitened(torch.autograd.Function):
    """``Z = K_xM L^-T`` with ``K_MM = L L^T``.

    Backward, with G = dq/dZ: ``dq/dK_xM = G L^-1`` and ``dq/dK_MM = -L^-T tril(G^T Z) L^-1``, made symmetric, where
    tril halves the diagonal.
    """

    JITTER = 1e-10  # of the mean of the diagonal: landmarks may be close to each other

    @staticmethod
    def forward(ctx: Any, K_xM: Tensor, K_MM: Tensor) -> Tensor:
        level = _Whitened.JITTER * float(K_MM.diagonal().mean())
        ctx.factor = factorise(K_MM.detach().double(), level)
        ctx.Z = triangular_solve(ctx.factor, K_xM.detach().double().T).T.contiguous()
        return ctx.Z.to(K_xM)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        factor: Factor = ctx.factor
        G = slopes[0].double()
        half = torch.tril(G.T @ ctx.Z)
        half.diagonal().mul_(0.5)
        inner = triangular_solve(factor, half, transposed=True)  # L^-T half
        d_MM = triangular_solve(factor, inner.T.contiguous(), transposed=True).T  # ... L^-1
        d_xM = triangular_solve(factor, G.T.contiguous(), transposed=True).T
        return d_xM.to(slopes[0]), (-0.5 * (d_MM + d_MM.T)).to(slopes[0])


@saved("concatenated-features", fields="parts weights columns")
class Concatenated(FeatureMap):
    """Several maps side by side: the kernel of their weighted sum. Each sees some of the columns."""

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
    """Random Fourier features of a learned kernel: of Gaussian, Laplace, Matern, Tabular, and sums of them."""
    terms = list(_spectral_terms(kernel, 1.0, n_inputs))
    size = max(2, n_features // len(terms))
    maps: list[FeatureMap] = []
    for number, (_, name, nu, scale, columns) in enumerate(terms):
        maps.append(RandomFourier(size, name, scale, nu=nu, seed=seed + number))
        maps[-1].prepare(torch.empty(0, len(range(*columns.indices(n_inputs))), dtype=torch.float64))
    return Concatenated(maps, [term[0] for term in terms], [term[4] for term in terms])


def _spectral_terms(
    kernel: Kernel, weight: float, n_inputs: int
) -> Iterator[tuple[float, str, float, np.ndarray, slice]]:
    """Weight, kind, smoothness, length scales and columns of each stationary part of a kernel."""

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
        yield w[0], "laplace", 0.5, array(kernel.lengthscale), squashed
        yield w[1], "gaussian", 0.5, array(kernel.smooth_scale()), squashed
        yield w[2], "laplace", 0.5, array(kernel.lengthscale * kernel.rank_scale), ranks
    elif isinstance(kernel, (Gaussian, Laplace)):
        yield weight, type(kernel).__name__.lower(), 0.5, array(kernel.lengthscale), everything
    elif isinstance(kernel, Matern):
        yield weight, "matern", kernel.nu, array(kernel.lengthscale), everything
    else:
        raise ValueError(
            f"solver='fourier' knows the spectra of Gaussian, Laplace, Matern, Tabular and sums of them, not of "
            f"{type(kernel).__name__}. Use solver='nystroem'."
        )


@saved("polynomial-features", fields="degree n_inputs", parameters="log_lengthscale log_offset")
class Polynomial(FeatureMap):
    """All monomials up to a degree, weighted so that inner products are ``(x . z / lengthscale^2 + offset)^degree``.

    There are ``(d + degree)! / (d! degree!)`` of them: for few inputs and a low degree.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.features import Polynomial
    >>> Polynomial(degree=2)(np.array([[3.0]])).round(4)
    array([[1.    , 4.2426, 9.    ]])
    """

    lengthscale = Positive(vectors=False)
    offset = Positive(vectors=False)
    MOST_FEATURES = 20_000

    def __init__(self, degree: int = 2, lengthscale: float = 1.0, offset: float = 1.0) -> None:
        super().__init__()
        self.degree, self.lengthscale, self.offset = whole_number(degree, "degree", self), lengthscale, offset
        self.n_inputs: int | None = None

    @property
    def n_features(self) -> int:
        if self.n_inputs is None:
            raise ValueError("The number of polynomial features is known once the map has seen inputs.")
        return math.comb(self.n_inputs + self.degree, self.degree)

    def prepare(self, X: Tensor, weights: Tensor | None = None) -> None:
        self.n_inputs = X.shape[1]
        if self.n_features > self.MOST_FEATURES:
            raise ValueError(
                f"{self.n_inputs} inputs have {self.n_features} monomials of degree {self.degree}, more than "
                f"{self.MOST_FEATURES}. Use a lower degree, or Nystroem(kernels.Polynomial(...))."
            )

    def forward(self, X: Tensor) -> Tensor:
        self.prepare(X)
        extended = torch.cat([self.offset.sqrt().expand(len(X), 1), X / self.lengthscale], 1)
        factors, scale = _monomials(X.shape[1] + 1, self.degree)
        product = extended[:, factors[:, 0]]
        for column in factors.T[1:]:
            product = product * extended[:, column]
        return product * scale


@cache
def _monomials(n_inputs: int, degree: int) -> tuple[Tensor, Tensor]:
    """Which inputs each monomial multiplies, and the root of its multinomial coefficient."""
    factors = np.array(list(itertools.combinations_with_replacement(range(n_inputs), degree)))
    repeats = np.array([math.prod(math.factorial(c) for c in np.bincount(row)) for row in factors])
    return torch.from_numpy(factors), torch.from_numpy(np.sqrt(math.factorial(degree) / repeats))


@saved("network-features", fields="module _n_features")
class Network(FeatureMap):
    """The outputs of a ``torch.nn.Module`` as features; its weights are learned with the rest, in evaluation mode.

    For training networks at length, with mini-batches and dropout, see
    :class:`kernelwright.EmbeddingNetworkClassifier`.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).double().eval()  # features must not change from call to call
        self._n_features: int | None = None

    @property
    def n_features(self) -> int:
        if self._n_features is None:
            raise ValueError("The number of features of a network is known once it has seen inputs.")
        return self._n_features

    def prepare(self, X: Tensor, weights: Tensor | None = None) -> None:
        with torch.no_grad():
            self._n_features = self.module(X[:2]).shape[1]

    def forward(self, X: Tensor) -> Tensor:
        return self.module(X)
