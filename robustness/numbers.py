"""Goals for numbers to predict: noise is not learned, and prediction intervals cover, also where noise is large."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV

from kernelwright import EmbeddingRegressor, PredictionIntervals
from robustness.trials import TWO, Verdict, spread, standard_error

__all__ = ["intervals", "noisy_numbers"]

NEW_ROWS = 1000
NOISE_TABLES, SMALL = 180, (15, 30, 60)
MAY_LOSE = 0.02  # of R^2, on average, against the mean of the training rows


def noisy_numbers(*, thin: bool = False, processes: int = 1) -> list[Verdict]:
    """Require that noise costs at most .02 of R^2 against the training mean; show what a weak signal gains."""
    tables = 15 if thin else NOISE_TABLES // 3
    calls = [(kind, n, number) for kind in ("noise", "signal") for n in SMALL for number in range(tables)]
    found = np.array(spread(_gains, calls, processes)).reshape(2, len(SMALL), tables, 2)
    verdicts = []
    for n, (own, rival) in zip(SMALL, found[0].mean(1), strict=True):
        task, note = f"R^2 lost, nothing to learn, n = {n}", f"at most {MAY_LOSE}; rival is ridge regression"
        verdicts.append(Verdict("noise in numbers", task, -own, -rival, -own <= MAY_LOSE, note))
    worst, rival = -found[0].min((0, 1))
    verdicts.append(Verdict("noise in numbers", "largest loss", float(worst), float(rival), None))
    for n, (own, rival) in zip(SMALL, found[1].mean(1), strict=True):
        verdicts.append(Verdict("noise in numbers", f"R^2 gained, a line of slope 0.7, n = {n}", own, rival, None))
    return verdicts


def _gains(kind: str, n: int, number: int) -> tuple[float, float]:
    """Return the gain in R^2 over the training mean, of ours and of ridge regression."""
    rng = np.random.default_rng([number, n])
    X = rng.normal(size=(n + NEW_ROWS, 1 + number % 5))
    noise = rng.normal(size=len(X)) if number % 2 else rng.standard_t(4, len(X))
    y = noise + (0.7 * X[:, 0] if kind == "signal" else 0.0)
    new = y[n:]
    losses = [
        float(np.mean((new - predicted) ** 2))
        for predicted in (
            np.full(NEW_ROWS, y[:n].mean()),
            EmbeddingRegressor(random_state=0).fit(X[:n], y[:n]).predict(X[n:]),
            RidgeCV(np.logspace(-2, 4, 13)).fit(X[:n], y[:n]).predict(X[n:]),
        )
    ]
    return (losses[0] - losses[1]) / float(new.var()), (losses[0] - losses[2]) / float(new.var())


COVERAGE, ROWS, INTERVAL_TABLES = 0.9, 150, 40
METHODS = ("split", "cross", "leave-one-out")


def intervals(*, thin: bool = False, processes: int = 1) -> list[Verdict]:
    """Require the promised coverage of "split" and "cross", for every group if asked; show the rest."""
    tables, methods = (10, METHODS[::2]) if thin else (INTERVAL_TABLES, METHODS)
    verdicts = []
    for method in methods:
        found = np.array(spread(_covered, [(method, number) for number in range(tables)], processes))
        cells = zip(("coverage", "coverage, noisy third", "noisy third, if it is promised"), found.T, strict=True)
        for place, (task, covered) in enumerate(cells):
            mean, slack = float(covered.mean()), TWO * standard_error(covered)
            judged = place != 1 and method != "leave-one-out"
            note = f"{slack:.3f} less allowed" if judged else ""
            passed = mean >= COVERAGE - slack if judged else None
            verdicts.append(Verdict("intervals", f"{method}: {task}", mean, COVERAGE, passed, note))
    return verdicts


def _covered(method: str, number: int) -> list[float]:
    """Return the coverage of all rows, of the noisy third, and of that third by intervals that promise it."""
    rng = np.random.default_rng([number, ROWS])
    X = rng.uniform(-2, 2, (ROWS + NEW_ROWS, 2))
    noisy = X[:, 1] > 2 / 3
    y = np.sin(2 * X[:, 0]) + np.where(noisy, 1.0, 0.2) * rng.standard_t(4, len(X))
    inside = []
    for by in (None, _noisy_third):
        options = {"by": by, "method": method, "n_folds": 5, "random_state": number}
        model = PredictionIntervals(EmbeddingRegressor(random_state=0), COVERAGE, **options).fit(X[:ROWS], y[:ROWS])
        low, high = model.interval(X[ROWS:]).T
        inside.append((low <= y[ROWS:]) & (y[ROWS:] <= high))
    new = noisy[ROWS:]
    return [float(inside[0].mean()), float(inside[0][new].mean()), float(inside[1][new].mean())]


def _noisy_third(X: np.ndarray) -> np.ndarray:
    return X[:, 1] > 2 / 3
