"""Limits that were set for this process alone.

Nothing heavy is imported here: the limits are asked for before torch is loaded, which would not survive them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Room", "in_words", "room_below_limits"]


class Room(NamedTuple):
    """Bytes up to the limits of this process; infinity where there is none, or where it is not known how far it is."""

    addresses: float = math.inf  # ulimit -v
    data: float = math.inf  # ulimit -d


def room_below_limits() -> Room:
    """How far this process is from the limits that were set for it."""
    try:
        import resource

        with open("/proc/self/statm") as numbers:
            pages = [float(number) for number in numbers.read().split()]
    except (ImportError, OSError):  # Windows has no such limits, and macOS does not say what is mapped
        return Room()

    def left(which: int, taken: float) -> float:
        limit = resource.getrlimit(which)[0]
        return math.inf if limit == resource.RLIM_INFINITY else max(0.0, limit - taken * resource.getpagesize())

    return Room(left(resource.RLIMIT_AS, pages[0]), left(resource.RLIMIT_DATA, pages[5]))


def in_words(n_bytes: float) -> str:
    """A number of bytes in a unit that shows it.

    Examples
    --------
    >>> from kernelwright.numerics.memory import in_words
    >>> in_words(2.5 * 2**30), in_words(3 * 2**20)
    ('2.5 GiB', '3 MiB')
    """
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"
