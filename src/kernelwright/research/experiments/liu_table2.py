"""Table 2 of [Liu2021]_: a kernel learned from the ideal kernel y y^T, then an SVM, compared with rival methods.

Protocol: inputs in [0, 1], 40 % of the rows at random to train, the others to test.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from kernelwright import datasets
from kernelwright.estimators import HyperKernelRidge, HyperKernelSVR, KreinSVC, LearnedKernelClassifier
from kernelwright.hyperkernels import Gaussian, Wishart
from kernelwright.research.baselines import (
    AlignmentKernel,
    BayesianMKL,
    HyperKernelAsPrinted,
    IndefiniteMKL,
    RandomFeatureAlignment,
)
from kernelwright.research.experiments.claims import LIU, NOT_RUN, Claim, Verdict, means_together
from kernelwright.research.experiments.runner import Experiment, Result, Task

__all__ = ["CLAIMS", "EXPERIMENT", "METHODS", "SETS"]

SETS = ("fertility", "australian", "wine", "sonar", "heart", "guide1t")
WIDTHS = 2.0 ** np.arange(-5, 6)


def _two_stages(learner: Any) -> LearnedKernelClassifier:
    return LearnedKernelClassifier(learner, scale=None)


def _aligned(learner: Any) -> LearnedKernelClassifier:
    return LearnedKernelClassifier(learner, KreinSVC(C="auto"), scale=None)


NYSTROEM, LIBRARY = ", Nystroem", ", library"  # ends of the names of columns
ON_ALL_PAIRS = ("fertility", "wine", "sonar", "heart")
LANDMARKS = 20
FEWEST_SETS = 3  # for a judgement over sets
N_PAIRS = {"KRR": 100_000, "SVR": 20_000}
RIVALS = {
    "KTA": lambda: _aligned(AlignmentKernel()),
    "BMKL": BayesianMKL,
    "RF": lambda: _aligned(RandomFeatureAlignment(n_features=10_000, random_state=0)),
    "MIKL": IndefiniteMKL,
    "SVM-CV": lambda: GridSearchCV(SVC(), {"C": WIDTHS, "gamma": 1 / (2 * WIDTHS**2)}, cv=5),
}
OWN = {
    f"hyper-{regression} ({hyper})": (regression, hyper)
    for hyper in ("Gaussian", "Wishart")
    for regression in ("KRR", "SVR")
}
METHODS = (*RIVALS, *OWN, *(own + NYSTROEM for own in OWN), *(own + LIBRARY for own in OWN), "default")


def _model(method: str, name: str) -> Any:
    """Return the estimator of a column: a rival, the paper's method as printed, or that of this library."""
    if method in RIVALS:
        return RIVALS[method]()
    if method == "default":
        return _two_stages(None)
    plain = method.removesuffix(LIBRARY).removesuffix(NYSTROEM)
    regression, hyper = OWN[plain]
    if method.endswith(LIBRARY):
        learner: Any = HyperKernelRidge if regression == "KRR" else HyperKernelSVR
        return _two_stages(learner({"Gaussian": Gaussian, "Wishart": Wishart}[hyper](), random_state=0))
    exact = method == plain and name in ON_ALL_PAIRS
    landmarks, n_pairs = (None, None) if exact else (LANDMARKS, N_PAIRS[regression])
    return _two_stages(
        HyperKernelAsPrinted(regression, hyperkernel=hyper, n_landmarks=landmarks, n_pairs=n_pairs, random_state=0)
    )


def trial(name: str, method: str, seed: int) -> dict[str, float]:
    """Compute the test accuracy in percent and the CPU seconds of the fit, for one random split."""
    X, y = datasets.load(name)
    X_train, X_test, y_train, y_test = train_test_split(minmax_scale(X), y, train_size=0.4, random_state=seed)
    model = _model(method, name)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # indefinite kernels warn each time
        model.fit(X_train, y_train)
    seconds = time.process_time() - started
    return {"accuracy": 100.0 * float(model.score(X_test, y_test)), "CPU seconds": seconds}


def n_trials(name: str, method: str) -> int:
    """Return the number of trials of a cell: as many as minutes allow."""
    if method in OWN:
        return {"fertility": 3, "wine": 2, "heart": 2}.get(name, 1)
    if method.endswith(NYSTROEM):
        return 1 if name in ON_ALL_PAIRS else 0
    return 1 if name == "guide1t" else 5


def tasks(quick: bool) -> list[Task]:
    """List first trials first; guide1t has one, which takes as long as all others together."""
    return [
        Task(name, method, seed, trial, (name, method, seed))
        for seed in range(3 if quick else 10)
        for name in (("fertility", "wine", "heart") if quick else SETS)
        for method in METHODS
        if seed < (1 if quick and "hyper" in method and not method.endswith(LIBRARY) else n_trials(name, method))
    ]


# claims ------------------------------------------------------------------------------------------------


def means(results: Sequence[Result], methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return mean accuracies over the same trials by data set; nothing if few data sets have all methods."""
    found = {name: means_together(results, name, methods) for name in SETS}
    complete = {name: cells for name, cells in found.items() if cells}
    return complete if len(complete) >= FEWEST_SETS else {}


def above(rivals: Sequence[str], results: Sequence[Result]) -> Verdict:
    """Judge whether each of the paper's methods is above each of some rivals, in the mean over the sets."""
    cells = means(results, (*OWN, *rivals))
    if not cells:
        return NOT_RUN
    average = {m: float(np.mean([found[m] for found in cells.values()])) for m in (*OWN, *rivals)}
    ahead = sum(max(found[m] for m in OWN) > max(found[r] for r in rivals) for found in cells.values())
    said = ", ".join(f"{method} {mean:.1f}" for method, mean in average.items())
    holds = min(average[method] for method in OWN) > max(average[rival] for rival in rivals)
    return Verdict(holds, f"means over {len(cells)} sets: {said}; the best of four is ahead on {ahead}")


def svr_on_several(results: Sequence[Result]) -> Verdict:
    """Judge whether the better hyper-SVR is at least level with BMKL and MIKL on three sets or more."""
    own, rivals = [method for method, (regression, _) in OWN.items() if regression == "SVR"], ("BMKL", "MIKL")
    cells = means(results, (*own, *rivals))
    if not cells:
        return NOT_RUN
    ahead = [name for name, found in cells.items() if max(found[m] for m in own) >= max(found[r] for r in rivals)]
    return Verdict(len(ahead) >= 3, f"level or ahead on {len(ahead)} of {len(cells)} sets ({', '.join(ahead)})")


def svr_superior(results: Sequence[Result]) -> Verdict:
    """Judge whether hyper-SVR is above hyper-KRR with each hyper-kernel, in the mean over the sets."""
    cells = means(results, tuple(OWN))
    if not cells:
        return NOT_RUN
    average = {m: float(np.mean([found[m] for found in cells.values()])) for m in OWN}
    holds = all(average[f"hyper-SVR ({h})"] > average[f"hyper-KRR ({h})"] for h in ("Gaussian", "Wishart"))
    return Verdict(holds, ", ".join(f"{method} {mean:.1f}" for method, mean in average.items()))


def krr_often_inferior(results: Sequence[Result]) -> Verdict:
    """Judge whether the squared loss is inferior in more than half of the cases."""
    cells = means(results, tuple(OWN))
    if not cells:
        return NOT_RUN
    cases = [
        found[f"hyper-KRR ({hyper})"] < found[f"hyper-SVR ({hyper})"]
        for found in cells.values()
        for hyper in ("Gaussian", "Wishart")
    ]
    return Verdict(2 * sum(cases) > len(cases), f"in {sum(cases)} of {len(cases)} cases")


WHERE = f"{LIU}, table 2"
CLAIMS = (
    Claim(
        WHERE,
        "The hyper methods are above KTA and RF, with noticeable margins (each of the four, mean over the sets)",
        partial(above, ("KTA", "RF")),
    ),
    Claim(WHERE, "hyper-SVR does well against BMKL and MIKL on several sets (three or more)", svr_on_several),
    Claim(WHERE, "hyper-SVR is superior to hyper-KRR as a whole (mean over the sets)", svr_superior),
    Claim(WHERE, "The squared loss is often inferior, whatever the hyper-kernel (more than half)", krr_often_inferior),
)


EXPERIMENT = Experiment(
    name="liu-table2",
    title="Table 2 of Liu and others (2021): kernels learned from the ideal kernel, test accuracy in %",
    tasks=tasks,
    published="liu2021_table2.csv",
    protocol="Inputs in [0, 1]; 40 % of the rows at random to train, the rest to test; the paper has ten trials.",
    deviations=(
        "The four hyper methods are as printed (`HyperKernelAsPrinted`, see table 1): Eqs. (6) and (8) on all pairs on "
        "fertility, wine, sonar and heart, with Nystroem, Eq. (9) with 20 landmarks, beside them; Eq. (9) on the two "
        "larger sets. These are judged. The numbers of the Wishart hyper-kernel are not printed: nu = 4, delta the "
        "total variance.",
        "Library: this library's hyper-kernels (integral form, total variance), a constant, ridge and C by leaving out "
        "points; default: eight widths.",
        "Fewer than ten trials of most cells (see above): guide1t has one, its 1600 training points have 1.3 million "
        "pairs.",
        "C of stage 2 is chosen by cross-validation.",
    ),
    quick="Three small sets, three trials (as printed: one).",
    published_trials=10,
    claims=CLAIMS,
    explanations=(
        "On fertility, naming the larger class alone has 88 %: published means above that and ours below it differ by "
        "one or two rows of sixty.",
        "Some rivals do better here than in print: RF on fertility and guide1t (by 5.8 and 0.5 points), KTA on guide1t "
        "(7.8), both on australian (2.7 and 2.8), MIKL on guide1t (6.1). With KTA and RF, C is chosen, not fixed.",
        "The hyper methods as printed are level with the rivals, not above: the ideal kernel says no more than "
        "labels do. With one trial of most of them, a point of accuracy is within the spread of splits.",
        "BMKL on heart: five trials in place of ten, and its priors are not printed; ours is two points below.",
    ),
)
