"""Memory limits of this process, and checks against them.

Nothing else is imported here: the limits are read before NumPy and torch are loaded, which may fail because of them.
"""

from __future__ import annotations

import math
import os
from typing import NamedTuple

__all__ = ["Room", "check_memory", "free_memory", "in_words", "lacked_memory", "room_below_limits"]

OUT_OF_MEMORY = ("failed to map segment", "allocate memory")  # parts of the error message if a library cannot be loaded


class Room(NamedTuple):
    """Bytes left below the limits of this process; infinity if there is no limit or the usage is unknown."""

    addresses: float = math.inf  # ulimit -v
    data: float = math.inf  # ulimit -d


def room_below_limits() -> Room:
    """Return how many bytes this process may still take below its limits."""
    try:
        import resource

        with open("/proc/self/statm") as numbers:
            pages = [float(number) for number in numbers.read().split()]
    except (ImportError, OSError):  # Windows has no such limits, and macOS does not report what is mapped
        return Room()

    def left(which: int, taken: float) -> float:
        limit = resource.getrlimit(which)[0]
        return math.inf if limit == resource.RLIM_INFINITY else max(0.0, limit - taken * resource.getpagesize())

    return Room(left(resource.RLIMIT_AS, pages[0]), left(resource.RLIMIT_DATA, pages[5]))


def in_words(n_bytes: float) -> str:
    """Return a number of bytes as text, in GiB or MiB.

    Examples
    --------
    >>> from kernelwright.numerics.memory import in_words
    >>> in_words(2.5 * 2**30), in_words(3 * 2**20)
    ('2.5 GiB', '3 MiB')
    """
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"


def lacked_memory(error: BaseException) -> bool:
    """Return whether a library could not be loaded because memory was short."""
    return isinstance(error, ImportError) and any(words in str(error) for words in OUT_OF_MEMORY)


LOADED_LATER = 64 * 2**20  # bytes of address space that compiled loops, threads and libraries still take during a fit


def free_memory() -> float:
    """Return the bytes a process may still take: the least of free system memory, container limit and own limit."""
    candidates = [max(0.0, min(room_below_limits()) - LOADED_LATER)]
    try:
        with open("/proc/meminfo") as lines:
            candidates += [float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as current:
            candidates.append(float(limit.read()) - float(current.read()))
    except (OSError, ValueError):  # not Linux, no limit set ("max"), or no container
        pass
    if len(candidates) == 1:
        candidates.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    return min(candidates)


def check_memory(n_bytes: float, what: str, instead: str) -> None:
    """Raise a :class:`MemoryBudgetError` if a job's matrices would not fit, before anything is allocated."""
    from kernelwright.errors import MemoryBudgetError  # imported late: it needs NumPy

    free = free_memory()
    if n_bytes > 0.9 * free:
        limited = min(room_below_limits()) < free + 2 * LOADED_LATER
        where = "are left by the limit set for this process (ulimit -v or -d)" if limited else "are free"
        raise MemoryBudgetError(f"{what} needs about {in_words(n_bytes)}, and {in_words(free)} {where}. {instead}")
