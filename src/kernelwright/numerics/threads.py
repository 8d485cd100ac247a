"""How many threads a computation gets."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["on_one_thread", "threads_for"]


# Up to this many rows one thread is as fast as many, and costs far less: see the benchmark "threads".
ONE_THREAD_UP_TO = 2500


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Give large problems the threads of BLAS, small ones a single thread; restore the former numbers afterwards.

    Torch (OpenMP) and SciPy (BLAS) each keep threads that wait actively for more work. Where both have several, those
    that wait take the cores from those that work: on two cores beside another process, a value and gradient of the
    bound took five times as long as with the threads of BLAS alone, which have the costly part, the factorisation. So
    OpenMP has one thread in any case.
    """
    # OpenMP keeps its number for each thread that asks, BLAS one for the whole process.
    with _thread_pools("openmp").limit(limits=1), nullcontext() if n_rows > ONE_THREAD_UP_TO else _one_blas_thread:
        yield


def on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)`` for work done side by side: more threads for one would take them from another."""
    with threads_for(0):
        return function(*arguments)


@cache
def _thread_pools(api: str) -> Any:
    """The libraries that have threads. To look for them takes longer than a small solve."""
    return ThreadpoolController().select(user_api=api)


class _OneBlasThread:
    """One thread for OpenBLAS while anyone is inside; the last one out restores the former number.

    That number belongs to the whole process (OpenMP's belongs to each thread). Were each caller to restore what it
    found, one that came in after another and left after it would leave the limit behind.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._new_lock()
        if hasattr(os, "register_at_fork"):  # the lock may be held by a thread that the child does not have
            os.register_at_fork(after_in_child=self._new_lock)

    def _new_lock(self) -> None:
        self._turn = threading.Lock()

    def __enter__(self) -> None:
        with self._turn:
            if self._inside == 0:
                self._limit = _thread_pools("blas").limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()
