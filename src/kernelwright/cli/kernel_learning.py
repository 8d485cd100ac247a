"""The work of kernelwright learn-kernel and apply-kernel, after their files have been checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kernelwright.cli.fitting import show_columns
from kernelwright.cli.screen import note, print_table, say, steps
from kernelwright.inputs.frames.cells import texts
from kernelwright.inputs.frames.columns import Column, remarks
from kernelwright.inputs.frames.describing import describe_columns
from kernelwright.inputs.frames.table import Table, some_of
from kernelwright.tables.kernel_model import KernelEvaluation, KernelModel, held_out_error
from kernelwright.tables.similarities import similarities_of

__all__ = ["KernelData", "kernel_matrix", "learn", "show_kernel"]


@dataclass(frozen=True)
class KernelData:
    """Objects with known similarities: their table, columns, similarity matrix and names."""

    table: Table
    columns: tuple[Column, ...]
    similarities: np.ndarray
    names: list[str]
    identifier: str | None
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        objects: Table,
        similarities: Table,
        *,
        id_: str | None,
        drop: Collection[str],
        keep: Collection[str],
        decimal: str | None,
    ) -> KernelData:
        """Match similarities to objects; raise ValueError with one sentence if they cannot be used."""
        identifier = id_ or _identifier(objects, drop, keep)
        names = _names(objects, identifier)
        given = similarities_of(similarities, names, named=identifier is not None, decimal=decimal)
        known = ~np.isnan(given.values).all(1)
        places, matrix = given.places[known], given.values[np.ix_(known, known)]
        used = objects.take(places)
        ids = [identifier] if identifier else []
        columns = describe_columns(used, ids=ids, drop=drop, keep=keep, decimal=decimal, bags=False)
        if not any(column.used for column in columns):
            raise ValueError(f"{objects.source} has no column to learn from: {some_of([c.name for c in columns])}.")
        if len(places) < 3:
            raise ValueError(f"{len(places)} objects have known similarities; a kernel needs at least 3.")
        notes = _notes(len(objects), len(places), given.form, identifier)
        notes += (given.remark,) * bool(given.remark) + remarks(columns)
        return cls(used, columns, matrix, [names[k] for k in places], identifier, notes)


def learn(data: KernelData, *, held_out: float, seed: int, source: str) -> KernelModel:
    """Test a kernel on held-out objects unless ``held_out`` is 0, then learn from all objects."""
    with steps("testing on held-out objects" if held_out else "learning", 1 + bool(held_out)) as done:
        shared: dict[str, Any] = {"objects": data.names, "seed": seed}
        evaluation = None
        if held_out:
            evaluation = held_out_error(data.columns, data.table, data.similarities, share=held_out, **shared)
            done("learning from all objects")
        model = KernelModel.fit(
            data.columns,
            data.table,
            data.similarities,
            identifier=data.identifier,
            evaluation=evaluation,
            notes=data.notes,
            settings={"features": data.table.source, "similarities": source, "seed": seed},
            **shared,
        )
        done("done")
    return model


def _identifier(table: Table, drop: Collection[str], keep: Collection[str]) -> str | None:
    """Find the column that names the objects, if there is one."""
    found = describe_columns(table, drop=drop, keep=keep, bags=False)
    names = (column.name for column in found if column.kind == "identifier" and column.distinct == len(table))
    return next(names, None)


def _names(table: Table, identifier: str | None) -> list[str]:
    """Return the names of the objects, which must differ; their numbers if no column names them."""
    if identifier is None:
        return [str(k + 1) for k in range(len(table))]
    words = texts(table, identifier)
    if words.isna().any():
        row = int(words.isna().to_numpy().argmax())
        raise ValueError(f"{table.source} has an object without a name (column {identifier!r}) in {table.place(row)}.")
    if (twice := words.duplicated().to_numpy()).any():
        row = int(twice.argmax())
        raise ValueError(f"{table.source} has the object {words[row]!r} twice; the second time in {table.place(row)}.")
    return list(words)


def _notes(n_objects: int, n_used: int, form: str, identifier: str | None) -> tuple[str, ...]:
    matched = "in the order of the rows" if identifier is None or form == "a matrix" else f"by {identifier!r}"
    notes = [f"Similarities: {form}, matched to the objects {matched}."]
    if n_used < n_objects:
        notes.append(f"{n_objects - n_used} of {n_objects} objects have no known similarity and were left out.")
    return tuple(notes)


def show_kernel(model: KernelModel, seconds: float, output: Path, *, every: bool = False) -> None:
    """Print the source of a kernel, and how good it is."""
    for sentence in model.notes:
        say(sentence)
    show_columns(model.columns, every=every)
    if model.evaluation is None:
        say("No objects were held out, so the error on new objects is unknown.")
    else:
        _show_evaluation(model.evaluation)
    say(f"\nLearned from {len(model.objects)} objects in {seconds:.1f} s (wall clock) and saved in {output}.")


def _show_evaluation(found: KernelEvaluation) -> None:
    errors = {"kernelwright": found.error, **found.rivals}
    rows = [
        {
            "method": name,
            "error": f"{error.value:.4g} ({error.low:.4g} to {error.high:.4g})",
            "relative to spread": f"{100 * error.value / found.spread:.1f} %" if found.spread else "",
        }
        for name, error in errors.items()
    ]
    print_table("\nRoot mean squared error on new objects, with 95 % intervals", rows, bold="kernelwright")
    say(f"{found.protocol}.")


def kernel_matrix(model: KernelModel, tables: list[Table]) -> Any:
    """Return the similarities of the objects of one table, or of two, as a data frame with labels."""
    encoded = []
    for table in tables:
        X, findings = model.encode(table)
        encoded.append(X)
        for finding in findings:
            if finding.what in ("missing", "new category"):
                note(f"Note: {table.source}: {finding}.")
    labels = [_names(table, model.identifier if model.identifier in table.names else None) for table in tables]
    frame = pd.DataFrame(model.learner.predict(*encoded), columns=labels[-1])
    frame.insert(0, model.identifier or "object", labels[0], allow_duplicates=True)
    return frame
