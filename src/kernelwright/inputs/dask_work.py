"""Work that is given to Dask: to the cluster of the current client, or to local threads. Its faults become advice."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from kernelwright.errors import WorkerLostError

__all__ = ["computed", "persisted", "shipped", "streamed"]

LARGE = 2**23  # bytes of a model: a larger one goes to the workers directly, not through the scheduler
AHEAD = 2  # tasks for each thread of a cluster that are waiting or running: none is idle, and few results wait


def computed(tasks: list[Any], row_bytes: int) -> Any:
    """Compute the tasks. On an exception (also Ctrl-C) the remaining work is released, and the cluster drops it."""
    import dask

    with _advice(row_bytes):
        return dask.compute(*tasks)


def persisted(row_bytes: int, *collections: Any) -> Any:
    """Start work whose results stay where they are."""
    import dask

    with _advice(row_bytes):
        return dask.persist(*collections)


def shipped(value: Any, n_bytes: float) -> Any:
    """Return an object that tasks may take as an argument. A large one has a copy on each worker at once."""
    from dask import delayed

    client = _client() if n_bytes > LARGE else None
    if client is None or client.asynchronous:
        return delayed(value, traverse=False)
    return client.scatter(value, broadcast=True, hash=False)  # copies: none is lost with a single worker


def streamed(tasks: Iterable[Any], row_bytes: int) -> Iterator[Any]:
    """Yield the results of tasks, in any order; a task is made when its turn comes, so few of them are held at once."""
    waiting, client = iter(tasks), _client()
    if client is None:
        while some := list(islice(waiting, os.cpu_count() or 1)):
            yield from computed(some, row_bytes)
        return
    from distributed import as_completed

    running = as_completed()
    first = islice(waiting, AHEAD * max(1, sum(client.nthreads().values())))
    with _advice(row_bytes):
        running.update([client.compute(task) for task in first])
        for future in running:
            yield future.result()
            running.update([client.compute(task) for task in islice(waiting, 1)])


def _client() -> Any:
    """Return the client of a cluster, if it is what Dask would use now."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "nthreads") else None


@contextmanager
def _advice(row_bytes: int) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            # Kernel and scale of the inputs are a few megabytes. In the graph they are sent again if a worker dies.
            warnings.filterwarnings("ignore", "Sending large graph")
            yield
    except MemoryError as error:
        raise WorkerLostError(_memory_advice("A worker could not get the memory for a chunk", row_bytes)) from error
    except Exception as error:
        if not _is_killed_worker(error):
            raise
        said = f"Workers died again and again over the same chunk ({error})"
        raise WorkerLostError(_memory_advice(said, row_bytes)) from error


def _is_killed_worker(error: Exception) -> bool:
    distributed = sys.modules.get("distributed")  # missing if the work was done by threads
    return distributed is not None and isinstance(error, distributed.scheduler.KilledWorker)


def _memory_advice(said: str, row_bytes: int) -> str:
    return (
        f"{said}. The chunk probably does not fit: a thousand rows take {row_bytes / 1048.576:.3g} MiB as numbers of 8 "
        "bytes, and a worker holds two or three copies of a chunk. Use smaller chunks (X.rechunk({0: 10_000}) for an "
        "array, X.repartition(partition_size='64MB') for a data frame), or raise memory_limit of the workers."
    )
