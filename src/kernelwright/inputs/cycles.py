"""The cycles of dates: year, week and day, each a circle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelwright.storage.saved import saved

__all__ = ["Cycle", "cycles_of"]

YEAR, WEEK, DAY = 365.2425, 7.0, 1.0  # in days
ONCE_ROUND = 1.0  # cycles that dates must span: within one, the date itself tells the place
FEWEST_PLACES = 3  # different places on the circle that make a cycle worth a coordinate
ROUND = 1e-3  # of a cycle: places nearer than this are one


@saved("date-cycle")
@dataclass(frozen=True)
class Cycle:
    """The place of a date in a cycle, as a point on a circle whose coordinates have a deviation of one.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.inputs.cycles import Cycle
    >>> week = Cycle(7.0)
    >>> bool(np.allclose(week(np.array([3.0])), week(np.array([10.0]))))
    True
    """

    length: float  # in days

    def __call__(self, days: np.ndarray) -> np.ndarray:
        """Return two coordinates for each date; a gap is the centre of the circle."""
        angle = 2.0 * np.pi * np.nan_to_num(days) / self.length
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        return np.where(np.isnan(days)[:, None], 0.0, circle)


def cycles_of(days: np.ndarray) -> tuple[Cycle, ...]:
    """Return the cycles that dates go through more than once, at three different places or more."""
    known = days[~np.isnan(days)]
    return tuple(Cycle(length) for length in (YEAR, WEEK, DAY) if _turns(known, length))


def _turns(days: np.ndarray, length: float) -> bool:
    if len(days) < FEWEST_PLACES or np.ptp(days) < ONCE_ROUND * length:
        return False
    places = np.unique(np.round((days % length) / length / ROUND))
    return len(places) >= FEWEST_PLACES
