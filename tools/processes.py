"""CPU time and memory of this process. Memory is read from /proc, so it needs Linux."""

import ctypes
import gc
import resource
from collections.abc import Callable
from pathlib import Path


def cpu_seconds() -> float:
    """Return the CPU time of all threads so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def child_cpu_seconds() -> float:
    """Return the CPU time of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory(field: str = "VmRSS") -> int:
    """Return the bytes in use, or another field of /proc/self/status ("VmHWM" is the peak)."""
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def reset_peak() -> int:
    """Reset the peak ("VmHWM"), and return the bytes in use now."""
    # Return freed memory to the system first; otherwise the work would seem to need less.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return memory()


def peak_of(work: Callable[[], object]) -> int:
    """Return the bytes that a piece of work needs at its peak."""
    before = reset_peak()
    work()
    return memory("VmHWM") - before
