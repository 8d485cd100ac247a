"""Read the target column: which rows have a class, which names are the same class, and which names look odd."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from kernelwright.inputs.frames.cells import numbers, texts
from kernelwright.inputs.frames.table import Table, some_of

__all__ = ["about_empty", "about_missing", "labelled", "same_number", "spelling_notes"]

# Not "007": leading zeros mean that it is a name.
NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def labelled(table: Table, target: str) -> tuple[Table, np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Return the rows with a label, the labels as integers, the sorted class names, and notes."""
    words = texts(table, target)
    known = words.notna().to_numpy()
    notes = [about_missing(table, target, int((~known).sum()))] if not known.all() else []
    if not known.any():
        raise ValueError(about_empty(table, target))
    table, words = table.take(known), words[known]
    values, odd = numbers(table, target)
    rank = dict(zip(words, values, strict=True))
    names = sorted(rank, key=None if odd.any() else lambda word: (rank[word], word))
    name_of = {name: name for name in names}
    for same in _equal_numbers(names):
        name_of |= dict.fromkeys(same, same[0])
        notes.append(f"{_listed(same)} of {target!r} are the same number and count as one class, {same[0]!r}.")
    classes = [name for name in names if name_of[name] == name]
    notes += [f"{target}: {words}." for words in spelling_notes(classes)]
    place = {name: classes.index(name_of[name]) for name in names}
    return table, words.map(place).to_numpy(dtype=np.int64), tuple(classes), tuple(notes)


def same_number(name: str, classes: Collection[str]) -> str:
    """Return the class that is the same number (1 for 1.0) if there is one, else the name itself."""
    if name in classes:
        return name
    return next((each for each in classes if _key(each) == _key(name)), name)


def spelling_notes(names: Sequence[str]) -> list[str]:
    """Return notes about names that differ only in case or blanks, and so may mean the same."""
    groups = defaultdict(list)
    for name in names:
        groups[" ".join(name.casefold().split())].append(name)
    return [
        f"{_listed(group)} differ only in case or blanks and are kept apart; if they mean the same, spell them "
        "in the same way"
        for group in groups.values()
        if len(group) > 1
    ]


def _equal_numbers(names: Sequence[str]) -> list[list[str]]:
    """Group the names that are the same number, the shortest name of each group first."""
    groups = defaultdict(list)
    for name in names:
        groups[_key(name)].append(name)
    return [sorted(group, key=lambda name: (len(name), name)) for group in groups.values() if len(group) > 1]


def _key(name: str) -> float | str:
    return float(name) if NUMBER.fullmatch(name) else name


def _listed(names: Sequence[str]) -> str:
    *first, last = map(repr, names)
    return f"{', '.join(first)} and {last}"


def about_empty(table: Table, target: str) -> str:
    """Say that no row has a target, and which words were read as missing."""
    return " ".join([f"The target column {target!r} of {table.source} is empty.", *_missing(table, target, "class")])


def about_missing(table: Table, target: str, n: int, noun: str = "class") -> str:
    """Say how many rows have no target (a "class" or a "number"), and which words were read as missing."""
    left_out = f"{n} row{'s' if n > 1 else ''} without a value of {target!r} left out."
    return " ".join([left_out, *_missing(table, target, noun)])


def _missing(table: Table, target: str, noun: str) -> list[str]:
    """Say which words in the target were read as missing."""
    words = table.missing_words.get(target, ())
    if not words:
        return []
    counts = f"The word {some_of(map(repr, words))} counts" if len(words) == 1 else f"{some_of(map(repr, words))} count"
    return [f"{counts} as missing there{': if it is a class, give it another name' if noun == 'class' else ''}."]
