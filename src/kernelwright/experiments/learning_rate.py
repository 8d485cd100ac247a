"""How fast a kernel is learned: the error on new points against the number of points, after theorem 8 of [Liu2021]_.

For a target inside the hyper-RKHS (r = 1) of a smooth hyper-kernel (any s > 0) and ``lambda = m^-alpha``, the theorem
bounds the error in L2 by ``m^(eps - Theta)`` with ``Theta = min(alpha, 1/2)`` for every eps > 0. With alpha = 1 the
error falls as it says. With alpha = 1/2 it does not: for r = 1 the assumption (15) bounds the *squared* bias by
lambda, which is ``m^(-alpha/2)`` in L2, and that is what is seen (exponents near -.16, -.32 and -.57 for alpha = .5,
.75 and 1). The printed Theta seems to take the square for the norm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.estimators import HyperKernelRidge
from kernelwright.hyperkernels import Gaussian
from kernelwright.reports import Picture

__all__ = ["EXPECTED", "Rate", "picture", "rows_of", "run"]

EXPECTED = -0.5
SIZES = (10, 15, 22, 33, 50, 75)
SIGMA = 0.7


@dataclass(frozen=True)
class Rate:
    """Mean errors in L2 for numbers of points, and the exponent of the power law through them."""

    sizes: tuple[int, ...]
    errors: np.ndarray  # a row for each size, a column for each trial

    @property
    def exponent(self) -> float:
        """Slope of log error against log m."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.errors.mean(1)), 1)[0])

    @property
    def reached(self) -> bool:
        """Whether the error falls at least as fast as the theorem says."""
        return self.exponent <= EXPECTED


def target(seed: int = 0, n_terms: int = 8) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A kernel in the hyper-RKHS: a combination of hyper-kernel functions, with coefficients of both signs."""
    random = np.random.default_rng(seed)
    left, right = random.uniform(-1, 1, (2, n_terms, 2))
    beta = random.choice([-1.0, 1.0], n_terms)
    hyper = Gaussian(sigma=SIGMA, sigma_h=SIGMA)

    def kernel(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        pairs = X.repeat(len(Z), 0), np.tile(Z, (len(X), 1))
        return (hyper(pairs, (left, right)) @ beta).reshape(len(X), len(Z))

    return kernel


def run(
    sizes: Sequence[int] = SIZES,
    *,
    trials: int = 5,
    noise: float = 0.3,
    alpha: float = 1.0,
    progress: Callable[[int], Any] = lambda m: None,
) -> Rate:
    """Learn from noisy values at all pairs of m points, exactly, with ``lambda = m^-alpha`` and projection."""
    kernel, errors = target(), np.zeros((len(sizes), trials))
    for row, m in enumerate(sizes):
        for trial in range(trials):
            random = np.random.default_rng(1000 * trial + m)
            X, new = random.uniform(-1, 1, (m, 2)), random.uniform(-1, 1, (200, 2))
            disturbance = np.triu(random.normal(scale=noise, size=(m, m)))
            observed = kernel(X, X) + disturbance + np.triu(disturbance, 1).T
            model = HyperKernelRidge(
                Gaussian(sigma=SIGMA, sigma_h=SIGMA), ridge=f"m^-{alpha}", bias=False, bound="auto", solver="exact"
            ).fit(X, observed)
            errors[row, trial] = np.sqrt(np.mean((model.predict(new) - kernel(new, new)) ** 2))
        progress(m)
    return Rate(tuple(sizes), errors)


def rows_of(rate: Rate) -> list[dict[str, Any]]:
    """A table: a row for each number of points."""
    return [
        {"points": m, "pairs": m * (m + 1) // 2, "error": f"{row.mean():.4f}", "deviation": f"{row.std():.4f}"}
        for m, row in zip(rate.sizes, rate.errors, strict=True)
    ]


def picture(rate: Rate) -> Picture:
    """Errors and the power laws, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4), layout="constrained")
    ax = figure.subplots()
    m, mean = np.array(rate.sizes), rate.errors.mean(1)
    ax.errorbar(m, mean, rate.errors.std(1), fmt="o", label="error on new points")
    middle = np.exp(np.log(mean).mean()) / np.exp(np.log(m).mean()) ** rate.exponent
    ax.plot(m, middle * m**rate.exponent, label=f"fitted: m^{rate.exponent:.2f}")
    ax.plot(m, mean[0] * (m / m[0]) ** EXPECTED, "--", label=f"theorem 8: m^{EXPECTED}")
    ax.set(
        xscale="log", yscale="log", xlabel="points m", ylabel="error in L2", title="A kernel of the hyper-RKHS, learned"
    )
    ax.legend()
    return Picture.of(
        figure,
        "Error on new points against the number of points, with the power law through it and that of theorem 8.",
        f"A falling line of exponent {rate.exponent:.2f} below a dashed one of exponent {EXPECTED}.",
    )
