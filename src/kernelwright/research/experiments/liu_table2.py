"""Table 2 of [Liu2021]_: a kernel learned from the ideal kernel y y^T, then an SVM, compared with rival methods.

Protocol: inputs in [0, 1], 40 % of the rows at random to train, the others to test.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from kernelwright import datasets
from kernelwright.estimators import HyperKernelRidge, HyperKernelSVR, KreinSVC, LearnedKernelClassifier
from kernelwright.hyperkernels import Gaussian, Wishart
from kernelwright.research.baselines import AlignmentKernel, BayesianMKL, IndefiniteMKL, RandomFeatureAlignment
from kernelwright.research.experiments.runner import Experiment, Task

__all__ = ["EXPERIMENT", "METHODS", "SETS"]

SETS = ("fertility", "australian", "wine", "sonar", "heart", "guide1t")
WIDTHS = 2.0 ** np.arange(-5, 6)


def _two_stages(learner: Any) -> LearnedKernelClassifier:
    return LearnedKernelClassifier(learner, scale=None)


def _aligned(learner: Any) -> LearnedKernelClassifier:
    return LearnedKernelClassifier(learner, KreinSVC(C="auto"), scale=None)


METHODS = {
    "KTA": lambda: _aligned(AlignmentKernel()),
    "BMKL": BayesianMKL,
    "RF": lambda: _aligned(RandomFeatureAlignment(n_features=10_000, random_state=0)),
    "MIKL": IndefiniteMKL,
    "SVM-CV": lambda: GridSearchCV(SVC(), {"C": WIDTHS, "gamma": 1 / (2 * WIDTHS**2)}, cv=5),
    "hyper-KRR (Gaussian)": lambda: _two_stages(HyperKernelRidge(Gaussian(), random_state=0)),
    "hyper-SVR (Gaussian)": lambda: _two_stages(HyperKernelSVR(Gaussian(), random_state=0)),
    "hyper-KRR (Wishart)": lambda: _two_stages(HyperKernelRidge(Wishart(), random_state=0)),
    "hyper-SVR (Wishart)": lambda: _two_stages(HyperKernelSVR(Wishart(), random_state=0)),
    "default": lambda: _two_stages(None),
}


def trial(name: str, method: str, seed: int) -> dict[str, float]:
    """Compute the test accuracy in percent and the CPU seconds of the fit, for one random split."""
    X, y = datasets.load(name)
    X_train, X_test, y_train, y_test = train_test_split(minmax_scale(X), y, train_size=0.4, random_state=seed)
    model = METHODS[method]()
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # indefinite kernels warn each time
        model.fit(X_train, y_train)
    seconds = time.process_time() - started
    return {"accuracy": 100.0 * float(model.score(X_test, y_test)), "CPU seconds": seconds}


def tasks(quick: bool) -> list[Task]:
    """List five trials of each cell, but one of guide1t, which takes as long as all others together."""
    chosen = [(name, seed) for name in SETS for seed in range(1 if name == "guide1t" else 5)]
    if quick:
        chosen = [(name, seed) for name, seed in chosen if name in ("fertility", "wine", "heart") and seed < 3]
    return [Task(name, method, seed, trial, (name, method, seed)) for name, seed in chosen for method in METHODS]


EXPERIMENT = Experiment(
    name="liu-table2",
    title="Table 2 of Liu and others (2021): kernels learned from the ideal kernel, test accuracy in %",
    tasks=tasks,
    published="liu2021_table2.csv",
    protocol="Inputs in [0, 1]; 40 % of the rows at random to train, the rest to test; the paper has ten trials.",
    deviations=(
        "Five trials of the ten, all ten on fertility (of which the command runs five); guide1t has one: its 1600 "
        "training points have 1.3 million pairs.",
        "Numbers that the paper does not print (ridge, epsilon, C of stage 2) are chosen by leaving out points.",
    ),
    quick="Three small sets, three trials.",
    explanations=(
        "On fertility, naming the larger class alone has 88 %: published means above that and ours below it differ by "
        "one or two rows of sixty.",
        "Some rivals do better here than in print: RF on fertility and guide1t (by 5.8 and 0.5 points), KTA on guide1t "
        "(7.8), both on australian (2.7 and 2.8), MIKL on guide1t (6.1). With KTA and RF, C is chosen, not fixed.",
        "BMKL on heart: five trials in place of ten, and its priors are not printed; ours is two points below.",
    ),
)
