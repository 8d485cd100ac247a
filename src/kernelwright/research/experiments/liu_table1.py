"""Table 1 of [Liu2021]_: kernels whose matrix is known, learned as functions: Gaussian, and log (indefinite).

Protocol: 40 % labelled, 40 % unlabelled, 20 % test rows. The kernel matrix of the first 80 % is given; a kernel
function is learned from it; the error is that on test pairs; an SVM with it is trained on the labelled rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from kernelwright import datasets
from kernelwright.estimators import HyperKernelRidge, HyperKernelSVR, KreinSVC
from kernelwright.hyperkernels import Gaussian
from kernelwright.numerics.distances import euclidean
from kernelwright.research.baselines import HyperKernelAsPrinted
from kernelwright.research.experiments.claims import LIU, NOT_RUN, Claim, Verdict, means_together
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["CLAIMS", "EXPERIMENT", "SETS", "columns", "trial"]

SETS = ("fertility", "australian", "wine", "sonar", "heart", "guide1t")
NYSTROEM, LIBRARY = ", Nystroem", ", library"  # ends of the names of columns
OWN = ("nonnegative", "hyper-KRR", "hyper-SVR")
KERNELS = ("Gaussian", "log")
ON_ALL_PAIRS = ("fertility",)  # the set on which Eqs. (6) and (8) are solved as printed
LANDMARKS = 20  # 210 pairs of them
N_PAIRS = {"nonnegative": 100_000, "hyper-KRR": 100_000, "hyper-SVR": 20_000}  # that landmarks are fitted to
LONG_RUN = ("known", "default", *(method + LIBRARY for method in OWN))  # columns with two trials in a quick run
SMALL_ERROR = 0.2  # what the judge of a sentence takes for a small error


def _distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return euclidean(torch.from_numpy(X), torch.from_numpy(Z)).numpy()


def _known(kind: str, X: np.ndarray, Z: np.ndarray, width: float) -> np.ndarray:
    distance = _distances(X, Z)
    return np.exp(-0.5 * (distance / width) ** 2) if kind == "Gaussian" else -np.log1p(distance)


def _learner(method: str, name: str) -> Any:
    if method == "default":
        return HyperKernelRidge(random_state=0)
    if method.endswith(LIBRARY):
        plain = method.removesuffix(LIBRARY)
        if plain == "hyper-SVR":
            return HyperKernelSVR(Gaussian(), random_state=0)
        return HyperKernelRidge(Gaussian(), nonnegative=plain == "nonnegative", random_state=0)
    plain = method.removesuffix(NYSTROEM)
    exact = method in ("hyper-KRR", "hyper-SVR") and name in ON_ALL_PAIRS
    return HyperKernelAsPrinted(
        plain.removeprefix("hyper-"),
        n_landmarks=None if exact else LANDMARKS,
        n_pairs=None if exact else N_PAIRS[plain],
        random_state=0,
    )


def trial(kind: str, name: str, method: str, seed: int) -> dict[str, float]:
    """Compute accuracies in percent on unlabelled and test rows, and the relative error on test pairs."""
    X, y = datasets.load(name)
    X = minmax_scale(X)
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.8, random_state=seed)
    n_labelled = len(X_train) // 2
    width = float(np.median(_distances(X_train[:500], X_train[:500])))
    if method == "known":
        train, unlabelled, test = (
            _known(kind, A, X_train[:n_labelled], width) for A in _parts(X_train, X_test, n_labelled)
        )
        error = 0.0
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # indefinite kernels warn each time
            learner = _learner(method, name).fit(X_train, _known(kind, X_train, X_train, width))
        parts = _parts(X_train, X_test, n_labelled)
        train, unlabelled, test = (learner.predict(A, X_train[:n_labelled]) for A in parts)
        truth = _known(kind, X_test, X_test, width)
        error = float(np.linalg.norm(learner.predict(X_test, X_test) - truth) / np.linalg.norm(truth))
    machine = KreinSVC("precomputed", C="auto").fit(0.5 * (train + train.T), y_train[:n_labelled])
    return {
        "accuracy, unlabelled": 100.0 * float(machine.score(unlabelled, y_train[n_labelled:])),
        "accuracy, test": 100.0 * float(machine.score(test, y_test)),
        "error": error,
    }


def _parts(X_train: np.ndarray, X_test: np.ndarray, n_labelled: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X_train[:n_labelled], X_train[n_labelled:], X_test


def columns(kind: str, name: str) -> dict[str, int]:
    """Return the methods of a data set and how many trials each has."""
    slow = {"guide1t": 1, "australian": 3}.get(name, 10)
    printed = {"fertility": 3, "wine": 2}.get(name, 1)
    found = dict.fromkeys(("known", "hyper-KRR" + LIBRARY, "hyper-SVR" + LIBRARY, "default"), slow)
    found |= dict.fromkeys(OWN[1:], printed)
    if name in ON_ALL_PAIRS:
        found |= dict.fromkeys((method + NYSTROEM for method in OWN[1:]), 2)
    if kind == "Gaussian":
        found |= {"nonnegative" + LIBRARY: slow, "nonnegative": printed}
    elif name == "fertility":
        found |= {"nonnegative": 2}
    return found


def tasks(quick: bool) -> list[Task]:
    """List first trials first. Nonnegative weights cannot fit the negative log kernel: it is shown on one set."""
    return [
        Task(f"{kind}: {name}", method, seed, trial, (kind, name, method, seed))
        for seed in range(2 if quick else 10)
        for name in (("fertility", "wine") if quick else SETS)
        for kind in KERNELS
        for method, trials in columns(kind, name).items()
        if seed < (trials if not quick or method in LONG_RUN else 1)
    ]


# claims ------------------------------------------------------------------------------------------------


def _cells(results: Sequence[Result], kind: str, measure: str, methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the means of methods over the same trials by data set, for one kind of kernel."""
    found = {name: means_together(results, f"{kind}: {name}", methods, measure) for name in SETS}
    return {name: cells for name, cells in found.items() if cells}


def best_in(kind: str, measure: str, methods: Sequence[str], results: Sequence[Result]) -> Verdict:
    """Judge whether hyper-SVR is the best of the methods, in the mean over the sets."""
    cells = _cells(results, kind, measure, methods)
    if not cells:
        return NOT_RUN
    means = {method: float(np.mean([found[method] for found in cells.values()])) for method in methods}
    sign = -1.0 if measure == "error" else 1.0
    first = max(methods, key=lambda method: sign * means[method])
    return Verdict(first == "hyper-SVR", _listed(means))


def small_errors(results: Sequence[Result]) -> Verdict:
    """Judge whether both regressions have small errors in every cell."""
    errors = {
        f"{kind}, {name}, {method}": error
        for kind in KERNELS
        for method in OWN[1:]
        for name, cells in _cells(results, kind, "error", (method,)).items()
        for error in cells.values()
    }
    if not errors:
        return NOT_RUN
    large = {cell: error for cell, error in errors.items() if error >= SMALL_ERROR}
    worst = max(errors, key=lambda cell: errors[cell])
    return Verdict(
        not large, f"{SMALL_ERROR} or more in {len(large)} of {len(errors)} cells; most {errors[worst]:.2f} ({worst})"
    )


def not_correlated(results: Sequence[Result]) -> Verdict:
    """Judge whether the method with the smaller error often has the lower accuracy: in a third of the sets or more."""
    wrong, total = 0, 0
    for kind in KERNELS:
        errors = _cells(results, kind, "error", OWN[1:])
        accuracies = _cells(results, kind, "accuracy, test", OWN[1:])
        for name in errors.keys() & accuracies.keys():
            found = errors[name]
            better, other = sorted(OWN[1:], key=lambda method: found[method])
            wrong += accuracies[name][better] <= accuracies[name][other]
            total += 1
    if not total:
        return NOT_RUN
    return Verdict(3 * wrong >= total, f"the smaller error has no higher accuracy in {wrong} of {total} cases")


def nonnegative_fails(results: Sequence[Result]) -> Verdict:
    """Judge whether nonnegative weights leave the log kernel where zero would."""
    errors = [cells["nonnegative"] for cells in _cells(results, "log", "error", ("nonnegative",)).values()]
    if not errors:
        return NOT_RUN
    return Verdict(min(errors) > 0.9, f"errors {min(errors):.2f} to {max(errors):.2f} (naming zero has 1)")


def improves_on_known(results: Sequence[Result]) -> Verdict:
    """Judge whether the better regression has a higher test accuracy than the log kernel, in the mean over sets."""
    cells = _cells(results, "log", "accuracy, test", ("known", *OWN[1:]))
    if not cells:
        return NOT_RUN
    means = {m: float(np.mean([found[m] for found in cells.values()])) for m in ("known", *OWN[1:])}
    return Verdict(max(means[method] for method in OWN[1:]) > means["known"], _listed(means))


def _listed(means: dict[str, float]) -> str:
    digits = 1 if max(means.values()) > 10 else 3
    return ", ".join(f"{method} {mean:.{digits}f}" for method, mean in means.items())


WHERE = f"{LIU}, table 1"
CLAIMS = (
    Claim(
        WHERE,
        f"The regressions accurately fit the given matrix, definite or not, with small errors (below {SMALL_ERROR})",
        small_errors,
    ),
    Claim(
        WHERE,
        "Gaussian kernel: hyper-SVR performs better than the other two on test data (mean over the sets)",
        partial(best_in, "Gaussian", "accuracy, test", OWN),
    ),
    Claim(
        WHERE,
        "Log kernel: hyper-SVR performs best to approximate it (mean error over the sets)",
        partial(best_in, "log", "error", OWN[1:]),
    ),
    Claim(WHERE, "Accuracy and approximation are not well correlated", not_correlated),
    Claim(
        WHERE,
        "The method of Pan and others cannot approximate the log kernel, whose values are negative",
        nonnegative_fails,
    ),
    Claim(WHERE, "Log kernel: the regressions improve the final accuracy (mean over the sets)", improves_on_known),
)


EXPERIMENT = Experiment(
    name="liu-table1",
    title="Table 1 of Liu and others (2021): known kernels, learned from their matrix",
    tasks=tasks,
    published="liu2021_table1.csv",
    protocol="40 % labelled, 40 % unlabelled, 20 % test rows, inputs in [0, 1]; error: |k* - k| / |k| on test pairs.",
    deviations=(
        "hyper-KRR, hyper-SVR and nonnegative are the paper's methods as printed (`HyperKernelAsPrinted`): the printed "
        "product of Gaussians, no constant in hyper-KRR, sigma_h and lambda or C from the printed grids by five folds. "
        "sigma^2, the variance of data, is summed over the features: with that of all entries the error on fertility "
        "is 0.86. These are judged.",
        "On fertility they solve Eqs. (6) and (8) on all pairs, and Nystroem is Eq. (9) beside them. On the others "
        "they are Eq. (9): the matrix of all pairs has 0.8 GB on wine, 186 GB on australian and 210 TB on guide1t. "
        "Nonnegative weights are those of Eq. (9) everywhere.",
        "Eq. (9) has 20 uniform landmarks, fitted to at most 100,000 pairs (hyper-SVR: 20,000); the paper does not say "
        "how it did this table.",
        "sigma_h, lambda and C are chosen on 30 of the points, and hyper-SVR and nonnegative weights take the sigma_h "
        "of hyper-KRR; epsilon is 0.1.",
        "Library: the Gaussian hyper-kernel of this library (integral form, total variance), a constant, a ridge by "
        "leaving out points, hyper-KRR also refined; default: eight widths. Neither is the paper's method.",
        "The width of the known Gaussian kernel is not printed: the median distance between training rows.",
        "C of the SVM is chosen by cross-validation.",
    ),
    quick="fertility and wine, two trials (as printed: one).",
    published_trials=10,
    left_out=dict.fromkeys(OWN, "as printed not run yet; the library's column is not the paper's method"),
    claims=CLAIMS,
    explanations=(
        "Accuracies say little here: all methods follow the known kernel, and differ from it by less than splits do, "
        "but for hyper-KRR as printed on the log kernel, which it does not fit.",
        "fertility has 100 rows, 88 of one class: naming it alone has 88 %. Published accuracies above 93 % on the "
        "unlabelled rows, of the known kernel too, do not come out with a chosen C.",
        "As printed, hyper-KRR has errors of the published size with the Gaussian kernel (0.07 to 0.18; published "
        "0.06 to 0.14), and far larger ones with the log kernel (0.25 to 0.78; published 0.44 to 0.83 but for "
        "fertility): it has no constant, and returns to zero where the log kernel is far below. hyper-SVR has one, "
        "and is better there and than published (0.05 to 0.10; published 0.10 to 0.52).",
        "The published errors of the log kernel on fertility (0.005, 0.002) are a hundred times smaller than on all "
        "other sets, and far from ours in every column but the default.",
        "The library's errors are smaller than the published ones by a factor of 2 to 137 for hyper-KRR, 1.3 to 10 "
        "for hyper-SVR and 1.7 to 2.6 for nonnegative weights, but for the log kernel on fertility. These are not "
        "the paper's numbers: the integral form has the right width, a constant is added, the ridge is chosen by "
        "leaving out points; hyper-KRR and the default also refine the fit where that helps at left-out points; and "
        "the default adds widths.",
    ),
)
