"""Probabilities and prediction sets on twelve data sets, next to a calibrated grid-searched SVC and a random forest.

Out-of-fold probabilities of five stratified folds (of at most 3000 rows) are pooled, as the calibration error of a few
hundred rows is mostly noise.
"""

import warnings

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split

from kernelwright import EmbeddingClassifier, PredictionSets, datasets
from kernelwright.learning import Auto
from kernelwright.research.baselines import GridSearchSVC
from kernelwright.uncertainty.scores import expected_calibration_error
from tools.processes import cpu_seconds

SETS = (
    *("banknote", "ecoli", "robot", "segment", "wine", "yeast"),
    *("fertility", "australian", "sonar", "heart", "digits", "wdbc"),
)
SET_SETS = ("banknote", "segment", "yeast", "australian", "digits", "wdbc")
COVERAGE = 0.9
MOST_ROWS = 3000


METHODS = {
    "kernelwright": lambda: EmbeddingClassifier(random_state=0),
    "SVC, grid, calibrated": GridSearchSVC,  # 5 x 7 grid in five folds, then Platt's sigmoid in five folds
    "random forest": lambda: RandomForestClassifier(500, random_state=0),
}


def without_tiny_classes(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leave out classes of fewer than 5 rows, which five folds cannot share."""
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 5))
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load a data set, at most 3000 rows of it."""
    X, y = without_tiny_classes(*datasets.load(name))
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=0)
    return X, y


def out_of_fold(make: object, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return out-of-fold probabilities and the mean CPU seconds of a fit."""
    p, used = np.zeros((len(y), y.max() + 1)), 0.0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        started = cpu_seconds()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X[train], y[train])
        used += cpu_seconds() - started
        p[np.ix_(test, model.classes_)] = model.predict_proba(X[test])
    return p, used / 5


def rows(quick: bool) -> list[dict[str, object]]:
    """Score the probabilities of each method on each data set, and on average."""
    EmbeddingClassifier(learn=Auto(max_iter=1)).fit(
        *datasets.load("digits")
    )  # load and compile before anything is timed
    found = []
    for name in SETS[:2] if quick else SETS:
        X, y = table(name)
        for method, make in METHODS.items():
            p, seconds = out_of_fold(make, X, y)
            found.append(
                {
                    "data": name,
                    "rows": len(y),
                    "method": method,
                    "accuracy %": 100.0 * float((p.argmax(1) == y).mean()),
                    "log loss": float(-np.log(np.clip(p[np.arange(len(y)), y], 1e-15, 1)).mean()),
                    "calibration error": expected_calibration_error(p, y),
                    "CPU seconds to fit": seconds,
                }
            )
    return found + _means(found)


def _means(found: list[dict[str, object]]) -> list[dict[str, object]]:
    means = []
    for method in METHODS:
        own = [row for row in found if row["method"] == method]
        numbers = {name: float(np.mean([row[name] for row in own])) for name in list(own[0])[3:]}
        means.append({"data": "mean", "rows": "", "method": method, **numbers})
    return means


def set_rows(quick: bool) -> list[dict[str, object]]:
    """Measure coverage and size of prediction sets on new rows: ten random halves of each data set."""
    found = []
    for name in SET_SETS[:1] if quick else SET_SETS:
        X, y = table(name)
        for method in ("leave-one-out", "split"):
            hits, sizes = [], []
            for seed in range(2 if quick else 10):
                parts = train_test_split(X, y, train_size=min(600, len(y) // 2), stratify=y, random_state=seed)
                X_fit, X_new, y_fit, y_new = parts
                classifier = EmbeddingClassifier(learn=Auto(max_iter=10), random_state=seed)
                model = PredictionSets(classifier, COVERAGE, method=method, random_state=seed).fit(X_fit, y_fit)
                sets = model.predict_set(X_new[:1000])
                truth = np.searchsorted(model.classes_, y_new[:1000])
                hits.append(sets[np.arange(len(sets)), truth].mean())
                sizes.append(sets.sum(1).mean())
            found.append(
                {
                    "data": name,
                    "method": method,
                    "coverage": float(np.mean(hits)),
                    "standard error": float(np.std(hits, ddof=1) / np.sqrt(len(hits))),
                    "mean size": float(np.mean(sizes)),
                    "target": COVERAGE,
                }
            )
    return found
