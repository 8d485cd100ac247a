"""How large a hyper-RKHS is: effective dimension and covering numbers, the capacity in the theory of [Liu2021]_.

Their rates assume ``log N(B_1, eps) <= C (1/eps)^s``, Eq. (16), with any s > 0 for smooth hyper-kernels, and they
name the effective dimension as another measure of the same. Neither is drawn in the paper. Here both are computed at
the pairs of points of a data set, beside those of a Gaussian kernel at the points themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import minmax_scale

from kernelwright import datasets
from kernelwright.hyperkernels import Gaussian as HyperGaussian
from kernelwright.hyperkernels import Wishart
from kernelwright.kernels import Gaussian
from kernelwright.reports import Picture
from kernelwright.research.experiments.runner import Experiment, Result, Task
from kernelwright.similarity import covering_numbers, effective_dimension

__all__ = ["EXPERIMENT", "curves_of", "pictures", "trial"]

POINTS = 40  # 820 unique pairs
SETS = ("heart", "sonar")
KERNELS = ("kernel, Gaussian", "hyper-kernel, Gaussian", "hyper-kernel, Wishart")
RIDGES = tuple(10.0**-power for power in range(7))
DISTANCES = tuple(10.0 ** (-power / 2) for power in range(1, 7))
DIMENSION, LOWER, UPPER = "dimension at lambda", "lower log covering at eps", "upper log covering at eps"


def matrix_and_weights(name: str, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix of a kernel at points, or of a hyper-kernel at their unique pairs, and what each counts."""
    width = float(np.sqrt(X.var(0).sum()))
    if name == KERNELS[0]:
        return Gaussian(width)(X), np.ones(len(X))
    hyper: Any = HyperGaussian(sigma=width, sigma_h=width) if name == KERNELS[1] else Wishart()
    first, second = np.triu_indices(len(X))
    pairs = X[first], X[second]
    return hyper(pairs, pairs), np.where(first == second, 1.0, 2.0)


def trial(data: str, name: str, number: int) -> dict[str, float]:
    """Compute the curves at random points, for the kernel divided by its mean diagonal."""
    X, _ = datasets.load(data)
    X = minmax_scale(X)[np.random.default_rng(number).permutation(len(X))[:POINTS]]
    K, weights = matrix_and_weights(name, X)
    K = K / np.average(np.diag(K), weights=weights)
    dimension = effective_dimension(K, RIDGES, weights=weights)
    covering = covering_numbers(K, DISTANCES, weights=weights)
    curves = ((DIMENSION, RIDGES, dimension), (LOWER, DISTANCES, covering.lower), (UPPER, DISTANCES, covering.upper))
    return {
        f"{curve} {at:.3g}": value for curve, places, values in curves for at, value in zip(places, values, strict=True)
    }


def tasks(quick: bool) -> list[Task]:
    """List five draws of points for each kernel and data set."""
    return [
        Task(name, data, number, trial, (data, name, number))
        for data in (SETS[:1] if quick else SETS)
        for name in KERNELS
        for number in range(2 if quick else 5)
    ]


def curves_of(results: Sequence[Result], data: str, name: str, curve: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of a curve and its means over the draws."""
    found: dict[float, list[float]] = {}
    for r in results:
        if (r.row, r.column) == (name, data) and r.measure.startswith(curve):
            found.setdefault(float(r.measure.rsplit(" ", 1)[1]), []).append(r.value)
    return np.array(list(found)), np.array([np.mean(values) for values in found.values()])


def pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw effective dimensions against lambda, and the bounds on covering numbers against the distance."""
    from matplotlib.figure import Figure

    found = {r.column for r in results}
    names = [data for data in SETS if data in found]
    figure = Figure(figsize=(9.5, 3.8 * len(names)), layout="constrained")
    for (left, right), data in zip(figure.subplots(len(names), 2, squeeze=False), names, strict=True):
        for number, name in enumerate(KERNELS):
            left.plot(*curves_of(results, data, name, DIMENSION), "o-", color=f"C{number}", label=name)
            eps, lower = curves_of(results, data, name, LOWER)
            upper = curves_of(results, data, name, UPPER)[1]
            right.fill_between(eps, lower, upper, color=f"C{number}", alpha=0.35, label=name)
        left.set(xscale="log", yscale="log", xlabel="lambda", ylabel="effective dimension", title=data)
        right.set(
            xscale="log", yscale="log", xlabel="distance", ylabel="log covering number", title=data, ylim=(0.1, None)
        )
        left.legend()
        right.legend()
    caption = (
        f"Left: effective dimensions at {POINTS} points, or at all their pairs. Right: the logarithm of the covering "
        "number of the unit ball lies in the band. Kernels are divided by their mean diagonal; means over the draws."
    )
    words = "Curves that rise to the left, those of the hyper-kernels above that of the kernel at small lambda."
    return {"liu-dimension": Picture.of(figure, caption, words)}


EXPERIMENT = Experiment(
    name="liu-dimension",
    title="Liu and others (2021), section 4: the size of a hyper-RKHS, effective dimension and covering numbers",
    tasks=tasks,
    protocol=f"{POINTS} points of heart or sonar in [0, 1], all their pairs; widths are the total standard deviation.",
    deviations=("The paper assumes Eq. (16) and draws neither curve.",),
    quick="heart, two draws.",
    pictures=pictures,
)
