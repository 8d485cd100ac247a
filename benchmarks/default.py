"""The default settings on thirteen data sets: three stratified folds, at most 1000 training rows."""

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from kernelwright import EmbeddingClassifier, datasets
from kernelwright.learning import Auto
from kernelwright.uncertainty.scores import expected_calibration_error
from tools.processes import cpu_seconds

SETS = (
    *("banknote", "ecoli", "robot", "segment", "wine", "yeast", "fertility"),
    *("australian", "sonar", "heart", "guide1t", "digits", "wdbc"),
)


def splits(X: np.ndarray, y: np.ndarray, cap: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split into three stratified folds, with at most ``cap`` training rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    for number, (train, test) in enumerate(folds):
        if len(train) > cap:
            train, _ = train_test_split(train, train_size=cap, stratify=y[train], random_state=number)
        yield train, test


def scores(
    probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray, *, bins: int = 10
) -> tuple[float, float, float]:
    """Return accuracy in percent, log loss and calibration error; a class not seen in training has probability zero."""
    p = np.zeros((len(y), int(max(y.max(), classes.max())) + 1))
    p[:, classes] = probabilities
    log_loss = -np.log(np.clip(p[np.arange(len(y)), y], 1e-15, 1)).mean()
    return 100.0 * (p.argmax(1) == y).mean(), log_loss, expected_calibration_error(p, y, bins)


def rows(quick: bool) -> list[dict[str, object]]:
    """Score the default on each data set, and on average."""
    EmbeddingClassifier(learn=Auto(max_iter=1)).fit(
        *datasets.load("digits")
    )  # load and compile before anything is timed
    table = []
    for name in SETS[:4] if quick else SETS:
        X, y = datasets.load(name)
        found = []
        for train, test in splits(X, y, 1000):
            started = cpu_seconds()
            model = EmbeddingClassifier(random_state=0).fit(X[train], y[train])
            seconds = cpu_seconds() - started
            found.append((*scores(model.predict_proba(X[test]), model.classes_, y[test]), seconds))
        table.append(_row(name, np.mean(found, axis=0)))
    numbers = np.array([list(row.values())[1:] for row in table], dtype=float)
    return [*table, _row("mean", numbers.mean(0))]


def _row(name: str, values: np.ndarray) -> dict[str, object]:
    columns = ("accuracy %", "log loss", "calibration error", "CPU seconds to fit")
    return {"data": name, **{column: float(value) for column, value in zip(columns, values, strict=True)}}
