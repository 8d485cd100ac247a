"""The number of threads for a computation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

__all__ = ["each_on_one_thread", "n_threads", "on_one_thread", "threads_for"]


# Up to this many rows one thread is as fast as many and costs far less: see the benchmark "threads".
ONE_THREAD_UP_TO = 2500


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Give large problems the BLAS threads and small ones a single thread; restore the previous numbers afterwards.

    Torch (OpenMP) and SciPy (BLAS) each keep threads that wait actively for work. If both have several, waiting threads
    take the cores from working threads: on two cores next to another process, a value and gradient of the bound took
    five times as long as with BLAS threads alone. BLAS does the costly part, the factorisation, so OpenMP always gets
    one thread.
    """
    # OpenMP keeps a number for each calling thread, BLAS one for the whole process.
    with _thread_pools("openmp").limit(limits=1), nullcontext() if n_rows > ONE_THREAD_UP_TO else _one_blas_thread:
        yield


def on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function(*arguments)`` on one thread, for parallel work that would otherwise compete for threads."""
    with threads_for(0):
        return function(*arguments)


def n_threads() -> int:
    """Return the number of threads that BLAS may use here: one inside of ``threads_for`` few rows."""
    return max((library.num_threads for library in _thread_pools("blas").lib_controllers), default=1)


def each_on_one_thread(function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
    """Return ``function(item)`` of every item, by as many threads as BLAS may use, each of which does its own work.

    Threads that share one small factorisation wait for each other; with a busy core, all wait for the slowest.
    Results are the same for any number of threads. No gradients are recorded.
    """
    workers, alone = min(n_threads(), len(items)), partial(on_one_thread, torch.no_grad()(function))
    if workers < 2:
        return [alone(item) for item in items]
    with threads_for(0):  # one BLAS thread until all are done, not from call to call
        # Torch sets a new thread to its own number when it first asks; a limit has to come after that.
        pool = ThreadPoolExecutor(workers, initializer=torch.get_num_threads)
        try:
            return list(pool.map(alone, items))
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C or an error, what has not begun is not done


@cache
def _thread_pools(api: str) -> Any:
    """Return the thread pools of the loaded libraries, cached: the search takes longer than a small solve."""
    return ThreadpoolController().select(user_api=api)


class _OneBlasThread:
    """Limit OpenBLAS to one thread while any caller is inside; the last one out restores the previous number.

    The number belongs to the whole process (OpenMP's belongs to each thread). If each caller restored what it found,
    overlapping callers could leave the limit behind.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._new_lock()
        if hasattr(os, "register_at_fork"):  # the lock may be held by a thread that the child process does not have
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
