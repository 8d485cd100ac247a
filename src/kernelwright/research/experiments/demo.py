"""The demo: three data sets of scikit-learn, three classifiers, one split each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from kernelwright import datasets
from kernelwright.estimators import EmbeddingClassifier
from kernelwright.reports import DecisionProbabilityDisplay, LearningCurveDisplay, Picture
from kernelwright.research.baselines import GridSearchSVC
from kernelwright.uncertainty.scores import expected_calibration_error

__all__ = ["TASKS", "DemoResult", "DemoTask", "pictures", "rows_of"]


@dataclass(frozen=True)
class DemoScore:
    """The scores of one method on one split."""

    method: str
    accuracy: float
    log_loss: float
    calibration_error: float
    seconds: float
    complexity: float | None = None
    risk_bound: float | None = None


@dataclass(frozen=True)
class DemoResult:
    """All scores on one data set, with the model and the rows for the pictures."""

    name: str
    scores: list[DemoScore]
    model: EmbeddingClassifier
    X_train: np.ndarray
    y_train: np.ndarray


@dataclass(frozen=True)
class DemoTask:
    """A data set, or some of its columns."""

    name: str
    data_set: str
    columns: tuple[int, ...] | None = None

    def run(self) -> DemoResult:
        """Fit and score the three methods."""
        X, y = datasets.load(self.data_set)
        X = X if self.columns is None else X[:, list(self.columns)]
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
        model = EmbeddingClassifier(random_state=0)
        scores = []
        for method, classifier in {"kernelwright": model, **rivals()}.items():
            started = time.perf_counter()
            classifier.fit(X_train, y_train)
            seconds = time.perf_counter() - started
            p = classifier.predict_proba(X_test)
            own = method == "kernelwright"
            scores.append(
                DemoScore(
                    method,
                    float(classifier.score(X_test, y_test)),
                    float(log_loss(y_test, p)),
                    expected_calibration_error(p, y_test),
                    seconds,
                    complexity=model.complexity_ if own else None,
                    risk_bound=model.risk_bound().total if own else None,
                )
            )
        return DemoResult(self.name, scores, model, X_train, y_train)


TASKS = (
    DemoTask("iris (2 of 4)", "iris", columns=(0, 1)),
    DemoTask("wine", "wine"),
    DemoTask("digits", "digits"),
)


def rivals() -> dict[str, Any]:
    """Return the rival classifiers."""
    return {
        "SVM + grid": GridSearchSVC(n_jobs=2),
        "random forest": RandomForestClassifier(300, random_state=0, n_jobs=2),
    }


def rows_of(result: DemoResult) -> list[dict[str, str]]:
    """Return the scores as formatted rows of a table."""

    def shown(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    return [
        {
            "data": result.name,
            "method": score.method,
            "accuracy": f"{score.accuracy:.1%}",
            "log loss": f"{score.log_loss:.3f}",
            "calibr. error": f"{score.calibration_error:.3f}",
            "complexity": shown(score.complexity, ".2f"),
            "risk bound": shown(score.risk_bound, ".1f"),
            "seconds": f"{score.seconds:.2f}",
        }
        for score in result.scores
    ]


def pictures(results: Mapping[str, DemoResult]) -> dict[str, Picture]:
    """Draw the probabilities of the first result (two features) and the learning curves of all."""
    from matplotlib.figure import Figure

    first = next(iter(results.values()))
    probability_map = DecisionProbabilityDisplay.from_estimator(
        first.model, first.X_train, first.y_train, names=("sepal length, cm", "sepal width, cm"), title=first.name
    )
    figure = Figure(figsize=(4.5 * len(results), 3.8), layout="constrained")
    for ax, (name, result) in zip(figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True):
        LearningCurveDisplay.from_estimator(result.model, ax=ax, title=name)
    return {
        "decision-probabilities": Picture.of(
            probability_map.figure_,
            "Class probabilities over two attributes of iris; far from the data they return to the class frequencies.",
            "Map of three class probabilities, one colour a class, with the training rows as points.",
        ),
        "learning-curves": Picture.of(
            figure,
            "Objective, loss and complexity by step: equal length scales first, then one for each feature.",
            "One plot for each data set: the objective falls over about twenty steps.",
        ),
    }
