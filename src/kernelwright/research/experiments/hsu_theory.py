"""The theorems of [Hsu2018]_ on a problem whose class probabilities are known.

The input takes six values, on which a Gaussian kernel is characteristic, so that the assumption of theorems 1 and 10
(``k(x, .)`` in the image of ``C_XX``) is true. With ``lambda = n^-1/2`` both promise a rate of at least ``n^-1/4``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from kernelwright.embedding.dual import clip_normalise
from kernelwright.embedding.entropy import clip_entropy, embedding_entropy
from kernelwright.estimators import EmbeddingClassifier
from kernelwright.kernels import Gaussian
from kernelwright.research.experiments.claims import HSU, NOT_RUN, Claim, Verdict
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["EXPERIMENT", "probabilities", "trial"]

SIZES = (50, 200, 800, 3200, 12800)
PLACES = np.linspace(-1.0, 1.0, 6)[:, None]
RATE = -0.25
BETA = 0.05
SIGNS = 50  # draws of Rademacher variables


def probabilities() -> np.ndarray:
    """Return the true probabilities of three classes, a row for each place."""
    x = PLACES[:, 0]
    scores = np.exp(np.column_stack([5.0 * np.sin(3.0 * x), 2.0 * np.cos(2.0 * x), np.zeros_like(x)]))
    return scores / scores.sum(1, keepdims=True)


def trial(n: int, seed: int) -> dict[str, float]:
    """Compute the largest errors over all places of one fit to n rows, its bound, and what the bound is on."""
    random, p = np.random.default_rng(1000 * seed + n), probabilities()
    places = random.integers(len(PLACES), size=n)
    y = np.array([random.choice(3, p=p[place]) for place in places])
    model = EmbeddingClassifier(Gaussian(0.4), learn=None, ridge=n**-0.5, probability="clip").fit(PLACES[places], y)
    f = model.raw_outputs(PLACES)
    outputs = torch.from_numpy(f)
    clipped, entropy = clip_normalise(outputs).numpy(), -(p * np.log(p)).sum(1)
    risk = float((p * -np.log(np.clip(f, math.exp(-1.0), 1.0))).sum(1).mean())
    K = np.exp(-0.5 * ((PLACES - PLACES.T) / 0.4) ** 2)
    signs = random.choice([-1.0, 1.0], size=(SIGNS, n)) @ np.eye(len(PLACES))[places]  # their sum at each place
    noise = np.sqrt(np.einsum("si,ij,sj->s", signs, K, signs)).mean()
    return {
        "error of probabilities": np.abs(f - p).max(),
        "error of their sum": np.abs(f.sum(1) - 1.0).max(),
        "change by clipping": np.abs(clipped - f).max(),
        "classes that clipping changes": float((clipped.argmax(1) != f.argmax(1)).sum()),
        "error of entropy (33)": np.abs(clip_entropy(outputs).numpy() - entropy).max(),
        "error of entropy (37)": np.abs(embedding_entropy(outputs).numpy() - entropy).max(),
        "risk": risk,
        "bound (11)": model.risk_bound(beta=BETA).total,
        "Rademacher complexity over its bound": noise / n,
    }


def tasks(quick: bool) -> list[Task]:
    """List ten trials for each number of rows."""
    sizes, trials = (SIZES[2:], 3) if quick else (SIZES, 10)
    return [Task(f"n = {n}", "MCE", seed, trial, (n, seed)) for n in sizes for seed in range(trials)]


def by_size(results: Sequence[Result], measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of rows, and the mean of a measure at each."""
    sizes = sorted({int(r.row.split()[-1]) for r in results if r.measure == measure})
    means = [np.mean([r.value for r in results if (r.row, r.measure) == (f"n = {n}", measure)]) for n in sizes]
    return np.array(sizes, dtype=float), np.array(means)


def falls(measure: str, rate: float, results: Sequence[Result]) -> Verdict:
    """Judge whether a mean falls with n, at least at a rate."""
    n, means = by_size(results, measure)
    if len(n) < 2:
        return NOT_RUN
    exponent = float(np.polyfit(np.log(n), np.log(means), 1)[0])
    found = f"{means[0]:.3f} at n = {n[0]:.0f}, {means[-1]:.3f} at n = {n[-1]:.0f}: as n^{exponent:.2f}"
    return Verdict(exponent <= rate and bool(means[-1] < means[0]), found)


def values(results: Sequence[Result], measure: str) -> np.ndarray:
    """Return the values of a measure in all trials."""
    return np.array([r.value for r in results if r.measure == measure])


def no_class_changes(results: Sequence[Result]) -> Verdict:
    """Judge whether clipping leaves all predictions as they are."""
    changed = values(results, "classes that clipping changes")
    if not len(changed):
        return NOT_RUN
    return Verdict(not changed.any(), f"{changed.sum():.0f} of {len(changed) * len(PLACES)} predictions change")


def bound_holds(results: Sequence[Result]) -> Verdict:
    """Judge whether the bound fails in at most the share of trials that it may fail in."""
    risk, bound = values(results, "risk"), values(results, "bound (11)")
    if not len(risk):
        return NOT_RUN
    found = (
        f"fails in {(risk > bound).sum()} of {len(risk)} trials; no bound is below {bound.min():.1f}, no loss above 1"
    )
    return Verdict(bool((risk > bound).mean() <= BETA), found)


def complexity_holds(results: Sequence[Result]) -> Verdict:
    """Judge whether the Rademacher complexity is below its bound."""
    ratio = values(results, "Rademacher complexity over its bound")
    if not len(ratio):
        return NOT_RUN
    return Verdict(bool(ratio.max() <= 1.0), f"it is between {ratio.min():.2f} and {ratio.max():.2f} of the bound")


CLAIMS = (
    Claim(
        f"{HSU}, theorem 1",
        "The empirical decision probabilities converge uniformly, at least at the rate (n lambda)^-1/2 + lambda^1/2 "
        "(here n^-1/4)",
        partial(falls, "error of probabilities", RATE),
    ),
    Claim(
        f"{HSU}, section 3",
        "The sum of the probability estimates approaches one with increasing sample size",
        partial(falls, "error of their sum", 0.0),
    ),
    Claim(f"{HSU}, section 3", "Clip-normalising does not change the resulting prediction", no_class_changes),
    Claim(
        f"{HSU}, section 3",
        "Eventually the effect of clip-normalisation vanishes",
        partial(falls, "change by clipping", 0.0),
    ),
    Claim(
        f"{HSU}, theorem 2",
        "The Rademacher complexity of the class is at most 2 alpha rho",
        complexity_holds,
    ),
    Claim(f"{HSU}, theorem 4", "The bound (11) holds with probability 1 - beta (here 0.95)", bound_holds),
    Claim(
        f"{HSU}, appendix A.1",
        "The clip-normalised entropy (33) converges to the true entropy",
        partial(falls, "error of entropy (33)", 0.0),
    ),
    Claim(
        f"{HSU}, theorem 10",
        "The empirical entropy (37) converges at the rate of theorem 1",
        partial(falls, "error of entropy (37)", RATE),
    ),
)

EXPERIMENT = Experiment(
    name="hsu-theory",
    title="Theorems of Hsu, Nock and Ramos (2018) on known class probabilities",
    tasks=tasks,
    protocol="Six inputs, three classes, a Gaussian kernel of length scale 0.4, lambda = n^-1/2.",
    deviations=("The paper has theorems and no experiment.",),
    quick="The three largest sizes, three trials.",
    claims=CLAIMS,
)
