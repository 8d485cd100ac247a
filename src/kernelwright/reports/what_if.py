"""Answers of a model on a joint grid over a few columns of single rows, for a panel that needs no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Lever", "RowGrid", "WhatIf", "interpolated", "what_if"]

CHOICES = 6  # most values of a column that are chosen from a list
FINE = 13  # points along a column, among which the levels of the grid are chosen
TRIMMED = 0.02  # share of the values beyond either end of a slider
TESTS = 20  # random settings of each row at which the interpolation is measured
BASES = 3  # settings of the other columns, beside those of the row, at which levels of a column are tried

Answer = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Lever:
    """A column that can be changed.

    Parameters
    ----------
    name : str
    levels : tuple
        Of numbers: the levels of the grid, between which answers are interpolated. Else: the values to choose from.
    start : float or str or None
        The value of the row itself, which is among the levels.
    slides : bool
        Whether it is a slider.
    """

    name: str
    levels: tuple[Any, ...]
    start: Any
    slides: bool


@dataclass(frozen=True)
class RowGrid:
    """The answers for one row if some of its columns change: of shape (levels of each lever, outputs)."""

    levers: tuple[Lever, ...]
    answers: np.ndarray


@dataclass(frozen=True)
class WhatIf:
    """Grids of several rows, and how far interpolated answers are from those of the model.

    ``errors`` are the differences at random settings, of shape (settings, outputs).
    """

    grids: tuple[RowGrid, ...]
    errors: np.ndarray


def _as_it_is(answers: np.ndarray) -> np.ndarray:
    return answers


def what_if(
    answer: Answer,
    frame: Any,
    columns: Sequence[str],
    *,
    rows: int,
    most: int = 600,
    back: Callable[[np.ndarray], np.ndarray] = _as_it_is,
) -> WhatIf:
    """Compute the joint grids of the first rows of a frame.

    Parameters
    ----------
    answer : callable
        Returns the outputs of the model for such a frame, of shape (rows, outputs), on a scale on which they are to
        be interpolated.
    frame : pandas.DataFrame
        The rows of the panel, followed by others that show which values occur.
    columns : sequence of str
        The columns to change.
    rows : int
    most : int, default=600
        Largest number of points in the grid of a row.
    back : callable, optional
        Turns outputs into what is shown, in which errors are measured.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kernelwright.reports.what_if import interpolated, what_if
    >>> frame = pd.DataFrame({"a": np.linspace(0, 1, 20), "b": ["x", "y"] * 10})
    >>> answer = lambda rows: (rows["a"] * (rows["b"] == "y")).to_numpy()[:, None]
    >>> found = what_if(answer, frame, ["a", "b"], rows=1)
    >>> interpolated(found.grids[0], {"a": 0.4, "b": "y"}).round(6), bool(found.errors.max() < 1e-9)
    (array([0.4]), True)
    """
    random, grids, errors = np.random.default_rng(0), [], []
    for place in range(rows):
        levers = _levers(answer, frame, columns, place, most, random)
        changes = _product([lever.levels for lever in levers])
        answers = answer(_changed(frame, place, levers, changes))
        grid = RowGrid(tuple(levers), answers.reshape(*(len(lever.levels) for lever in levers), -1))
        settings = [[_anywhere(lever, random) for lever in levers] for _ in range(TESTS)]
        truth = answer(_changed(frame, place, levers, settings))
        names = [lever.name for lever in levers]
        guesses = np.array([interpolated(grid, dict(zip(names, setting, strict=True))) for setting in settings])
        errors.append(np.abs(back(guesses) - back(truth)))
        grids.append(grid)
    return WhatIf(tuple(grids), np.concatenate(errors))


def interpolated(grid: RowGrid, setting: Mapping[str, Any]) -> np.ndarray:
    """Return the answers between the levels of a grid: linear along each slider."""
    found = grid.answers
    for lever in grid.levers:
        value = setting[lever.name]
        if not lever.slides:
            found = found[_place_of(value, lever.levels)]
            continue
        levels = np.asarray(lever.levels)
        above = int(np.clip(np.searchsorted(levels, value), 1, len(levels) - 1))
        share = (value - levels[above - 1]) / (levels[above] - levels[above - 1])
        found = (1.0 - share) * found[above - 1] + share * found[above]
    return found


def _place_of(value: Any, levels: Sequence[Any]) -> int:
    return next(k for k, level in enumerate(levels) if level == value or (level != level and value != value))


def _anywhere(lever: Lever, random: np.random.Generator) -> Any:
    if not lever.slides:
        return lever.levels[random.integers(len(lever.levels))]
    return float(random.uniform(lever.levels[0], lever.levels[-1]))


def _product(levels: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return all combinations, the last column changing fastest."""
    made: list[list[Any]] = [[]]
    for each in levels:
        made = [[*rest, level] for rest in made for level in each]
    return made


def _changed(frame: Any, place: int, levers: Sequence[Lever], settings: Sequence[Sequence[Any]]) -> Any:
    """Return copies of a row with these values of the levers."""
    import pandas as pd

    copies = frame.iloc[np.full(len(settings), place)].reset_index(drop=True)
    cells = {
        lever.name: pd.Series([setting[k] for setting in settings], dtype=frame[lever.name].dtype)
        for k, lever in enumerate(levers)
    }
    return copies.assign(**cells)


def _levers(
    answer: Answer, frame: Any, columns: Sequence[str], place: int, most: int, random: np.random.Generator
) -> list[Lever]:
    """Choose the columns that the row has a value of, and the levels of each."""
    possible = [_fine(frame[name], frame[name].iloc[place], name) for name in columns]
    levers = [lever for lever in possible if lever is not None and len(lever.levels) > 1]
    while math.prod(3 if lever.slides else len(lever.levels) for lever in levers) > most:
        k = max(range(len(levers)), key=lambda i: 0 if levers[i].slides else len(levers[i].levels))
        if levers[k].slides or len(levers[k].levels) < 3:
            levers = levers[:-1]  # the last one matters least
            continue
        rarest = next(level for level in levers[k].levels[::-1] if level != levers[k].start)
        kept = tuple(level for level in levers[k].levels if level != rarest)
        levers[k] = Lever(levers[k].name, kept, levers[k].start, False)
    bases = [[lever.start for lever in levers], *([_anywhere(each, random) for each in levers] for _ in range(BASES))]
    curves = [_curves(answer, frame, place, levers, k, bases) for k in range(len(levers))]
    return _with_levels(levers, curves, most)


def _fine(column: Any, value: Any, name: str) -> Lever | None:
    """Return a lever with all values to choose from, or with fine levels of a slider."""
    if column.dtype.kind not in "iufb":
        if value != value:
            return None
        usual = column.dropna().value_counts(sort=True).index.tolist()[:CHOICES]
        return Lever(name, tuple(usual if value in usual else [*usual[:-1], value]), value, False)
    if not np.isfinite(value):
        return None
    numbers = column.to_numpy(dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    distinct = np.unique(numbers)
    if len(distinct) <= CHOICES:
        return Lever(name, tuple(np.union1d(distinct, [value]).tolist()), float(value), False)
    low, high = np.quantile(numbers, [TRIMMED, 1.0 - TRIMMED])
    if not low < high:
        low, high = distinct[0], distinct[-1]
    return Lever(name, tuple(np.union1d(np.linspace(low, high, FINE), [value]).tolist()), float(value), True)


def _curves(
    answer: Answer, frame: Any, place: int, levers: Sequence[Lever], varied: int, bases: Sequence[Sequence[Any]]
) -> np.ndarray:
    """Return the answers along one column, of shape (levels, bases times outputs)."""
    levels = levers[varied].levels
    settings = [[*base[:varied], level, *base[varied + 1 :]] for level in levels for base in bases]
    return answer(_changed(frame, place, levers, settings)).reshape(len(levels), -1)


def _with_levels(levers: Sequence[Lever], curves: Sequence[np.ndarray], most: int) -> list[Lever]:
    """Choose levels of the sliders, one at a time where linear interpolation along its column is worst."""
    kept = [_ends(lever) for lever in levers]
    while True:
        size, best = math.prod(map(len, kept)), (0.0, len(levers), 0)
        for k, (lever, curve) in enumerate(zip(levers, curves, strict=True)):
            if not lever.slides or size // len(kept[k]) * (len(kept[k]) + 1) > most:
                continue
            levels = np.asarray(lever.levels)
            lines = [np.interp(levels, levels[kept[k]], each[kept[k]]) for each in curve.T]
            wrong = np.abs(curve - np.column_stack(lines)).mean(1)
            best = max(best, (float(wrong.max()), k, int(wrong.argmax())))
        if best[1] == len(levers):
            break
        kept[best[1]] = sorted({*kept[best[1]], best[2]})
    return [
        Lever(lever.name, tuple(lever.levels[i] for i in places), lever.start, lever.slides)
        for lever, places in zip(levers, kept, strict=True)
    ]


def _ends(lever: Lever) -> list[int]:
    """Return the places of the levels that a grid must have: all choices, or the ends of a slider and its start."""
    last = len(lever.levels) - 1
    return sorted({0, lever.levels.index(lever.start), last}) if lever.slides else list(range(last + 1))
