"""Figure 3 of [Liu2021]_: a kernel matrix without a formula, extended to new digits.

Protocol: MNIST digit pairs 1-9, 2-7 and 4-6; a data-adaptive kernel matrix (DANK) is learned on 10 to 50 images,
extended to test images by reciprocal nearest neighbours or by hyper-KRR, and used in an SVM. Ten trials.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.svm import SVC

from kernelwright import datasets
from kernelwright.estimators import HyperKernelRidge
from kernelwright.reports import Picture
from kernelwright.research.baselines import DataAdaptiveKernel, HyperKernelAsPrinted
from kernelwright.research.experiments.claims import LIU, NOT_RUN, Claim, Verdict
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["EXPERIMENT", "PAIRS", "SIZES", "trial"]

PAIRS, SIZES = ((1, 9), (2, 7), (4, 6)), (10, 20, 30, 40, 50)
METHODS = ("reciprocal neighbours", "hyper-KRR", "hyper-KRR, library")
N_TEST = 1000
MARGIN = 1.5  # points; the paper says "about two"


def trial(pair: tuple[int, int], n: int, method: str, seed: int) -> dict[str, float]:
    """Compute the test accuracy in percent."""
    X, y = datasets.load("mnist")
    X = X.reshape(len(X), -1) / 255.0
    random = np.random.default_rng(seed)
    train, test = (
        random.permutation(np.flatnonzero(np.isin(y[rows], pair))) for rows in (slice(60_000), slice(60_000, None))
    )
    half = [train[y[train] == digit][: n // 2] for digit in pair]
    train, test = np.concatenate(half), 60_000 + test[:N_TEST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few points
        adaptive = DataAdaptiveKernel().fit(X[train], y[train])
        if method != "reciprocal neighbours":
            learner: Any = HyperKernelAsPrinted if method == "hyper-KRR" else HyperKernelRidge
            learned = learner(random_state=0).fit(X[train], adaptive.matrix_)
            K, K_test = learned.predict(X[train], X[train]), learned.predict(X[test], X[train])
        else:
            K, K_test = adaptive.kernel_(X[train], X[train]), adaptive.kernel_(X[test], X[train])
    machine = SVC(C=10.0, kernel="precomputed").fit(0.5 * (K + K.T), y[train])
    return {"accuracy": 100.0 * float(machine.score(K_test, y[test]))}


def tasks(quick: bool) -> list[Task]:
    """List ten trials for each point of the figure."""
    return [
        Task(f"{a} vs {b}, n = {n}", method, seed, trial, ((a, b), n, method, seed))
        for a, b in (PAIRS[:1] if quick else PAIRS)
        for n in SIZES
        for method in METHODS
        for seed in range(1 if method == "hyper-KRR" else 3 if quick else 10)
    ]


def differences(results: Sequence[Result], sizes: Sequence[int] = SIZES, method: str = "hyper-KRR") -> list[float]:
    """Return the accuracy of a method minus that of reciprocal neighbours, for each trial that has both."""
    found = {(r.row, r.column, r.trial): r.value for r in results}
    rows = {f"{a} vs {b}, n = {n}" for a, b in PAIRS for n in sizes}
    return [
        value - found[row, METHODS[0], number]
        for (row, column, number), value in found.items()
        if column == method and row in rows and (row, METHODS[0], number) in found
    ]


def margin(results: Sequence[Result]) -> Verdict:
    """Judge whether the margin of the paper is reached."""
    found = differences(results)
    if not found:
        return NOT_RUN
    return Verdict(float(np.mean(found)) >= MARGIN, f"{np.mean(found):+.1f} points over {len(found)} trials")


def larger_with_few(results: Sequence[Result]) -> Verdict:
    """Judge whether there is a margin with 10 and 20 images, and it is larger than with 40 and 50."""
    few, many = differences(results, SIZES[:2]), differences(results, SIZES[-2:])
    if not few or not many:
        return NOT_RUN
    said = f"{np.mean(few):+.1f} points with 10 and 20 images, {np.mean(many):+.1f} with 40 and 50"
    return Verdict(float(np.mean(few)) > max(float(np.mean(many)), 0.0), said)


CLAIMS = (
    Claim(f"{LIU}, figure 3", "hyper-KRR is two points ahead of reciprocal neighbours", margin),
    Claim(f"{LIU}, figure 3", "The improvement is largest with few training images", larger_with_few),
)


def pictures(results: Sequence[Result]) -> dict[str, Picture]:
    """Draw accuracy against the number of images, one plot for each pair of digits."""
    from matplotlib.figure import Figure

    pairs = list(dict.fromkeys(r.row.split(",")[0] for r in results))
    figure = Figure(figsize=(4.5 * len(pairs), 3.8), layout="constrained")
    for ax, pair in zip(figure.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
        for method in METHODS:
            values = [[r.value for r in results if (r.row, r.column) == (f"{pair}, n = {n}", method)] for n in SIZES]
            if not all(values):
                continue
            ax.errorbar(
                SIZES, [np.mean(v) for v in values], [np.std(v) for v in values], marker="o", capsize=3, label=method
            )
        ax.set(xlabel="training images", ylabel="test accuracy, %", title=pair)
        ax.legend()
    caption = (
        "A kernel matrix without a formula, extended to test images in two ways: mean and deviation of ten trials."
    )
    return {"liu-figure3": Picture.of(figure, caption, "One plot for each pair of digits: accuracy against images.")}


EXPERIMENT = Experiment(
    name="liu-figure3",
    title="Figure 3 of Liu and others (2021): out-of-sample extension on pairs of MNIST digits",
    tasks=tasks,
    protocol="10 to 50 training images, half of each digit; 1000 test images; ten trials.",
    deviations=(
        "The paper prints curves and a margin of about two points, no numbers.",
        "hyper-KRR is as printed (`HyperKernelAsPrinted`, see table 1), with one trial; library: this library's "
        "default, with ten.",
        "DANK is this library's DataAdaptiveKernel with its defaults; C of the SVM is 10.",
    ),
    quick="1 against 9, three trials.",
    explanations=(
        "The margin is not reproduced: both extensions are level. The matrix is learned by this library's own DANK, "
        "which stays close to the Gaussian kernel that it starts from, and for such a matrix the values at the "
        "nearest neighbour are as good as learned ones. Settings of the published DANK are not printed.",
    ),
    claims=CLAIMS,
    pictures=pictures,
)
