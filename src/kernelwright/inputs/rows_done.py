"""How many of all rows are done, and how long the others will take."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

__all__ = ["RowsDone", "minutes"]

EVERY = 10.0  # seconds between two lines
LATELY = 120.0  # seconds whose pace says how long the others will take: the first rows may only have been looked up
logger = logging.getLogger("kernelwright.rows")


class RowsDone:
    """Counts rows, and writes a line to the log ``kernelwright.rows`` every ten seconds and at the end.

    Examples
    --------
    >>> from kernelwright.inputs.rows_done import RowsDone
    >>> clock = iter([0.0, 60.0])
    >>> done = RowsDone("rows read", 2000, now=lambda: next(clock))
    >>> done.add(500)
    >>> done.line()
    '500 of 2,000 rows read, 3:00 left'
    """

    def __init__(self, what: str, total: int, now: Callable[[], float] = time.monotonic) -> None:
        self.what, self.total, self.done, self._now = what, total, 0, now
        self._started = self._said = now()
        self._lately = deque([(self._started, 0)])

    def add(self, n: int) -> None:
        """Count rows that are done now."""
        self.done, now = self.done + n, self._now()
        self._lately.append((now, self.done))
        while len(self._lately) > 2 and now - self._lately[1][0] > LATELY:
            self._lately.popleft()
        if now - self._said >= EVERY or self.done >= self.total:
            self._said = now
            logger.info("%s", self.line())

    def line(self) -> str:
        """Say how many rows are done, and how long the others will take."""
        (before, done_before), (now, done) = self._lately[0], self._lately[-1]
        so_far = f"{done:,} of {self.total:,} {self.what}"
        if done >= self.total:
            return f"{so_far}, in {minutes(now - self._started)}"
        return f"{so_far}, {minutes((now - before) * (self.total - done) / max(done - done_before, 1))} left"


def minutes(seconds: float) -> str:
    """Return a time as hours, minutes and seconds.

    Examples
    --------
    >>> from kernelwright.inputs.rows_done import minutes
    >>> minutes(59.7), minutes(3725)
    ('1:00', '1:02:05')
    """
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
