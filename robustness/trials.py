"""Shared by the statistical goals and the synthetic tasks: verdicts, repetitions, scores and plain models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from kernelwright import EmbeddingClassifier, datasets
from robustness.tasks import Draw, Table, split

TWO = 2.0  # standard errors that are allowed for chance
NEW_ROWS = 1000


@dataclass(frozen=True)
class Verdict:
    """The result of a task, next to that of a rival."""

    goal: str
    task: str
    value: float
    rival: float
    passed: bool | None  # None: shown, but not judged
    note: str = ""


def spread(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], processes: int) -> list[Any]:
    """Run many calls in several processes, each in one thread; return the results in order."""
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        return joblib.Parallel(n_jobs=processes)(joblib.delayed(_alone)(work, call) for call in calls)


def _alone(work: Callable[..., Any], call: tuple[Any, ...]) -> Any:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numerical repairs, thousands of times
        return work(*call)


def log_loss(model: Any, table: Table) -> float:
    """Return the mean of -log of the probability of the true class; an unseen class has probability zero."""
    P = model.predict_proba(table.X)
    known = np.isin(table.y, model.classes_)
    own = np.zeros(len(table.y))
    own[known] = P[known, np.searchsorted(model.classes_, table.y[known])]
    return float(-np.log(np.clip(own, 1e-15, 1.0)).mean())


def log_loss_of_frequencies(table: Table, new: Table) -> float:
    """Return the log loss of the class frequencies, with one added to each count."""
    counts = np.bincount(table.y, minlength=int(new.y.max()) + 1) + 1.0
    return float(-np.log(counts / counts.sum())[new.y].mean())


def standard_error(values: Sequence[float] | np.ndarray) -> float:
    """Return the standard error of a mean."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def ours(**options: Any) -> EmbeddingClassifier:
    """Make the default classifier."""
    return EmbeddingClassifier(random_state=0, **options)


def line(**options: Any) -> Any:
    """Make logistic regression on standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, **options))


def machine(**options: Any) -> Any:
    """Make a support vector machine on standardised columns."""
    return make_pipeline(StandardScaler(), SVC(**options))


def stored(name: str, seed: int, *, most: int = 600) -> tuple[Table, Table]:
    """Split a data set by class: five ninths for training (heart: 150 of 270), but at most 600 rows."""
    X, y = datasets.load(name)
    rng = np.random.default_rng([seed, 7])
    if name == "robot":  # two of its classes, made rare
        kept = rng.random(len(y)) < np.where(y >= 2, 0.1, 1.0)
        X, y = X[kept], y[kept]
    n = min(round(len(y) * 5 / 9), most)
    rows, new = train_test_split(np.arange(len(y)), train_size=n, stratify=y, random_state=seed)
    return Table(X[rows], y[rows]), Table(X[new], y[new])


def made_up(draw: Draw, n: int, seed: int, *, new: int = NEW_ROWS) -> tuple[Table, Table]:
    """Draw a table of n training rows, and one of new rows."""
    return split(draw(np.random.default_rng([seed, n]), n + new), n)
