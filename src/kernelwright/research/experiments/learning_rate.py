"""Learning rates of learned kernels: the error on new points by the number of points, theorems 7 and 8 of [Liu2021]_.

For a target inside the hyper-RKHS (r = 1) of a smooth hyper-kernel (any s > 0) and ``lambda = m^-alpha``, theorem 8
bounds the error of hyper-KRR in L2 by ``m^(eps - Theta)`` with ``Theta = min(alpha, 1/2)`` for every eps > 0. With
alpha = 1 the error falls at this rate. With alpha = 1/2 and 3/4 it does not: for r = 1 the assumption (15) bounds the
*squared* bias by lambda, which is ``m^(-alpha/2)`` in L2. The printed Theta seems to confuse the norm with its square.

Theorem 7 is for hyper-SVR. Uniform noise has a median of type p = infinity, q = 2, so that theta = 1, and the rate in
L2 is ``m^(-alpha/2)`` with ``epsilon = m^-gamma``, gamma >= alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernelwright.estimators import HyperKernelRidge, HyperKernelSVR
from kernelwright.hyperkernels import Gaussian
from kernelwright.reports import Picture
from kernelwright.research.experiments.claims import LIU, NOT_RUN, Claim, Verdict
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["CASES", "CLAIMS", "EXPECTED", "EXPERIMENT", "Rate", "pictures", "rate_of", "target", "trial"]

EXPECTED = -0.5  # of hyper-KRR with alpha from 1/2 to 1
ALPHAS = (1.0, 0.75, 0.5)
SIZES = (10, 15, 22, 33, 50, 75)
SIGMA = 0.7


@dataclass(frozen=True)
class Rate:
    """Mean errors in L2 for numbers of points, and the exponent of the power law through them."""

    sizes: tuple[int, ...]
    errors: np.ndarray  # a row for each size, a column for each trial
    expected: float = EXPECTED

    @property
    def exponent(self) -> float:
        """The slope of log error against log m."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.errors.mean(1)), 1)[0])

    @property
    def reached(self) -> bool:
        """Whether the error falls at least as fast as in the theorem."""
        return self.exponent <= self.expected


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


def column(method: str, alpha: float) -> str:
    """Return the name of a column."""
    return method if alpha == 1.0 and method == "hyper-KRR" else f"{method}, alpha = {alpha:g}"


def trial(
    m: int, number: int, *, noise: float = 0.3, alpha: float = 1.0, method: str = "hyper-KRR"
) -> dict[str, float]:
    """Learn from noisy values at all pairs of m points, exactly, with ``lambda = m^-alpha`` and projection.

    Noise is normal for hyper-KRR, and uniform with the same deviation for hyper-SVR, where epsilon = 1/m.
    """
    kernel, random = target(), np.random.default_rng(1000 * number + m)
    X, new = random.uniform(-1, 1, (m, 2)), random.uniform(-1, 1, (200, 2))
    if method == "hyper-KRR":
        disturbance = np.triu(random.normal(scale=noise, size=(m, m)))
    else:
        disturbance = np.triu(random.uniform(-1, 1, size=(m, m)) * noise * 3**0.5)
    observed = kernel(X, X) + disturbance + np.triu(disturbance, 1).T
    model = _learner(method, m, alpha).fit(X, observed)
    return {"error": float(np.sqrt(np.mean((model.predict(new) - kernel(new, new)) ** 2)))}


def _learner(method: str, m: int, alpha: float) -> HyperKernelRidge | HyperKernelSVR:
    hyper = Gaussian(sigma=SIGMA, sigma_h=SIGMA)
    if method == "hyper-KRR":
        return HyperKernelRidge(hyper, ridge=f"m^-{alpha}", bias=False, bound="auto", solver="exact")
    # Eq. (11) divides the errors by m^2 and multiplies the squared norm by lambda, Eq. (7) has C and 1/2.
    return HyperKernelSVR(hyper, C=0.5 * m ** (alpha - 2.0), epsilon=1.0 / m, bound="auto", solver="exact")


def tasks(quick: bool) -> list[Task]:
    """List five trials for each number of points; a quick run has two of hyper-KRR at alpha = 1, else one."""
    sizes, trials = (SIZES[:4], 2) if quick else (SIZES, 5)
    return [
        Task(f"m = {m}", column(method, alpha), number, partial(trial, method=method, alpha=alpha), (m, number))
        for number in range(trials)
        for method, alpha in CASES
        for m in sizes
        if number == 0 or not quick or (method, alpha) == CASES[0]
    ]


def rate_of(results: Sequence[Result], name: str = "hyper-KRR", expected: float = EXPECTED) -> Rate:
    """Return the errors of a column by size."""
    errors: dict[int, list[float]] = {}
    for r in results:
        if r.column == name:
            errors.setdefault(int(r.row.split()[-1]), []).append(r.value)
    return Rate(tuple(sorted(errors)), np.array([errors[m] for m in sorted(errors)]), expected)


def rate_judged(method: str, alpha: float, results: Sequence[Result]) -> Verdict:
    """Judge whether the rate of the theorem is reached."""
    rate = rate_of(results, column(method, alpha), promised(method, alpha))
    if len(rate.sizes) < 2:
        return NOT_RUN
    return Verdict(rate.reached, f"the error falls as m^{rate.exponent:.2f}")


def promised(method: str, alpha: float) -> float:
    """Return the exponent of the theorem, for r = 1 and s to 0."""
    return -min(alpha, 0.5) if method == "hyper-KRR" else -alpha / 2


CASES = tuple((method, alpha) for method in ("hyper-KRR", "hyper-SVR") for alpha in ALPHAS)
CLAIMS = tuple(
    Claim(
        f"{LIU}, theorem {8 if method == 'hyper-KRR' else 7}",
        f"{method}: at alpha = {alpha:g} the error falls at least as fast as m^{promised(method, alpha):g}",
        partial(rate_judged, method, alpha),
    )
    for method, alpha in CASES
)


def pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw the errors and the power laws on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for ax, method, theorem in zip(panels, ("hyper-KRR", "hyper-SVR"), (8, 7), strict=True):
        for number, alpha in enumerate(ALPHAS):
            rate = rate_of(results, column(method, alpha), promised(method, alpha))
            if len(rate.sizes) < 2:
                continue
            m, mean, color = np.array(rate.sizes), rate.errors.mean(1), f"C{number}"
            label = f"alpha = {alpha:g}: m^{rate.exponent:.2f}"
            ax.errorbar(m, mean, rate.errors.std(1), fmt="o-", color=color, label=label)
            promise = mean[0] * (m / m[0]) ** rate.expected
            ax.plot(m, promise, "--", color=color, label=f"theorem {theorem}: m^{rate.expected:g}")
        ax.set(xscale="log", yscale="log", xlabel="points m", title=method)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize="small")
    panels[0].set(ylabel="error in L2")
    caption = "Error on new points against the number of points, and the rates of theorems 7 and 8 (dashed)."
    words = (
        "Falling lines for three exponents alpha; those of hyper-KRR with the smaller ones fall slower than promised."
    )
    return {"learning-rate": Picture.of(figure, caption, words)}


EXPERIMENT = Experiment(
    name="learning-rate",
    title="Theorems 7 and 8 of Liu and others (2021): the error of a learned kernel against the number of points",
    tasks=tasks,
    protocol="A kernel of the hyper-RKHS with noise on its values, learned from all pairs of m points, "
    "lambda = m^-alpha (hyper-KRR: alpha = 1).",
    deviations=("The paper has theorems and no experiment. hyper-SVR has a constant, which theorem 7 has not.",),
    quick="Four sizes, two trials or one.",
    claims=CLAIMS,
    pictures=pictures,
)
