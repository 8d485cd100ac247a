"""A classifier for tables, with its columns, their treatment and its evaluation."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelwright.estimators import EmbeddingClassifier
from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.storage.saved import saved
from kernelwright.tables.cells import numbers
from kernelwright.tables.columns import Column, describe_columns, remarks
from kernelwright.tables.drift import Drift, find_drift
from kernelwright.tables.labels import labelled, same_number, spelling_notes
from kernelwright.tables.leaks import find_leaks
from kernelwright.tables.preparing import Finding, prepare
from kernelwright.tables.table import Table, nearest_name, some_of

__all__ = ["TabularModel", "TrainingTable", "make_encoder", "make_pipeline", "rival_makers", "versions"]

QUANTITY = 20  # above this many different numbers, a target may be a quantity and not a class


@dataclass(frozen=True)
class TrainingTable:
    """A table that is ready for training: columns, prepared rows and integer labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelwright.tables import TrainingTable, as_table
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "b", "a", "b"]})
    >>> data = TrainingTable.of(as_table(frame), "kind")
    >>> data.classes, data.labels.tolist()
    (('a', 'b'), [0, 1, 0, 1])
    """

    target: str
    columns: tuple[Column, ...]
    frame: Any
    labels: np.ndarray
    classes: tuple[str, ...]
    rows: np.ndarray
    row_word: str
    source: str
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        table: Table,
        target: str,
        *,
        ids: Collection[str] = (),
        drop: Collection[str] = (),
        keep: Collection[str] = (),
        decimal: str | None = None,
    ) -> TrainingTable:
        """Split a table into columns and labels; raise ValueError with one sentence if it cannot be used.

        For ``ids``, ``drop``, ``keep`` and ``decimal`` see :func:`~kernelwright.tables.describe_columns`.
        """
        table.column(target, "target column")
        for name in (*ids, *drop, *keep):
            table.column(name)
        table, labels, classes, notes = labelled(table, target)
        _refuse_bad_classes(table, target, labels, classes)
        features = replace(table, frame=table.frame.drop(columns=target))
        columns = describe_columns(features, ids=ids, drop=drop, keep=keep, decimal=decimal)
        if not any(column.used for column in columns):
            raise ValueError(
                f"{table.source} has no column to learn from: {some_of([f'{c.name} ({c.kind})' for c in columns], 10)}."
                if columns
                else f"{table.source} has no column besides the target {target!r}."
            )
        frame, _ = prepare(columns, features)
        notes += _notes(columns, labels, classes)
        notes += tuple(str(leak) for leak in find_leaks(frame, labels, target))
        rows = table.row_numbers()
        return cls(target, columns, frame, labels, classes, rows, table.row_word, table.source, notes)


@saved("tabular-model")
@dataclass(frozen=True)
class TabularModel:
    """A fitted pipeline, together with all that is needed to use it on new tables and to judge it.

    It holds only plain data and estimators, so that it can be saved. ``pipeline`` predicts integers, which index
    ``classes``.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Steps "encode" (imputers and encoders) and "classify" (:class:`EmbeddingClassifier`).
    columns : tuple of Column
        All columns of the training table except the target.
    target : str
    classes : tuple of str
    class_counts : tuple of int
        Number of training rows in each class.
    evaluation : Evaluation or None
        Result of cross-validation on the training table.
    notes : tuple of str
        Remarks about the training table.
    settings : dict
        Name of the table, number of rows, seed.
    versions : dict of str to str

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
    evaluation: Evaluation | None = None
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def fit(cls, data: TrainingTable, *, seed: int = 0, evaluation: Evaluation | None = None) -> TabularModel:
        """Fit the pipeline to all rows."""
        pipeline = make_pipeline(data.columns, seed).fit(data.frame, data.labels)
        counts = tuple(map(int, np.bincount(data.labels, minlength=len(data.classes))))
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
        )

    @property
    def classifier(self) -> EmbeddingClassifier:
        """The last step of the pipeline."""
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

    def extra_columns(self, table: Table) -> list[str]:
        """Return the columns that the training table did not have."""
        known = {self.target, *(column.name for column in self.columns)}
        return [name for name in table.names if name not in known]

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Predict probabilities of ``classes`` for the rows of a Table or data frame."""
        return self.pipeline.predict_proba(self.prepare(rows)[0])

    def predict(self, rows: Any) -> np.ndarray:
        """Predict the name of the most probable class for each row."""
        return np.array(self.classes, dtype=object)[self.predict_proba(rows).argmax(1)]

    def support(self, rows: Any) -> np.ndarray:
        """Return how well the training rows cover each row; 99 % of the training rows themselves have at least 1."""
        return self.classifier.support(self.pipeline[:-1].transform(self.prepare(rows)[0]))

    def answer(self, table: Table) -> tuple[np.ndarray, Drift]:
        """Predict probabilities of ``classes`` for the rows of a table, and test the rows for drift."""
        frame, findings = self.prepare(table)
        probabilities, support = self.classifier.predict_with_support(self.pipeline[:-1].transform(frame))
        drift = find_drift(
            support,
            findings,
            rows=table.row_numbers(),
            row_word=table.row_word,
            n_support_rows=self.classifier.n_support_rows_,
        )
        return probabilities, drift

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


def make_encoder(columns: Collection[Column]) -> ColumnTransformer:
    """Make the encoder: impute numbers; one-hot encode categories, with rare and unknown ones in one column."""
    # Positions, not names: scikit-learn would search a list of all names for each of them.
    kinds = [column.kind for column in columns if column.used]
    plain = [place for place, kind in enumerate(kinds) if kind != "category"]
    words = [place for place, kind in enumerate(kinds) if kind == "category"]
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    # OneHotEncoder treats a missing value as a category of its own; no imputer is needed.
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=2, max_categories=50, sparse_output=False
    )
    steps = [("numbers", fill, plain)] * bool(plain) + [("categories", encode, words)] * bool(words)
    return ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def make_pipeline(columns: Collection[Column], seed: int = 0) -> Pipeline:
    """Make an unfitted pipeline: the encoder, then an :class:`EmbeddingClassifier`."""
    return Pipeline([("encode", make_encoder(columns)), ("classify", EmbeddingClassifier(random_state=seed))])


def rival_makers(columns: Collection[Column], seed: int = 0) -> dict[str, Callable[[], Any]]:
    """Return makers of the baselines: the majority class, logistic regression and a random forest, same encoder."""

    def with_encoder(*steps: tuple[str, Any]) -> Pipeline:
        return Pipeline([("encode", make_encoder(columns)), *steps])

    return {
        "majority class": lambda: DummyClassifier(strategy="prior"),
        "logistic regression": lambda: with_encoder(
            ("scale", StandardScaler()), ("classify", LogisticRegression(max_iter=1000))
        ),
        "random forest": lambda: with_encoder(("classify", RandomForestClassifier(random_state=seed))),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a model depends on."""
    import kernelwright  # a checkout need not be installed

    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch", "pandas")}
    return {"kernelwright": kernelwright.__version__, "python": platform.python_version(), **libraries}


def _refuse_bad_classes(table: Table, target: str, labels: np.ndarray, classes: tuple[str, ...]) -> None:
    n, m = len(labels), len(classes)
    if m == 1:
        raise ValueError(f"The target column {target!r} has only one value, {classes[0]!r}: a classifier needs two.")
    values, odd = numbers(table, target)
    numeric = not odd.any()
    fractions = numeric and bool((values != np.round(values)).any())
    if numeric and m > QUANTITY and (fractions or m > 0.2 * n):
        raise ValueError(
            f"The target column {target!r} has {m} different numbers in {n} rows, so it looks like a quantity "
            "(regression), but kernelwright fit predicts classes: bin the numbers into a few classes first."
        )
    if m > 0.5 * n and n > 3:
        raise ValueError(
            f"The target column {target!r} has {m} classes in {n} rows, nearly one for each row. Is it the right one?"
        )


def _notes(columns: tuple[Column, ...], labels: np.ndarray, classes: tuple[str, ...]) -> tuple[str, ...]:
    """Return remarks that a careful reader of the table would make."""
    found = []
    left = [
        column for column in columns if column.kind in ("identifier", "text") and column.distinct and not column.remark
    ]
    if left:  # only those found automatically: columns that the user named have no counts, and a remark says more
        names = some_of([f"{c.name} ({c.treatment.removeprefix('left out: ')})" for c in left], 10)
        found.append(f"Left out: {names}. Use --keep COLUMN to learn from one of them anyway.")
    found += remarks(columns)
    for column in columns:
        found += [
            f"{column.name}: {words}." for words in spelling_notes(column.categories) if column.kind == "category"
        ]
    counts = np.bincount(labels, minlength=len(classes))
    rarest, commonest = int(counts.argmin()), int(counts.argmax())
    if counts[rarest] < 0.2 * counts[commonest]:
        found.append(
            f"The classes are unbalanced: {classes[commonest]!r} has {counts[commonest]} rows, {classes[rarest]!r} "
            f"{counts[rarest]}; accuracy alone is not informative."
        )
    if counts[rarest] == 1:
        alone = [classes[k] for k in np.flatnonzero(counts == 1)]
        found.append(f"Only one row of class {some_of(map(repr, alone))}: it cannot be in training and test rows.")
    return tuple(found)
