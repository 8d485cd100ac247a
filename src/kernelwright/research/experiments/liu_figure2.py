"""Figure 2 of [Liu2021]_: how well, and how fast, landmarks and parts approximate a Gaussian hyper-kernel matrix.

Protocol: 108 rows of heart, all their pairs; on each of v parts of the points a Nystroem approximation of the
hyper-kernel matrix from the pairs of M landmarks, averaged over the parts; the error is relative, in the Frobenius
norm.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from sklearn.preprocessing import minmax_scale
from torch import Tensor

from kernelwright import datasets
from kernelwright.hyper.kernels import Gaussian, PointPairs
from kernelwright.numerics.linalg import eigen
from kernelwright.reports import Picture
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["EXPERIMENT", "LANDMARKS", "PARTS", "trial"]

LANDMARKS, PARTS = (2, 4, 6, 8, 10, 12), (1, 2, 4, 8)
N_POINTS = 108


def trial(n_landmarks: int, n_parts: int, seed: int) -> dict[str, float]:
    """Compute the error, the seconds and the number of distinct pairs of landmarks."""
    X, _ = datasets.load("heart")
    random = np.random.default_rng(seed)
    points = torch.from_numpy(minmax_scale(X)[random.permutation(len(X))[:N_POINTS]])
    kernel = Gaussian()
    kernel.prepare_(points)
    a, b = torch.triu_indices(N_POINTS, N_POINTS)
    with torch.no_grad():
        everything = PointPairs(points[a], points[b])
        exact = kernel.forward(everything, everything)
        started = time.perf_counter()
        approximate = torch.zeros_like(exact)
        for part in np.array_split(random.permutation(N_POINTS), n_parts):
            chosen = points[torch.from_numpy(random.choice(part, min(n_landmarks, len(part)), replace=False))]
            c, d = torch.triu_indices(len(chosen), len(chosen))
            some = PointPairs(chosen[c], chosen[d])
            across = kernel.forward(everything, some)
            approximate += across @ _pseudo_inverse(kernel.forward(some, some)) @ across.T / n_parts
        seconds = time.perf_counter() - started
    error = float((approximate - exact).norm() / exact.norm())
    return {"error": error, "seconds": seconds, "pairs": float(len(c))}


def _pseudo_inverse(K: Tensor) -> Tensor:
    values, vectors = eigen(K)
    kept = values > 1e-10 * values.max()
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


def tasks(quick: bool) -> list[Task]:
    """List three trials of each point of the figure."""
    return [
        Task(f"M = {M}", f"v = {v}", seed, trial, (M, v, seed))
        for M in LANDMARKS
        for v in PARTS
        for seed in range(2 if quick else 3)
    ]


def pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw error and time against the number of landmarks, one curve for each number of parts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for ax, measure in zip(figure.subplots(1, 2), ("error", "seconds"), strict=True):
        for v in PARTS:
            at, means, spreads = curve(results, v, measure)
            ax.errorbar(at, means, spreads, marker="o", capsize=3, label=f"v = {v}")
        ax.set(xlabel="landmarks M", ylabel={"error": "relative error"}.get(measure, measure))
        ax.legend()
    caption = (
        "Approximation of a Gaussian hyper-kernel matrix on 108 rows of heart, mean and deviation of three trials."
    )
    return {
        "liu-figure2": Picture.of(figure, caption, "Two plots against the landmarks: the error falls, the time rises.")
    }


def curve(results: Sequence[Result], v: int, measure: str) -> tuple[list[int], list[float], list[float]]:
    """Return landmarks, means and deviations for v parts."""
    found: dict[int, list[float]] = {}
    for r in results:
        if (r.column, r.measure) == (f"v = {v}", measure):
            found.setdefault(int(r.row.split()[-1]), []).append(r.value)
    at = sorted(found)
    return at, [float(np.mean(found[M])) for M in at], [float(np.std(found[M])) for M in at]


EXPERIMENT = Experiment(
    name="liu-figure2",
    title="Figure 2 of Liu and others (2021): Nystroem approximation of a hyper-kernel matrix on heart",
    tasks=tasks,
    protocol="108 rows, M landmarks on each of v parts, ten trials in the paper; error in the Frobenius norm over "
    "different pairs.",
    deviations=(
        "The numbers of the hyper-kernel are this library's defaults; the paper prints curves, no numbers.",
        "Three trials of the ten; with M = 2, ten on one and two parts and four on four (the command runs three).",
    ),
    quick="Two trials.",
    pictures=pictures,
)
