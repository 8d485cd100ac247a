"""Learning rates of learned kernels: the error on new points by the number of points, theorem 8 of [Liu2021]_.

For a target inside the hyper-RKHS (r = 1) of a smooth hyper-kernel (any s > 0) and ``lambda = m^-alpha``, the theorem
bounds the error in L2 by ``m^(eps - Theta)`` with ``Theta = min(alpha, 1/2)`` for every eps > 0. With alpha = 1 the
error falls at this rate. With alpha = 1/2 it does not: for r = 1 the assumption (15) bounds the *squared* bias by
lambda, which is ``m^(-alpha/2)`` in L2. This is what is observed (exponents near -.16, -.32 and -.57 for alpha = .5,
.75 and 1). The printed Theta seems to confuse the norm with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelwright.estimators import HyperKernelRidge
from kernelwright.hyperkernels import Gaussian
from kernelwright.reports import Picture
from kernelwright.research.experiments.claims import LIU, Claim, Verdict
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["EXPECTED", "EXPERIMENT", "Rate", "pictures", "rate_of", "target", "trial"]

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
        """The slope of log error against log m."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.errors.mean(1)), 1)[0])

    @property
    def reached(self) -> bool:
        """Whether the error falls at least as fast as in the theorem."""
        return self.exponent <= EXPECTED


def target(seed: int = 0, n_terms: int = 8) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a kernel in the hyper-RKHS: a combination of hyper-kernel functions, with coefficients of both signs."""
    random = np.random.default_rng(seed)
    left, right = random.uniform(-1, 1, (2, n_terms, 2))
    beta = random.choice([-1.0, 1.0], n_terms)
    hyper = Gaussian(sigma=SIGMA, sigma_h=SIGMA)

    def kernel(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        pairs = X.repeat(len(Z), 0), np.tile(Z, (len(X), 1))
        return (hyper(pairs, (left, right)) @ beta).reshape(len(X), len(Z))

    return kernel


def trial(m: int, number: int, *, noise: float = 0.3, alpha: float = 1.0) -> dict[str, float]:
    """Learn from noisy values at all pairs of m points, exactly, with ``lambda = m^-alpha`` and projection."""
    kernel, random = target(), np.random.default_rng(1000 * number + m)
    X, new = random.uniform(-1, 1, (m, 2)), random.uniform(-1, 1, (200, 2))
    disturbance = np.triu(random.normal(scale=noise, size=(m, m)))
    observed = kernel(X, X) + disturbance + np.triu(disturbance, 1).T
    model = HyperKernelRidge(
        Gaussian(sigma=SIGMA, sigma_h=SIGMA), ridge=f"m^-{alpha}", bias=False, bound="auto", solver="exact"
    ).fit(X, observed)
    return {"error": float(np.sqrt(np.mean((model.predict(new) - kernel(new, new)) ** 2)))}


def tasks(quick: bool) -> list[Task]:
    """List five trials for each number of points."""
    sizes, trials = (SIZES[:4], 2) if quick else (SIZES, 5)
    return [Task(f"m = {m}", "hyper-KRR", number, trial, (m, number)) for m in sizes for number in range(trials)]


def rate_of(results: Sequence[Result]) -> Rate:
    """Return the errors of a run by size."""
    errors: dict[int, list[float]] = {}
    for r in results:
        errors.setdefault(int(r.row.split()[-1]), []).append(r.value)
    return Rate(tuple(sorted(errors)), np.array([errors[m] for m in sorted(errors)]))


def rate_judged(results: Sequence[Result]) -> Verdict:
    """Judge whether the rate of the theorem is reached."""
    rate = rate_of(results)
    return Verdict(rate.reached, f"the error falls as m^{rate.exponent:.2f}")


CLAIMS = (Claim(f"{LIU}, theorem 8", f"At alpha = 1 the error falls at least as fast as m^{EXPECTED}", rate_judged),)


def pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw the errors and the power laws on logarithmic axes."""
    from matplotlib.figure import Figure

    rate = rate_of(results)
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
    caption = "Error on new points against the number of points, with the power law through it and that of theorem 8."
    words = f"A falling line of exponent {rate.exponent:.2f} below a dashed one of exponent {EXPECTED}."
    return {"learning-rate": Picture.of(figure, caption, words)}


EXPERIMENT = Experiment(
    name="learning-rate",
    title="Theorem 8 of Liu and others (2021): the error of a learned kernel against the number of points",
    tasks=tasks,
    protocol="A kernel of the hyper-RKHS with noise on its values, learned from all pairs of m points, lambda = 1/m.",
    deviations=("The paper has a theorem (m^-1/2 or faster) and no experiment.",),
    quick="Four sizes, two trials.",
    claims=CLAIMS,
    pictures=pictures,
)
