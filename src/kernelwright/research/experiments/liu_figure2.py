"""Figure 2 of [Liu2021]_: how well, and how fast, landmarks and parts approximate a Gaussian hyper-kernel matrix.

Protocol: 108 rows of heart, all their pairs; on each of v parts of the points a Nystroem approximation of the
hyper-kernel matrix from the pairs of M landmarks, averaged over the parts; the error is relative, in the Frobenius
norm.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from sklearn.preprocessing import minmax_scale
from torch import Tensor

from kernelwright import datasets
from kernelwright.hyper.kernels import Gaussian, PointPairs
from kernelwright.numerics.linalg import eigen
from kernelwright.reports import Picture
from kernelwright.research.experiments.claims import LIU, NOT_RUN, Claim, Verdict
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["CLAIMS", "EXPERIMENT", "LANDMARKS", "OWN_PAIRS", "PARTS", "trial"]

LANDMARKS, PARTS = (2, 4, 6, 8, 10, 12), (1, 2, 4, 8)
N_POINTS = 108
QUICK_LANDMARKS = 4  # most of a quick run
FEWEST = 3  # numbers of landmarks, for a judgement
OWN_PAIRS, LIBRARY = ", own pairs", ", library"  # ends of the names of columns


def trial(n_landmarks: int, n_parts: int, seed: int, how: str = "") -> dict[str, float]:
    """Compute the error, the CPU seconds and the number of distinct pairs of landmarks.

    As printed, each part approximates the matrix of all pairs, and the parts are averaged. With ``OWN_PAIRS``, each
    approximates that of its own pairs, as in Algorithm 1.
    """
    X, _ = datasets.load("heart")
    random = np.random.default_rng(seed)
    points = torch.from_numpy(minmax_scale(X)[random.permutation(len(X))[:N_POINTS]])
    kernel = _hyperkernel(points, how)
    parts = np.array_split(random.permutation(N_POINTS), n_parts)
    chosen = [
        points[torch.from_numpy(random.choice(part, min(n_landmarks, len(part)), replace=False))] for part in parts
    ]
    with torch.no_grad():
        if how == OWN_PAIRS:
            gap, size, seconds = _own_pairs(kernel, [points[torch.from_numpy(part)] for part in parts], chosen)
        else:
            gap, size, seconds = _averaged(kernel, points, chosen)
    return {"error": gap / size, "seconds": seconds, "pairs": float(len(_unique_pairs(chosen[0]).left))}


def _hyperkernel(points: Tensor, how: str) -> Gaussian:
    """Return the printed product of Gaussians with the total variance, or this library's default."""
    sigma = float(points.var(0, correction=0).sum()) ** 0.5
    kernel = Gaussian() if how == LIBRARY else Gaussian(sigma=sigma, sigma_h=sigma, form="printed")
    kernel.prepare_(points)
    return kernel


def _averaged(kernel: Gaussian, points: Tensor, landmarks: Sequence[Tensor]) -> tuple[float, float, float]:
    """Return the error and the size of the matrix of all pairs in the Frobenius norm, and CPU seconds."""
    everything = _unique_pairs(points)
    exact = kernel.forward(everything, everything)
    started = time.process_time()
    approximate = sum((_nystroem(kernel, everything, some) for some in landmarks), torch.zeros(())) / len(landmarks)
    seconds = time.process_time() - started
    return float((approximate - exact).norm()), float(exact.norm()), seconds


def _own_pairs(kernel: Gaussian, parts: Sequence[Tensor], landmarks: Sequence[Tensor]) -> tuple[float, float, float]:
    """Return the same for the matrices of each part's own pairs."""
    squares, sizes, seconds = 0.0, 0.0, 0.0
    for part, some in zip(parts, landmarks, strict=True):
        gap, size, spent = _averaged(kernel, part, [some])
        squares, sizes, seconds = squares + gap**2, sizes + size**2, seconds + spent
    return squares**0.5, sizes**0.5, seconds


def _nystroem(kernel: Gaussian, everything: PointPairs, landmarks: Tensor) -> Tensor:
    some = _unique_pairs(landmarks)
    across = kernel.forward(everything, some)
    return across @ _pseudo_inverse(kernel.forward(some, some)) @ across.T


def _unique_pairs(points: Tensor) -> PointPairs:
    first, second = torch.triu_indices(len(points), len(points))
    return PointPairs(points[first], points[second])


def _pseudo_inverse(K: Tensor) -> Tensor:
    values, vectors = eigen(K)
    kept = values > 1e-10 * values.max()
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


def tasks(quick: bool) -> list[Task]:
    """List the points of the figure, three trials of those of the library."""
    return [
        Task(f"M = {M}", f"v = {v}{how}", seed, trial, (M, v, seed, how))
        for how in ("", OWN_PAIRS, LIBRARY)
        for seed in range(3 if how == LIBRARY else 1)
        for M in LANDMARKS
        for v in PARTS
        if not (how == OWN_PAIRS and v == 1) and not (quick and (how == LIBRARY or M > QUICK_LANDMARKS))
    ]


def pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw pairs of landmarks, error and time against the number of landmarks, one curve for each number of parts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    panels = figure.subplots(1, 3)
    at, pairs, _ = curve(results, "v = 1", "pairs")
    panels[0].plot(at, [M**2 for M in at], "s--", label="all pairs")
    panels[0].plot(at, pairs, "o-", label="different pairs")
    panels[0].set(xlabel="landmarks M", ylabel="pairs of landmarks")
    panels[0].legend()
    for ax, measure in zip(panels[1:], ("error", "seconds"), strict=True):
        for number, v in enumerate(PARTS):
            for how, style in (("", "o-"), (OWN_PAIRS, "^:")):
                if curve(results, f"v = {v}{how}", measure)[0]:
                    at, means, spreads = curve(results, f"v = {v}{how}", measure)
                    ax.errorbar(at, means, spreads, fmt=style, color=f"C{number}", capsize=3, label=f"v = {v}{how}")
        label = {"error": "relative error", "seconds": "CPU seconds"}[measure]
        ax.set(xlabel="landmarks M", ylabel=label, yscale="linear" if measure == "error" else "log")
    panels[1].legend(fontsize="small")
    caption = (
        "Approximation of a Gaussian hyper-kernel matrix on 108 rows of heart, one trial. "
        "Dotted: each part on its own pairs."
    )
    words = "Three plots against the landmarks: the pairs rise, the error falls, the time rises."
    return {"liu-figure2": Picture.of(figure, caption, words)}


def curve(results: Sequence[Result], column: str, measure: str) -> tuple[list[int], list[float], list[float]]:
    """Return landmarks, means and deviations of one column."""
    found: dict[int, list[float]] = {}
    for r in results:
        if (r.column, r.measure) == (column, measure):
            found.setdefault(int(r.row.split()[-1]), []).append(r.value)
    at = sorted(found)
    return at, [float(np.mean(found[M])) for M in at], [float(np.std(found[M])) for M in at]


# claims ------------------------------------------------------------------------------------------------


def _by_parts(results: Sequence[Result], measure: str, how: str = "") -> dict[int, list[float]]:
    """Return the means over trials by parts, at the numbers of landmarks that all have: three or more.

    One part has all pairs as its own.
    """
    curves = {v: curve(results, f"v = {v}{how if v > 1 else ''}", measure) for v in PARTS}
    common = set(LANDMARKS).intersection(*(at for at, _, _ in curves.values()))
    if len(common) < FEWEST:
        return {}
    return {v: [mean for M, mean in zip(at, means, strict=True) if M in common] for v, (at, means, _) in curves.items()}


def fewer_pairs(results: Sequence[Result]) -> Verdict:
    """Judge whether M landmarks have M (M + 1) / 2 different pairs in place of M^2."""
    at, pairs, _ = curve(results, "v = 1", "pairs")
    if not at:
        return NOT_RUN
    said = ", ".join(f"{count:.0f} of {M**2} with {M}" for M, count in zip(at, pairs, strict=True))
    return Verdict(all(count == M * (M + 1) / 2 for M, count in zip(at, pairs, strict=True)), said)


def error_falls(results: Sequence[Result]) -> Verdict:
    """Judge whether the error with most landmarks is at most half of that with fewest, for all parts."""
    found = _by_parts(results, "error")
    if not found:
        return NOT_RUN
    said = ", ".join(f"v = {v}: {means[0]:.2f} to {means[-1]:.2f}" for v, means in found.items())
    return Verdict(all(means[-1] <= 0.5 * means[0] for means in found.values()), said)


def no_extra_error(how: str, results: Sequence[Result]) -> Verdict:
    """Judge whether more parts have at most 1.05 times the error of one, in the mean over the landmarks."""
    found = _by_parts(results, "error", how)
    if not found:
        return NOT_RUN
    means = {v: float(np.mean(values)) for v, values in found.items()}
    said = ", ".join(f"v = {v}: {mean:.3f}" for v, mean in means.items())
    return Verdict(all(mean <= 1.05 * means[1] for mean in means.values()), f"mean error {said}")


def less_time(how: str, results: Sequence[Result]) -> Verdict:
    """Judge whether several parts take less time than one, over all numbers of landmarks."""
    found = _by_parts(results, "seconds", how)
    if not found:
        return NOT_RUN
    sums = [sum(values) for values in found.values()]
    said = ", ".join(f"v = {v}: {total:.2f}" for v, total in zip(found, sums, strict=True))
    return Verdict(all(more < sums[0] for more in sums[1:]), f"CPU seconds {said}")


WHERE = f"{LIU}, figure 2"
READINGS = {"": "each part approximates the matrix of all pairs, as printed", OWN_PAIRS: "each its own pairs"}
CLAIMS = (
    Claim(f"{WHERE} (a)", "M landmarks have M (M + 1) / 2 different pairs", fewer_pairs),
    Claim(f"{WHERE} (b)", "As landmarks increase, the error falls dramatically (to half or less)", error_falls),
    *(
        Claim(f"{WHERE} (b)", f"Several parts have no extra error ({reading})", partial(no_extra_error, how))
        for how, reading in READINGS.items()
    ),
    *(
        Claim(f"{WHERE} (c)", f"Several parts take less time than one ({reading})", partial(less_time, how))
        for how, reading in READINGS.items()
    ),
)


EXPERIMENT = Experiment(
    name="liu-figure2",
    title="Figure 2 of Liu and others (2021): Nystroem approximation of a hyper-kernel matrix on heart",
    tasks=tasks,
    protocol="108 rows, M landmarks on each of v parts, ten trials in the paper; error in the Frobenius norm over "
    "different pairs.",
    deviations=(
        "Columns v are as printed: the printed product of Gaussians, sigma^2 the total variance, sigma_h = sigma (the "
        "middle of the grid; there is no target to choose it by).",
        "The text averages the matrices of the parts, which is possible only if each approximates the matrix of all "
        "pairs; its times suggest parts of n pairs of rows. Both are shown: own pairs are those of each part alone.",
        "Library: this library's default hyper-kernel, in wall-clock seconds.",
        "One trial of the ten (library: three, and more of some cells). Sentences are judged at the numbers of "
        "landmarks that all columns have.",
    ),
    quick="Up to four landmarks, and none of the library.",
    claims=CLAIMS,
    pictures=pictures,
)
