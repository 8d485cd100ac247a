"""A model for tables, with its columns, their treatment and its evaluation."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelwright.estimators import EmbeddingClassifier
from kernelwright.estimators.importance import kernel_shares
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.preparing import Finding, prepare, with_days
from kernelwright.inputs.frames.table import Table, nearest_name
from kernelwright.storage.saved import saved
from kernelwright.tables.drift import FREQUENCIES, TARGETS, Drift, TargetDrift, class_drift, find_drift, number_drift
from kernelwright.tables.examples import ExampleRows
from kernelwright.tables.importance import importance_of
from kernelwright.tables.labels import labelled, same_number
from kernelwright.tables.pipelines import make_number_pipeline, make_pipeline
from kernelwright.tables.quantities import TrainingNumbers, numbered, read_target
from kernelwright.tables.training import TrainingTable
from kernelwright.uncertainty.importance import Importance

__all__ = ["NumberAnswers", "TabularModel", "versions"]


@dataclass(frozen=True)
class NumberAnswers:
    """Predicted means of rows, and predicted quantiles at ``levels``, a column for each."""

    means: np.ndarray
    levels: tuple[float, ...]
    quantiles: np.ndarray


@saved("tabular-model")
@dataclass(frozen=True)
class TabularModel:
    """A fitted pipeline, together with all that is needed to use it on new tables and to judge it.

    It holds only plain data and estimators, so that it can be saved. The ``pipeline`` of a model of classes predicts
    integers, which index ``classes``; a model of numbers has ``numbers``, and no classes. It is a record, not an
    estimator: ``clone`` and ``cross_val_score`` take its ``pipeline``.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        One step, "classify" (:class:`EmbeddingClassifier`) or "regress" (:class:`EmbeddingRegressor`), which takes
        prepared frames; older files have a step "encode" before it.
    columns : tuple of Column
        All columns of the training table except the target.
    target : str
    classes : tuple of str
    class_counts : tuple of int
        Number of training rows in each class.
    evaluation : Evaluation, NumberEvaluation or None
        Result of cross-validation on the training table.
    notes : tuple of str
        Remarks about the training table.
    settings : dict
        Name of the table, number of rows, seed.
    versions : dict of str to str
    numbers : TrainingNumbers or None
        What it was trained to predict, if these are numbers.
    examples : ExampleRows or None
        Some rows of the training table, for reports.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright.tables import TabularModel, TrainingTable, as_table
    >>> bunch = load_iris(as_frame=True)
    >>> frame = bunch.data.assign(species=bunch.target_names[bunch.target])
    >>> model = TabularModel.fit(TrainingTable.of(as_table(frame), "species"))
    >>> model.predict(frame.iloc[:2].drop(columns="species")).tolist()
    ['setosa', 'setosa']
    """

    pipeline: Pipeline
    columns: tuple[Column, ...]
    target: str
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    evaluation: Any = None
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    numbers: TrainingNumbers | None = None
    examples: ExampleRows | None = None

    @classmethod
    def fit(cls, data: TrainingTable, *, seed: int = 0, evaluation: Any = None) -> TabularModel:
        """Fit the pipeline to all rows."""
        make = make_pipeline if data.numbers is None else make_number_pipeline
        pipeline = make(data.columns, seed).fit(data.frame, data.labels, **data.fit_params)
        if evaluation is not None and evaluation.importance is not None:
            shares = kernel_shares(pipeline[-1])
            evaluation = replace(evaluation, importance=evaluation.importance.with_shares(shares))
        counts = () if data.numbers else tuple(map(int, np.bincount(data.labels, minlength=len(data.classes))))
        settings = {"table": data.source, "rows": len(data.labels), "seed": seed}
        return cls(
            pipeline,
            data.columns,
            data.target,
            data.classes,
            counts,
            evaluation,
            notes=data.notes,
            settings=settings,
            versions=versions(),
            numbers=data.numbers,
            examples=ExampleRows.of(data.frame, data.labels, data.rows, data.row_word, evaluation),
        )

    @property
    def task(self) -> str:
        """What the model predicts: "classes" or "numbers"."""
        return "classes" if self.numbers is None else "numbers"

    @property
    def estimator(self) -> Any:
        """The last step of the pipeline."""
        return self.pipeline[-1]

    @property
    def classifier(self) -> EmbeddingClassifier:
        """The last step of the pipeline, if it predicts classes."""
        return self.pipeline[-1]

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that the model uses."""
        return tuple(column.name for column in self.columns if column.used)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Names of the columns that only identify rows."""
        return tuple(column.name for column in self.columns if column.kind == "identifier")

    def prepare(self, rows: Any) -> tuple[Any, list[Finding]]:
        """Select and prepare the model's columns of a table, and list what was not in the training table."""
        return prepare(self.columns, rows)

    def inputs(self, rows: Any) -> tuple[Any, list[Finding]]:
        """Return rows as the last step of the pipeline takes them, and what was not in the training table."""
        frame, findings = self.prepare(rows)
        return self.encoded(frame), findings

    def encoded(self, frame: Any) -> Any:
        """Return prepared columns as the last step takes them: only models of older versions have an encoder."""
        return frame if len(self.pipeline) == 1 else self.pipeline[:-1].transform(with_days(frame))

    def extra_columns(self, table: Table) -> list[str]:
        """Return the columns that the training table did not have."""
        known = {self.target, *(column.name for column in self.columns)}
        return [name for name in table.names if name not in known]

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Predict probabilities of ``classes`` for the rows of a Table or data frame."""
        return self.classifier.predict_proba(self.inputs(rows)[0])

    def predict(self, rows: Any) -> np.ndarray:
        """Predict the name of the most probable class for each row, or the mean of its number."""
        if self.numbers is not None:
            return self.estimator.predict(self.inputs(rows)[0])
        return np.array(self.classes, dtype=object)[self.predict_proba(rows).argmax(1)]

    def support(self, rows: Any) -> np.ndarray:
        """Return how well the training rows cover each row; 99 % of the training rows themselves have at least 1."""
        return self.estimator.support(self.inputs(rows)[0])

    def quantile(self, rows: Any, q: Any) -> np.ndarray:
        """Predict quantiles of the number of each row; see :meth:`EmbeddingRegressor.quantile`."""
        return self.estimator.quantile(self.inputs(rows)[0], q)

    def interval(self, rows: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict an interval that holds the number of each row with this probability."""
        return self.estimator.interval(self.inputs(rows)[0], coverage)

    def importance(self, rows: Any = None, **options: Any) -> Importance:
        """Measure how much worse new rows are predicted when one of their columns is permuted.

        Parameters
        ----------
        rows : Table or data frame, optional
            New rows with the target. By default, the result of cross-validation on the training table.
        **options
            ``n_repeats``, ``max_rows`` and ``random_state`` of :meth:`EmbeddingClassifier.importance`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kernelwright.tables import TabularModel, TrainingTable, as_table
        >>> frame = load_iris(as_frame=True).frame
        >>> model = TabularModel.fit(TrainingTable.of(as_table(frame[::2]), "target", task="classes"))
        >>> model.importance(frame[1::2]).rows[0].name.startswith("petal")
        True
        """
        return importance_of(self, rows, **options)

    def answer(self, table: Table) -> tuple[np.ndarray, Drift]:
        """Predict probabilities of ``classes`` for the rows of a table, and test the rows for drift."""
        X, findings = self.inputs(table)
        probabilities, support = self.classifier.predict_with_support(X)
        return probabilities, self._drift(table, support, findings)

    def answer_numbers(self, table: Table, levels: Sequence[float]) -> tuple[NumberAnswers, Drift]:
        """Predict the mean and quantiles of the number of each row of a table, and test the rows for drift."""
        X, findings = self.inputs(table)
        found = NumberAnswers(self.estimator.predict(X), tuple(levels), self.estimator.quantile(X, list(levels)))
        return found, self._drift(table, self.estimator.support(X), findings)

    def drift(self, table: Table) -> Drift:
        """Test whether the rows of a table are like the training rows."""
        X, findings = self.inputs(table)
        return self._drift(table, self.estimator.support(X), findings)

    def _drift(self, table: Table, support: np.ndarray, findings: Sequence[Finding]) -> Drift:
        return find_drift(
            support,
            findings,
            rows=table.row_numbers(),
            row_word=table.row_word,
            n_support_rows=self.estimator.n_support_rows_,
            nowhere_known=FREQUENCIES if self.numbers is None else TARGETS,
        )

    def with_target(self, table: Table, target: str | None = None) -> tuple[Table, np.ndarray]:
        """Return the rows with a target, and the targets: indices into ``classes``, or numbers."""
        if self.numbers is None:
            return self.label_numbers(table, target)
        target = target or self.target
        table.column(target, "target column")
        return numbered(table, target, read_target(table, target, self.numbers.notation))[:2]

    def target_drift(self, targets: np.ndarray) -> TargetDrift:
        """Test whether the targets of new rows are distributed like those of the training table."""
        if self.numbers is None:
            return class_drift(self.class_counts, targets, self.classes)
        return number_drift(self.numbers, targets)

    def label_numbers(self, table: Table, target: str | None = None) -> tuple[Table, np.ndarray]:
        """Return the rows with a label, and the labels as indices into ``classes``; an unknown label is an error."""
        target = target or self.target
        table.column(target, "target column")
        table, labels, names, _ = labelled(table, target)
        names = tuple(same_number(name, self.classes) for name in names)
        if new := [name for name in names if name not in self.classes]:
            row = int(np.flatnonzero(labels == names.index(new[0]))[0])
            raise ValueError(
                f"{table.source} has a class {new[0]!r} in {table.place(row)} that the model was not trained "
                f"with{nearest_name(new[0], self.classes).replace('It has', 'It knows')}"
            )
        return table, np.array([self.classes.index(name) for name in names])[labels]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a model depends on."""
    import kernelwright  # a checkout need not be installed

    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch", "pandas")}
    return {"kernelwright": kernelwright.__version__, "python": platform.python_version(), **libraries}
