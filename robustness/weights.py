"""Goals for row weights: balanced classes, random weights, duplicated rows, and leave-one-out errors."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
from scipy.stats import norm
from sklearn.metrics import balanced_accuracy_score

from robustness import tasks
from robustness.tasks import Draw
from robustness.trials import (
    NEW_ROWS,
    TWO,
    Verdict,
    line,
    log_loss,
    machine,
    made_up,
    ours,
    spread,
    standard_error,
    stored,
)

__all__ = ["balanced", "copies", "effective_size", "left_out"]

STORED = ("heart", "yeast", "ecoli", "fertility", "australian", "wdbc", "segment", "robot")
MINORITIES = {"1 % minority": 0.01, "3 % minority": 0.03}


def balanced(*, thin: bool = False, processes: int = 1) -> list[Verdict]:
    """Require, with class_weight="balanced", a balanced accuracy no worse than of the rivals or without weights."""
    names = [*([] if thin else STORED), *MINORITIES]
    calls = [(name, seed) for name in names for seed in range(2 if thin else 5)]
    found = np.array(spread(_balanced_accuracies, calls, processes)).reshape(len(names), -1, 4).mean(1)
    verdicts = []
    for name, means in zip([*names, "mean of these"], [*found, found.mean(0)], strict=True):
        own, plain, logistic, svc = (float(100 * mean) for mean in means)
        passed = own >= max(plain, logistic, svc) if name == "mean of these" else None
        note = f"not balanced {plain:.1f}, logistic {logistic:.1f}, SVC {svc:.1f}"
        verdicts.append(Verdict("balanced", name, own, max(plain, logistic, svc), passed, note))
    return verdicts


def _balanced_accuracies(name: str, seed: int) -> list[float]:
    if name in MINORITIES:
        table, new = made_up(partial(tasks.minority, share=MINORITIES[name]), 600, seed, new=5000)
    else:
        table, new = stored(name, seed)
    models = [ours(class_weight="balanced"), ours(), line(class_weight="balanced"), machine(class_weight="balanced")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class without new rows
        return [balanced_accuracy_score(new.y, model.fit(table.X, table.y).predict(new.X)) for model in models]


WEIGHTED: dict[str, tuple[Draw, int]] = {
    "noisy line": (tasks.logistic, 150),
    "three clouds": (tasks.blobs, 150),
    "rings, 20 % wrong labels": (tasks.label_noise, 150),
    "xor": (tasks.xor, 100),
    "long tails": (tasks.long_tails, 200),
    "10 % minority": (tasks.unbalanced, 200),
}
WEIGHTED_STORED = ("heart", "australian", "wdbc", "yeast")


def effective_size(*, thin: bool = False, processes: int = 1) -> list[Verdict]:
    """Require that a fit with random weights is as good as one on (sum w)^2 / sum w^2 plain rows."""
    names = [*WEIGHTED, *([] if thin else WEIGHTED_STORED)]
    repetitions = 4 if thin else 20
    calls = [(name, seed) for name in names for seed in range(repetitions)]
    found = np.array(spread(_weighted_losses, calls, processes)).reshape(len(names), repetitions, 3).mean(1)
    return [
        Verdict(
            "effective size",
            name,
            *map(float, means[:2]),
            bool(means[0] <= means[1] + (THIN_SLACK if thin else 0.0)) if name == "mean of these" else None,
            f"plain model of all rows {means[2]:.3f}",
        )
        for name, means in zip([*names, "mean of these"], [*found, found.mean(0)], strict=True)
    ]


def random_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw weights between .1 and 10."""
    return 10 ** rng.uniform(-1, 1, size=n)


def _weighted_losses(name: str, seed: int) -> list[float]:
    """Return log losses of the weighted fit, of a plain fit of the effective size, and of a plain fit of all rows."""
    table, new = made_up(*WEIGHTED[name], seed) if name in WEIGHTED else stored(name, seed, most=300)
    rng = np.random.default_rng([seed, 1])
    w = random_weights(rng, len(table.y))
    rows = _with_all_classes(rng, table.y, round(w.sum() ** 2 / (w**2).sum()))
    return [
        log_loss(ours().fit(table.X, table.y, sample_weight=w), new),
        log_loss(ours().fit(table.X[rows], table.y[rows]), new),
        log_loss(ours().fit(table.X, table.y), new),
    ]


def _with_all_classes(rng: np.random.Generator, y: np.ndarray, n: int) -> np.ndarray:
    """Draw a random subset with all classes; a missing one would make the log loss meaningless."""
    rows = rng.permutation(len(y))
    first = np.unique(y[rows], return_index=True)[1]
    return np.append(rows[first], np.delete(rows, first)[: n - len(first)])


COPIED: dict[str, tuple[Draw, int]] = {name: WEIGHTED[name] for name in list(WEIGHTED)[:4]}
WITHIN = 0.005
THIN_SLACK = 0.003  # of log loss, for the noise of few repetitions


def copies(*, thin: bool = False, processes: int = 1) -> list[Verdict]:
    """Require that duplicated rows, marked by ``groups``, give as good a fit as the table without duplicates."""
    repetitions = 3 if thin else 10
    kinds = {"": 0.0, ", nearly equal copies": 1e-6}
    calls = [(name, size, seed) for size in kinds.values() for name in COPIED for seed in range(repetitions)]
    found = np.array(spread(_doubled_losses, calls, processes)).reshape(-1, repetitions, 2).mean(1)
    names = [name + kind for kind in kinds for name in COPIED]
    return [
        Verdict("copies", name, float(twice), float(once), bool(twice <= once + WITHIN), f"within {WITHIN}")
        for name, (twice, once) in zip(names, found, strict=True)
    ]


def _doubled_losses(name: str, size: float, seed: int) -> list[float]:
    table, new = made_up(*COPIED[name], seed)
    again = table.X + size * np.random.default_rng([seed, 2]).normal(size=table.X.shape)
    X, y, row = np.concatenate([table.X, again]), np.tile(table.y, 2), np.tile(np.arange(len(table.y)), 2)
    return [log_loss(ours().fit(X, y, groups=row), new), log_loss(ours().fit(table.X, table.y), new)]


LEFT_OUT: dict[str, tuple[Draw, int]] = {
    "noisy line": (tasks.logistic, 100),
    "three clouds": (partial(tasks.blobs, apart=0.8), 120),
    "rings, 20 % wrong labels": (tasks.label_noise, 150),
    "20 % minority": (partial(tasks.unbalanced, share=0.2), 100),
    "nothing to learn": (tasks.noise, 60),
}
KINDS = ("plain", "random weights", "balanced")
BETA = 0.05


def left_out(*, thin: bool = False, processes: int = 1) -> list[Verdict]:
    """Require that the leave-one-out error matches the error on new rows, and that its upper limit holds.

    The mean over tasks may be off by two standard errors of 200 repetitions. A single task may be off by more, so that
    all tasks together have the same chance of a false alarm (Bonferroni).
    """
    names = ["noisy line", "nothing to learn"] if thin else list(LEFT_OUT)
    repetitions = 12 if thin else 200
    calls = [(name, kind, seed) for kind in KINDS for name in names for seed in range(repetitions)]
    found = np.array(spread(_left_out_errors, calls, processes)).reshape(len(KINDS), len(names), repetitions, 3)
    several = float(norm.isf(norm.sf(TWO) / len(names)))
    verdicts = []
    for kind, trials in zip(KINDS, found, strict=True):
        means, errors = trials.mean(1), [standard_error(each[:, 0] - each[:, 1]) for each in trials]
        for name, mean, error in zip(names, means, errors, strict=True):
            verdicts.append(_agreement(f"{kind}: {name}", mean, error, several))
        mean_error = math.sqrt(np.square(errors).mean())
        verdicts.append(_agreement(f"{kind}: mean of these", means.mean(0), mean_error, TWO))
        verdicts += [_limit(f"{kind}: {name}", each) for name, each in zip(names, trials, strict=True)]
    return verdicts


def _left_out_errors(name: str, kind: str, seed: int) -> tuple[float, float, float]:
    """Return the leave-one-out error, the error on new rows, and its upper limit (NaN if there is none)."""
    draw, n = LEFT_OUT[name]
    table, new = made_up(draw, n, seed, new=4 * NEW_ROWS)
    w = random_weights(np.random.default_rng([seed, 3]), n) if kind == "random weights" else None
    model = ours(class_weight="balanced" if kind == "balanced" else None).fit(table.X, table.y, sample_weight=w)
    answers = model.predict(new.X)
    # With balanced weights every class counts the same: the weighted error is the mean of the class errors.
    right = balanced_accuracy_score(new.y, answers) if kind == "balanced" else float((answers == new.y).mean())
    found = model.risk_bound("leave-one-out", loss="error", beta=BETA)
    return found.total, 1 - right, getattr(found, "upper", math.nan)


def _agreement(task: str, mean: np.ndarray, error: float, times: float) -> Verdict:
    """Judge whether two means differ by no more than so many standard errors."""
    off = float(mean[0] - mean[1])
    note = f"off by {off:+.4f} = {off / error:+.1f} standard errors, {times:.1f} allowed"
    return Verdict("left out", task, float(mean[0]), float(mean[1]), abs(off) <= times * error, note)


def _limit(task: str, trials: np.ndarray) -> Verdict:
    """Judge whether the upper limit was above the error on new rows as often as promised."""
    _, new, upper = trials.T
    if np.isnan(upper).any():
        return Verdict("upper limit", task, math.nan, 1 - BETA, False, "the record has no field 'upper'")
    held = float((new <= upper).mean())
    slack = TWO * math.sqrt(BETA * (1 - BETA) / len(trials))
    note = f"mean limit {upper.mean():.3f}, mean error {new.mean():.3f}; {slack:.3f} less allowed"
    return Verdict("upper limit", task, held, 1 - BETA, held >= 1 - BETA - slack, note)
