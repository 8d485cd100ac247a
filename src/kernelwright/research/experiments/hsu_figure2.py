"""Figure 2 of [Hsu2018]_, left and bottom: MNIST from pixels.

Protocol: images of 784 pixels in [0, 1], an anisotropic Gaussian kernel learned with and without the complexity term,
10,000 test images; support vector and Gaussian process classifiers one class against all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_selection import f_classif
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from kernelwright import datasets
from kernelwright.estimators import EmbeddingClassifier
from kernelwright.kernels import Gaussian
from kernelwright.learning import LBFGS, Adam, EmpiricalRisk, Rademacher
from kernelwright.reports import Picture
from kernelwright.research.experiments.claims import GOAL, HSU, NOT_RUN, Claim, Verdict, mean_of, not_tested
from kernelwright.research.experiments.runner import Experiment, Result, Task
from kernelwright.solvers import Landmarks

__all__ = ["BY_SIZE", "GROUPS", "PIXELS", "SIZES", "by_pixels", "by_size"]

SIZES = (50, 100, 250, 500, 1000, 2500, 5000)
METHODS = ("with the bound", "without", "SVC", "GPC", "default")
BOUND, NO_BOUND = "with the bound, from ones", "without, from ones"
FROM_ONES = {50: 3, 100: 3, 250: 3, 500: 3, 750: 3, 1000: 3, 2000: 2}  # repetitions by number of images
ONES_STEPS = 300
LEARN: dict[str, Any] = {
    "with the bound": partial(Rademacher, "4e/n"),
    "without": EmpiricalRisk,
    BOUND: partial(Rademacher, "4e/n"),
    NO_BOUND: EmpiricalRisk,
}
GPC_UP_TO = 500  # images: its time grows with the cube, ten times over
GOALS = {500: 90.0, 1000: 93.0, 5000: 96.5}  # percent, of the default, by number of images
CORRELATION = "rank correlation with the F statistic"
GROUPS = ("01", "17", "27", "38", "49", "56", "0123456789")


def images() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Load training and test images in [0, 1], in a random but fixed order."""
    X, y = datasets.load("mnist")
    X = X.reshape(len(X), -1) / 255.0
    order = np.random.default_rng(0).permutation(60_000)
    return X[order], y[order], X[60_000:], y[60_000:]


def model_of(method: str, seed: int) -> Any:
    """Return a classifier of the figure."""
    if method == "SVC":
        return OneVsRestClassifier(SVC())
    if method == "GPC":
        return GaussianProcessClassifier(1.0 * RBF(10.0), random_state=seed)
    if method == "default":
        return EmbeddingClassifier(Gaussian("median"), random_state=seed)
    if method in (BOUND, NO_BOUND):
        learn = LEARN[method](optimizer=Adam(0.1, max_iter=ONES_STEPS))
        kernel = Gaussian(1.0, ard=True)
        return EmbeddingClassifier(kernel, learn=learn, ridge=1.0, random_state=seed, probability="clip")
    learn = LEARN[method](optimizer=LBFGS(max_iter=60))
    return EmbeddingClassifier(Gaussian("median", ard=True), learn=learn, ridge=0.01, random_state=seed)


def by_size(method: str, n: int, seed: int) -> dict[str, float]:
    """Compute the test accuracy in percent with n training images, and the seconds."""
    X, y, X_test, y_test = images()
    chosen = slice(seed * n, (seed + 1) * n)
    started = time.perf_counter()
    model = model_of(method, seed).fit(X[chosen], y[chosen])
    seconds = time.perf_counter() - started
    return {"accuracy": 100.0 * float(model.score(X_test, y_test)), "seconds": seconds}


def size_tasks(quick: bool) -> list[Task]:
    """List three disjoint sets of images for each size (one set for 2500 and more), those from ones last."""
    cells = [
        (method, n, 1 if quick or n >= 2500 else 3)
        for n in (SIZES[:4] if quick else SIZES)
        for method in METHODS
        if method != "GPC" or n <= (100 if quick else GPC_UP_TO)
    ]
    cells += [
        (method, n, trials)
        for n, trials in FROM_ONES.items()
        if not quick
        for method in ("SVC", BOUND, NO_BOUND)
        if method != "SVC" or n not in SIZES
    ]
    return [
        Task(f"n = {n}", method, seed, by_size, (method, n, seed))
        for method, n, trials in cells
        for seed in range(trials)
    ]


def accuracies(results: Sequence[Result], method: str) -> dict[int, float]:
    """Return the mean accuracy of a method by number of images, smallest first."""
    own = [r for r in results if r.column == method and r.measure == "accuracy"]
    by_row = {n: [r.value for r in own if r.row == f"n = {n}"] for n in sorted({*SIZES, *FROM_ONES})}
    return {n: float(np.mean(values)) for n, values in by_row.items() if values}


def goal_judged(n: int, goal: float, results: Sequence[Result]) -> Verdict:
    """Judge whether this library's default reaches a goal."""
    found = mean_of(results, f"n = {n}", "default")
    return NOT_RUN if found is None else Verdict(found >= goal, f"{found:.1f} %")


def _gaps(results: Sequence[Result], method: str, other: str, sizes: range) -> dict[int, float]:
    """Return how far a method is ahead of another on average, on the sets of images that both have, by their size."""
    ours, theirs = (
        {(int(r.row.split()[-1]), r.trial): r.value for r in results if (r.column, r.measure) == (column, "accuracy")}
        for column in (method, other)
    )
    gaps: dict[int, list[float]] = {}
    for n, trial in sorted(ours.keys() & theirs.keys()):
        if n in sizes:
            gaps.setdefault(n, []).append(ours[n, trial] - theirs[n, trial])
    return {n: float(np.mean(found)) for n, found in gaps.items()}


def ahead(method: str, other: str, sizes: range, results: Sequence[Result]) -> Verdict:
    """Judge whether a method is ahead of another at all numbers of images in a range."""
    gaps = _gaps(results, method, other, sizes)
    found = ", ".join(f"{gap:+.1f} at {n}" for n, gap in gaps.items())
    return Verdict(min(gaps.values()) > 0, found) if gaps else NOT_RUN


def overtakes(method: str, other: str, results: Sequence[Result]) -> Verdict:
    """Judge whether a method is ahead of another at the largest number of images that both have."""
    gaps = _gaps(results, method, other, ANY)
    found = ", ".join(f"{gap:+.1f} at {n}" for n, gap in gaps.items())
    return Verdict(gaps[max(gaps)] > 0, found) if gaps else NOT_RUN


ANY, SMALL, LARGE = range(1, 60_001), range(1, 750), range(1000, 60_001)
STARTS = {"start as printed, all ones": (BOUND, NO_BOUND), "start at the median": ("with the bound", "without")}
SIZE_CLAIMS = (
    *(
        Claim(f"{HSU}, figure 2 left", f"{sentence} ({start}; points of difference by n)", partial(judge, *arguments))
        for start, (bound, without) in STARTS.items()
        for sentence, judge, arguments in (
            ("In all cases MCEs outperform SVCs", ahead, (bound, "SVC", ANY)),
            ("MCEs also outperform GPCs as more data becomes available", overtakes, (bound, "GPC")),
            ("For n below 750, learning without the RCB outperforms learning with it", ahead, (without, bound, SMALL)),
            ("For large n, learning with the RCB outperforms learning without it", ahead, (bound, without, LARGE)),
        )
    ),
    Claim(
        f"{HSU}, figure 2 left",
        "For 5000 images, learning takes days for GPCs and hours for MCEs",
        not_tested("on their machine; seconds of ours are in the CSV file"),
    ),
    *(
        Claim(GOAL, f"The default reaches {goal} % from {n} images", partial(goal_judged, n, goal))
        for n, goal in GOALS.items()
    ),
)


def size_pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw accuracy against the number of images."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = figure.subplots()
    for method in (*METHODS, BOUND, NO_BOUND):
        found = accuracies(results, method)
        ax.plot(list(found), list(found.values()), marker="o", label=method, ls="--" if "ones" in method else "-")
    ax.set(xscale="log", xlabel="training images", ylabel="test accuracy, %")
    ax.legend()
    caption = "MNIST from pixels: accuracy on 10,000 test images against the number of training images."
    return {"hsu-figure2-size": Picture.of(figure, caption, "Curves that rise with the number of images.")}


def by_pixels(group: str) -> dict[str, float]:
    """Compute the length scales of all pixels for a group of digits, and the accuracy on their test images."""
    X, y, X_test, y_test = images()
    digits = [int(digit) for digit in group]
    own, own_test = np.isin(y, digits), np.isin(y_test, digits)
    model = EmbeddingClassifier(
        Gaussian("median", ard=True),
        learn=Rademacher("4e/n", optimizer=Adam(0.1, max_iter=60), batch_size=1200),
        solver=Landmarks(1500),
        ridge=0.01,
        random_state=0,
    ).fit(X[own][:6000], y[own][:6000])
    kernel: Any = model.kernel_
    scales = {f"pixel {k}": float(s) for k, s in enumerate(kernel.lengthscale.detach().numpy())}
    found = {"accuracy": 100.0 * float(model.score(X_test[own_test], y_test[own_test]))}
    agreement = relevance_and_difference(np.array(list(scales.values())), X[own][:6000], y[own][:6000])
    return found | {CORRELATION: agreement} | scales


def relevance_and_difference(lengthscales: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Return the rank correlation of 1 / length scale and the F statistic, over the pixels that vary."""
    inked = X.std(0) > 0
    statistic, _ = f_classif(X[:, inked], y)
    return float(spearmanr(1.0 / lengthscales[inked], statistic).statistic)


def pixel_tasks(quick: bool) -> list[Task]:
    """List one task for each group of digits."""
    return [Task(f"digits {group}", "pixels", 0, by_pixels, (group,)) for group in (GROUPS[:1] if quick else GROUPS)]


def relevant_where_different(results: Sequence[Result]) -> Verdict:
    """Judge whether 1 / length scale rises with how far the means of the digits lie apart in a pixel."""
    ranks = {r.row: r.value for r in results if r.measure == CORRELATION}
    found = ", ".join(f"{row.removeprefix('digits ')}: {rank:.2f}" for row, rank in ranks.items())
    return Verdict(min(ranks.values()) > 0, f"rank correlation with the F statistic {found}") if ranks else NOT_RUN


def pixel_pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw one over the length scale of each pixel."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(r.row for r in results))
    figure = Figure(figsize=(2.2 * len(groups), 2.6), layout="constrained")
    for ax, group in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups, strict=True):
        scales = {int(r.measure.split()[1]): r.value for r in results if r.row == group and r.measure[:6] == "pixel "}
        ax.imshow(1.0 / np.array([scales[k] for k in range(784)]).reshape(28, 28), cmap="viridis")
        ax.set(xticks=[], yticks=[], title=group.removeprefix("digits "))
    caption = "One over the learned length scale of each pixel: where the digits of a group differ."
    return {
        "hsu-figure2-pixels": Picture.of(figure, caption, "Images of 28 by 28 pixels, bright where strokes differ.")
    }


BY_SIZE = Experiment(
    name="hsu-figure2-size",
    title="Figure 2 (left) of Hsu, Nock and Ramos (2018): MNIST from pixels, test accuracy in %",
    tasks=size_tasks,
    published="hsu2018_figure2.csv",
    protocol="An anisotropic Gaussian kernel on pixels in [0, 1], learned with and without the complexity term.",
    deviations=(
        'Columns "from ones" start as printed (all hyperparameters 1, Adam 0.1), for 300 steps and up to 2000 images: '
        "a step with 5000 takes seconds. The others start at the median distance and lambda = 0.01, with 60 iterations "
        "of L-BFGS-B and this library's calibration of the outputs. The loss is summed, as in table 1.",
        "The Gaussian process (isotropic, Laplace approximation, one class against all) runs up to 500 images.",
        "SVC is scikit-learn's with its own defaults; the paper gives no settings.",
        "The column of the library's default was run on 16 November 2026, before it got a trend and a logistic line.",
    ),
    quick="Up to 500 images, one set each; the Gaussian process up to 100.",
    explanations=(
        "A start at the median is most of the way: that is why ours are ahead at small n, and why the term matters "
        "less. From ones the printed order is there: without the bound ahead at small n, with it ahead at large n. The "
        "two cross earlier than at the printed 750 images, and both stay below an SVC with its default width.",
    ),
    claims=SIZE_CLAIMS,
    pictures=size_pictures,
)

PIXELS = Experiment(
    name="hsu-figure2-pixels",
    title="Figure 2 (bottom) of Hsu, Nock and Ramos (2018): length scales of pixels for groups of digits",
    tasks=pixel_tasks,
    protocol="An anisotropic Gaussian kernel, mini-batches of 1200 images.",
    deviations=("6000 images of each group and 60 steps; the groups are ours, the paper shows pictures only.",),
    quick="One group.",
    claims=(
        Claim(
            f"{HSU}, figure 2 bottom",
            "The learned pixel length scales demonstrate the most discriminative regions",
            relevant_where_different,
        ),
    ),
    pictures=pixel_pictures,
)
