"""A list of kernels with their naive formulas, for laws that every kernel must satisfy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

from kernelwright.kernels import (
    Angular,
    Brownian,
    Constant,
    ConvexSum,
    Gaussian,
    Kernel,
    KroneckerDelta,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Product,
    RationalQuadratic,
    Scaled,
    Spectrum,
    Sum,
    Tabular,
)
from kernelwright.parameters import Positive
from tests import reference as naive

N_FEATURES = 4  # even, so that the same points serve the kernel of two views
SCALES = [0.5, 1.0, 2.0, 4.0]
MIXTURE = [0.5, 0.2, 0.3]


class Cosine(Kernel):
    """A user-defined kernel: ``k(x, z) = prod_d cos((x_d - z_d) / period)``."""

    period = Positive()

    def __init__(self, period: float = 1.0) -> None:
        super().__init__()
        self.period = period

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        return torch.cos((X[:, None] - (X if Z is None else Z)) / self.period).prod(-1)


@dataclass(frozen=True)
class Case:
    """A kernel, its naive formula for two points, and the type of its points."""

    id: str
    make: Callable[[], Kernel]
    pair: naive.Pair
    points: str = "vectors"  # or "strings"

    def random_points(self, n: int, seed: int = 0) -> Any:
        rng = np.random.default_rng(seed)
        if self.points == "strings":
            return ["".join(rng.choice(list("ACGT"), rng.integers(4, 12))) for _ in range(n)]
        return rng.normal(size=(n, N_FEATURES))

    def any_points(self) -> st.SearchStrategy[Any]:
        """Generate points, some of them equal."""
        if self.points == "strings":
            return st.lists(st.text("AB", max_size=7), min_size=1, max_size=6)
        shapes = st.tuples(st.integers(1, 4), st.just(N_FEATURES))
        return arrays(np.int64, shapes, elements=st.integers(-400, 400)).map(lambda X: np.vstack([X, X[:1]]) / 100)

    @property
    def learnable(self) -> bool:
        return any(True for _ in self.make().parameters())


def _of(*pairs: naive.Pair) -> Callable[[Callable[..., float]], naive.Pair]:
    """Combine naive kernels by a formula for their values."""
    return lambda formula: lambda x, z: formula(*(pair(x, z) for pair in pairs))


g, la, ma = naive.gaussian(1.5), naive.laplace(2.0), naive.matern(1.2, 1.5)
tab = naive.tabular(SCALES[:2], 1.3, 0.8, MIXTURE)
grouped = naive.tabular([SCALES[0]] * 2, 1.3, 0.8, MIXTURE)
permuted = naive.tabular(SCALES[1::-1], 1.3, 0.8, MIXTURE)

CASES = [
    Case("gaussian", lambda: Gaussian(1.5), g),
    Case("gaussian-vector", lambda: Gaussian(SCALES), naive.gaussian(SCALES)),
    Case("laplace", lambda: Laplace(2.0), la),
    Case("laplace-vector", lambda: Laplace(SCALES), naive.laplace(SCALES)),
    Case("matern-0.5", lambda: Matern(1.2, nu=0.5), naive.matern(1.2, 0.5)),
    Case("matern-1.5", lambda: Matern(1.2, nu=1.5), ma),
    Case("matern-2.5", lambda: Matern(1.2, nu=2.5), naive.matern(1.2, 2.5)),
    Case("matern-2.5-vector", lambda: Matern(SCALES, nu=2.5), naive.matern(SCALES, 2.5)),
    Case("rational-quadratic", lambda: RationalQuadratic(1.5, mixture=0.7), naive.rational_quadratic(1.5, 0.7)),
    Case(
        "rational-quadratic-vector",
        lambda: RationalQuadratic(SCALES, mixture=2.0),
        naive.rational_quadratic(SCALES, 2.0),
    ),
    Case("linear", Linear, naive.linear),
    Case("polynomial", lambda: Polynomial(degree=3, lengthscale=1.5, offset=0.5), naive.polynomial(3, 1.5, 0.5)),
    Case("angular", lambda: Angular(0.7), naive.angular(0.7)),
    Case("brownian", Brownian, naive.brownian(np.zeros(N_FEATURES))),
    Case("brownian-origin", lambda: Brownian([0.5, 0.0, -1.0, 2.0]), naive.brownian([0.5, 0.0, -1.0, 2.0])),
    Case("delta", KroneckerDelta, lambda x, z: float((x == z).all())),
    Case("constant", lambda: Constant(2.5), lambda x, z: 2.5),
    Case("cosine", lambda: Cosine(2.0), lambda x, z: float(np.prod(np.cos((x - z) / 2.0)))),
    Case("tabular", lambda: Tabular(SCALES[:2], 1.3, 0.8, MIXTURE), tab),
    Case("tabular-one-scale", lambda: Tabular(1.7, 1.3, 0.8, MIXTURE), naive.tabular(1.7, 1.3, 0.8, MIXTURE)),
    Case("tabular-grouped", lambda: Tabular(SCALES[:1], 1.3, 0.8, MIXTURE, groups=(0, 0)), grouped),
    Case("tabular-permuted", lambda: Tabular(SCALES[:2], 1.3, 0.8, MIXTURE, groups=(1, 0)), permuted),
    Case("sum", lambda: Sum(Gaussian(1.5), Laplace(2.0)), _of(g, la)(lambda a, b: a + b)),
    Case("product", lambda: Product(Gaussian(1.5), Laplace(2.0)), _of(g, la)(lambda a, b: a * b)),
    Case("scaled", lambda: Scaled(Gaussian(1.5), 3.0), _of(g)(lambda a: 3.0 * a)),
    Case("unbounded-sum", lambda: Gaussian(1.5) + Linear(), _of(g, naive.linear)(lambda a, b: a + b)),
    Case("unbounded-product", lambda: Gaussian(1.5) * Linear(), _of(g, naive.linear)(lambda a, b: a * b)),
    Case("scaled-linear", lambda: 0.25 * Linear(), _of(naive.linear)(lambda a: 0.25 * a)),
    Case(
        "convex-sum",
        lambda: ConvexSum([Gaussian(1.5), Laplace(2.0), Matern(1.2)], MIXTURE),
        _of(g, la, ma)(lambda a, b, c: 0.5 * a + 0.2 * b + 0.3 * c),
    ),
    Case(
        "convex-sum-unbounded",
        lambda: ConvexSum([Linear(), Gaussian(1.5)], [0.25, 0.75]),
        _of(naive.linear, g)(lambda a, b: 0.25 * a + 0.75 * b),
    ),
    Case(
        "nested",
        lambda: (2.0 * Gaussian(1.5) + 3.0) * Laplace(2.0) + Matern(1.2),
        _of(g, la, ma)(lambda a, b, c: (2.0 * a + 3.0) * b + c),
    ),
    Case(
        "nested-scalars",
        lambda: 5.0 + 2.0 * (3.0 * Gaussian(1.5)) * Laplace(2.0),
        _of(g, la)(lambda a, b: 5.0 + 6.0 * a * b),
    ),
    Case(
        "list-sum",
        lambda: sum([Gaussian(1.5), Laplace(2.0), 0.5 * Matern(1.2)]),
        _of(g, la, ma)(lambda a, b, c: a + b + 0.5 * c),
    ),
    Case(
        "convex-sum-of-nested",
        lambda: ConvexSum([Gaussian(1.5) * Laplace(2.0), Matern(1.2) + 0.5], [0.4, 0.6]),
        _of(g, la, ma)(lambda a, b, c: 0.4 * a * b + 0.6 * (c + 0.5)),
    ),
    Case("tabular-nested", lambda: 2.0 * Tabular(SCALES[:2], 1.3, 0.8, MIXTURE) + 0.5, _of(tab)(lambda a: 2 * a + 0.5)),
    Case("spectrum", lambda: Spectrum(k=2), naive.spectrum(2, True), "strings"),
    Case("spectrum-counts", lambda: Spectrum(k=3, normalize=False), naive.spectrum(3, False), "strings"),
    Case(
        "spectrum-mix",
        lambda: 0.5 + ConvexSum([Spectrum(1), Spectrum(2)], [0.4, 0.6]),
        _of(naive.spectrum(1, True), naive.spectrum(2, True))(lambda a, b: 0.5 + 0.4 * a + 0.6 * b),
        "strings",
    ),
]

VECTOR_CASES = [case for case in CASES if case.points == "vectors"]
LEARNABLE_CASES = [case for case in CASES if case.learnable]


def by_id(*ids: str) -> list[Case]:
    found = {case.id: case for case in CASES}
    return [found[id] for id in ids]


def precomputed(n: int, seed: int = 0) -> tuple[Precomputed, Tensor, np.ndarray]:
    """Return a precomputed kernel, its training points and its values."""
    B = np.random.default_rng(seed).normal(size=(n, n + 2))
    kernel = Precomputed()
    return kernel, kernel.encode_training(B @ B.T), B @ B.T


def settable(kernel: Kernel, plain_name: str) -> tuple[Kernel, str]:
    """Return the kernel that owns a dotted name such as ``left.kernel.lengthscale``, and the last part of the name."""
    path, _, leaf = plain_name.rpartition(".")
    return kernel.get_submodule(path), leaf  # type: ignore[return-value]
