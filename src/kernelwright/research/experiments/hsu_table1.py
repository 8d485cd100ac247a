"""Table 1 of [Hsu2018]_: test accuracy of embeddings whose hyperparameters are learned, on six data sets.

Protocol: every attribute of the whole data set scaled to [0, 1], ten shuffled folds, an anisotropic Gaussian kernel,
all hyperparameters 1 at the start, 1000 full steps of Adam at rate 0.1; networks (CEN) of fully connected layers under
ReLU with biases of 0.1 and truncated normal weights of deviation 0.1. The printed objective (12) has the mean loss;
with it every fit collapses to the class frequencies. With the *sum* (tau = 4e/n on the mean) the published numbers are
reproduced, so the sum is used here. Networks leave alpha out of the complexity.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from sklearn.model_selection import KFold
from sklearn.preprocessing import minmax_scale
from torch import nn

from kernelwright import datasets, learning, networks
from kernelwright.estimators import EmbeddingClassifier, EmbeddingNetworkClassifier
from kernelwright.kernels import Gaussian
from kernelwright.learning import LBFGS, Adam, EmpiricalRisk, Rademacher
from kernelwright.networks.modules import mlp
from kernelwright.research.experiments.claims import HSU, NOT_RUN, Claim, Verdict, mean_of, not_tested
from kernelwright.research.experiments.runner import Experiment, Result, Task, read_published

__all__ = ["EXPERIMENT", "METHODS", "SETS", "as_published", "gaussian", "trial"]

SETS = ("wine", "ecoli", "banknote", "yeast", "segment", "robot")
QUICK_SETS = SETS[:2]
NETWORKS = {"CEN-1": (16, 32, 8), "CEN-2": (96, 32)}
METHODS = ("GMCE", "GMCE-SGD", "CEN-1", "CEN-2", "ERM", "CV", "MED", "default", "default network")
OWN, RIVALS = METHODS[:4], METHODS[4:7]
PRINTED = "GMCE, Eq. (12) as printed"  # 4e times the complexity on the mean of the losses
OTHERS = {"wine": 100.0, "ecoli": 81.1, "banknote": 99.78, "yeast": 55.0, "segment": 96.83, "robot": 97.59}
STEPS = 1000
LBFGS_FROM = 2000  # rows, beyond which 1000 steps of Adam take hours; L-BFGS-B finds the same optimum in some dozen


def gaussian(method: str, n_rows: int, fold: int) -> EmbeddingClassifier:
    """Return one of the methods with a Gaussian kernel, as published."""
    start: dict[str, Any] = {"ridge": 1.0, "random_state": fold, "probability": "clip"}
    kernel = Gaussian(1.0, ard=True)
    if method == "MED":
        return EmbeddingClassifier(Gaussian(1.0), learn="median", **start)
    if method == "CV":
        return EmbeddingClassifier(kernel, learn="cross-validation", **start)
    batch_size = max(n_rows // 10, 2) if method == "GMCE-SGD" else None
    optimizer = LBFGS(60) if batch_size is None and n_rows > LBFGS_FROM else Adam(0.1, max_iter=STEPS)
    steps: dict[str, Any] = {"optimizer": optimizer, "batch_size": batch_size}
    tau = "4e" if method == PRINTED else "4e/n"
    learn = EmpiricalRisk(**steps) if method == "ERM" else Rademacher(tau, **steps)
    return EmbeddingClassifier(kernel, learn=learn, **start)


def as_published(n_inputs: int, hidden: Sequence[int], seed: int) -> EmbeddingNetworkClassifier:
    """Return a network with the published initial weights and settings."""
    generator = torch.Generator().manual_seed(seed)
    module = mlp(n_inputs, hidden, generator=generator)
    for layer in module:
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=0.1, a=-0.2, b=0.2, generator=generator)
            nn.init.constant_(layer.bias, 0.1)
    return EmbeddingNetworkClassifier(
        module,
        learn=learning.Rademacher("4e/n", epsilon=1e-15),
        head=networks.HeadOptions(ridge=1.0, intercept=False, sup="published"),
        training=networks.Training(
            batch_size=10**6,  # full steps
            max_epochs=STEPS,
            learning_rate=0.1,
            schedule=None,
            early_stopping=None,
        ),
        probability="clip",
        random_state=seed,
    )


def trial(name: str, method: str, fold: int) -> dict[str, float]:
    """Compute the test accuracy in percent on one of ten folds."""
    X, y = datasets.load(name)
    train, test = list(KFold(10, shuffle=True, random_state=0).split(X))[fold]
    model: Any
    if method == "default":
        model = EmbeddingClassifier(random_state=fold)
    elif method == "default network":
        model = EmbeddingNetworkClassifier(random_state=fold)
    else:
        X = minmax_scale(X)
        published = method in NETWORKS
        model = as_published(X.shape[1], NETWORKS[method], fold) if published else gaussian(method, len(train), fold)
    return {"accuracy": 100.0 * float(model.fit(X[train], y[train]).score(X[test], y[test]))}


def n_folds(name: str, method: str) -> int:
    """Return how many of the ten folds are run: three if a fold takes many minutes."""
    return 3 if name == "robot" and method in ("GMCE", "ERM", "CV", "default", "default network") else 10


def tasks(quick: bool) -> list[Task]:
    """List all folds of each cell, the slow ones last, and Eq. (12) as printed on the small sets."""
    order = sorted(METHODS, key=lambda method: method in ("GMCE", "ERM"))
    cells = [(name, method) for name in (QUICK_SETS if quick else SETS) for method in order]
    return [
        Task(name, method, fold, trial, (name, method, fold))
        for name, method in cells + [(name, PRINTED) for name in QUICK_SETS]
        for fold in range(3 if quick else n_folds(name, method))
    ]


def _means(results: Sequence[Result], methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the mean accuracies of methods by data set, of those sets that have all of them."""
    found = {name: {method: mean_of(results, name, method) for method in methods} for name in SETS}
    known = {name: {m: v for m, v in cells.items() if v is not None} for name, cells in found.items()}
    return {name: cells for name, cells in known.items() if len(cells) == len(methods)}


def behind(own: Sequence[str], cells: dict[str, dict[str, float]]) -> dict[str, str]:
    """Return the sets on which the best of some methods is 0.1 or more behind a rival, with the best rival."""
    best = {name: max(RIVALS, key=found.__getitem__) for name, found in cells.items()}
    return {
        name: rival
        for name, rival in best.items()
        if max(cells[name][method] for method in own) < cells[name][rival] - 0.1
    }


def outperforms(own: Sequence[str], results: Sequence[Result]) -> Verdict:
    """Judge whether the best of the paper's methods is ahead of the rivals on every set, or less than 0.1 behind."""
    cells = _means(results, (*own, *RIVALS))
    if not cells:
        return NOT_RUN
    printed: dict[str, dict[str, float]] = {name: {} for name in SETS}
    for p in read_published("hsu2018_table1.csv"):
        printed[p.row][p.column] = p.mean
    ours, theirs = behind(own, cells), behind(own, printed)
    said = (
        f"{name}: {max(cells[name][m] for m in own):.1f}, {rival} {cells[name][rival]:.1f}"
        for name, rival in ours.items()
    )
    found = f"behind on {len(ours)} of {len(cells)} sets{''.join('; ' + each for each in said)}"
    return Verdict(not ours, f"{found} (in print: {', '.join(theirs) or 'on none'})")


def like_others(results: Sequence[Result]) -> Verdict:
    """Judge whether the best of the paper's methods is at most two points below the printed ones of others."""
    cells = _means(results, OWN)
    if not cells:
        return NOT_RUN
    gaps = {name: max(found.values()) - OTHERS[name] for name, found in cells.items()}
    return Verdict(min(gaps.values()) >= -2.0, ", ".join(f"{name} {gap:+.1f}" for name, gap in gaps.items()))


def batches_like_whole(results: Sequence[Result]) -> Verdict:
    """Judge whether mini-batches come within two points of full steps, either way."""
    cells = _means(results, ("GMCE", "GMCE-SGD"))
    if not cells:
        return NOT_RUN
    gaps = {name: found["GMCE-SGD"] - found["GMCE"] for name, found in cells.items()}
    found = ", ".join(f"{name} {gap:+.1f}" for name, gap in gaps.items())
    return Verdict(max(abs(gap) for gap in gaps.values()) <= 2.0, found)


def networks_comparable(results: Sequence[Result]) -> Verdict:
    """Judge whether the better network is at most two points below the Gaussian kernel."""
    cells = _means(results, ("GMCE", *NETWORKS))
    if not cells:
        return NOT_RUN
    gaps = {name: max(found[method] for method in NETWORKS) - found["GMCE"] for name, found in cells.items()}
    found = ", ".join(f"{name} {gap:+.1f}" for name, gap in gaps.items())
    return Verdict(min(gaps.values()) >= -2.0, found)


def smaller_multiplier(results: Sequence[Result]) -> Verdict:
    """Judge whether 4e/n in place of 4e improves the accuracy on the small sets."""
    cells = _means(results, ("GMCE", PRINTED))
    if not cells:
        return NOT_RUN
    found = (
        f"{name}: {found[PRINTED]:.1f} % with 4e, {found['GMCE']:.1f} % with 4e/n" for name, found in cells.items()
    )
    return Verdict(all(found["GMCE"] > found[PRINTED] for found in cells.values()), "; ".join(found))


WHERE = f"{HSU}, table 1"
CLAIMS = (
    Claim(
        WHERE,
        "The learning algorithm outperforms other hyperparameter tuning algorithms (its best variant against ERM, CV "
        "and MED, on each set)",
        partial(outperforms, OWN),
    ),
    Claim(
        f"{HSU}, section 1",
        "CMEs generalise better than those learned from cross-validation, ERM and median heuristics (GMCE on each set)",
        partial(outperforms, ("GMCE",)),
    ),
    Claim(
        WHERE, "It performs similarly to competing methods (printed ones of others; points of difference)", like_others
    ),
    Claim(WHERE, "Stochastic gradients perform similarly to full gradients (points of difference)", batches_like_whole),
    Claim(
        WHERE,
        "The same simple network achieves comparable performance (the better CEN against GMCE, points of difference)",
        networks_comparable,
    ),
    Claim(f"{HSU}, section 4.1", "Generalisation can improve with a smaller multiplier than 4e", smaller_multiplier),
    Claim(
        f"{HSU}, section 4.1",
        "A validation batch (13) works well together with a smaller multiplier",
        not_tested("no published number to compare with; `HeldOut` has the objective"),
    ),
    Claim(
        f"{HSU}, section 4.1",
        "The time of a step falls from n^3 to n_b^3 with mini-batches, and to p^3 + n p^2 with p features",
        not_tested("a count of operations"),
    ),
    Claim(
        f"{HSU}, appendix C.3",
        "Learning is usually faster with a linear than with a nonlinear kernel on top of the network",
        not_tested("no experiment with a nonlinear kernel on top"),
    ),
)


EXPERIMENT = Experiment(
    name="hsu-table1",
    title="Table 1 of Hsu, Nock and Ramos (2018): test accuracy in %",
    tasks=tasks,
    published="hsu2018_table1.csv",
    protocol="Attributes scaled to [0, 1] on the whole data set, ten shuffled folds, all hyperparameters 1 at the "
    "start, 1000 steps of Adam at rate 0.1, the sum of the losses.",
    deviations=(
        "The objective has the sum of the losses where Eq. (12) prints the mean (see below).",
        "segment and robot: 60 iterations of L-BFGS-B in place of 1000 steps of Adam for GMCE and ERM.",
        "GMCE-SGD: 1000 steps, each on a tenth of the rows drawn anew; the final embedding is solved on all rows.",
        "CV: a grid over a common length scale and the ridge, five folds; the paper does not print its grid.",
        "The last two columns are this library's defaults on unscaled inputs; they have no published counterpart. The "
        "default network, and the default on segment and robot, were run on 16 November 2026, before the default got a "
        "linear trend, a pool with a logistic line and trees.",
    ),
    quick="wine and ecoli, three folds.",
    published_trials=10,
    claims=CLAIMS,
    explanations=(
        "Sum against mean: with Eq. (12) as printed (mean loss + 4e r) the constant predictor is optimal once tau >= "
        "1 / |pi|, so every fit collapses to the class frequencies (wine 39.9, ecoli 44.9 %). With the sum, wine and "
        "ecoli come out to the digit.",
        "The median straw man: MED is published with lambda = 1; with lambda = 0.01 the same heuristic has 98.9 on "
        "wine and 87.2 on ecoli.",
        "MED, and CV and ERM on ecoli: the published ones were not run on shuffled folds, and MED not with one median "
        "(see the next table, which has the published MED of four sets to the digit).",
        "ERM on yeast and robot is ahead of the published one, and folds vary less. Why is not known: without the "
        "bound the result depends on where the optimiser stops, and the authors' code is in single precision.",
        "CEN-1 on segment and CEN-2 on robot stay behind with all ten folds (93.0 and 92.7 %), so few folds were not"
        " the reason. Eight of the ten other numbers of the networks are within one point of the published ones.",
        "yeast: the bound holds the complexity down too far there; GMCE-SGD and leave-one-out do better in both "
        "columns.",
    ),
)
