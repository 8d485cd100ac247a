"""Table 1 of [Liu2021]_: kernels whose matrix is known, learned as functions: Gaussian, and log (indefinite).

Protocol: 40 % labelled, 40 % unlabelled, 20 % test rows. The kernel matrix of the first 80 % is given; a kernel
function is learned from it; the error is that on test pairs; an SVM with it is trained on the labelled rows.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from kernelwright import datasets
from kernelwright.estimators import HyperKernelRidge, HyperKernelSVR, KreinSVC
from kernelwright.hyperkernels import Gaussian
from kernelwright.numerics.distances import euclidean
from kernelwright.research.experiments.runner import Experiment, Task

__all__ = ["EXPERIMENT", "METHODS", "SETS", "trial"]

SETS = ("fertility", "australian", "wine", "sonar", "heart", "guide1t")
METHODS = ("known", "nonnegative", "hyper-KRR", "hyper-SVR", "default")
KERNELS = ("Gaussian", "log")


def _distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return euclidean(torch.from_numpy(X), torch.from_numpy(Z)).numpy()


def _known(kind: str, X: np.ndarray, Z: np.ndarray, width: float) -> np.ndarray:
    distance = _distances(X, Z)
    return np.exp(-0.5 * (distance / width) ** 2) if kind == "Gaussian" else -np.log1p(distance)


def _learner(method: str) -> Any:
    if method == "hyper-SVR":
        return HyperKernelSVR(Gaussian(), random_state=0)
    if method == "default":
        return HyperKernelRidge(random_state=0)
    return HyperKernelRidge(Gaussian(), nonnegative=method == "nonnegative", random_state=0)


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
            learner = _learner(method).fit(X_train, _known(kind, X_train, X_train, width))
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


def tasks(quick: bool) -> list[Task]:
    """List ten trials (guide1t one, australian three); nonnegative weights cannot fit the negative log kernel."""
    trials = {"guide1t": 1, "australian": 3}
    sets = ("fertility", "wine") if quick else SETS
    return [
        Task(f"{kind}: {name}", method, seed, trial, (kind, name, method, seed))
        for name in sets
        for kind in KERNELS
        for method in METHODS
        if (kind, method) != ("log", "nonnegative")
        for seed in range(2 if quick else trials.get(name, 10))
    ]


EXPERIMENT = Experiment(
    name="liu-table1",
    title="Table 1 of Liu and others (2021): known kernels, learned from their matrix",
    tasks=tasks,
    published="liu2021_table1.csv",
    protocol="40 % labelled, 40 % unlabelled, 20 % test rows, inputs in [0, 1]; error: |k* - k| / |k| on test pairs.",
    deviations=(
        "The width of the known Gaussian kernel is not printed: the median distance between training rows.",
        "australian has three trials and guide1t one: 3200 points have five million pairs.",
        "C of the SVM is chosen by cross-validation.",
    ),
    quick="fertility and wine, two trials.",
    explanations=(
        "Accuracies say little here: all methods follow the known kernel, and differ from it by less than splits do.",
        "fertility has 100 rows, 88 of one class: naming it alone has 88 %. Published accuracies above 93 % on the "
        "unlabelled rows, of the known kernel too, do not come out with a chosen C.",
        "The published errors of the log kernel on fertility (0.005, 0.002) are a hundred times smaller than on all "
        "other sets; with one width ours are 0.07 and 0.14, with the default's eight widths 0.002.",
        "Elsewhere our errors are below the published ones, by a factor of 2 to 137 for hyper-KRR, 1.3 to 10 for "
        "hyper-SVR and 1.7 to 2.6 for nonnegative weights. These are not the paper's numbers: the ridge is chosen by "
        "leaving out points; hyper-KRR and the default refine the fit where that helps at left-out points, which is "
        "not in the paper; and the default adds widths.",
    ),
)
