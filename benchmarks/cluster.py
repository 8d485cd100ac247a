"""Fits on a local Dask cluster: sums over rows and leaves of trees, by one worker and by two, and plans for more.

Workers draw the rows themselves, chunk by chunk, so they are never all in memory. A worker has one thread.
"""

import math
import time
from contextlib import contextmanager

import dask.array as da
import numpy as np
from dask.utils import format_bytes
from distributed import Client, LocalCluster

from kernelwright import EmbeddingClassifier
from kernelwright.estimators.streaming import sum_points
from kernelwright.features import RandomFourier
from kernelwright.inputs.dask_rows import FAN_IN, DaskRows
from kernelwright.inputs.targets import ClassTargets
from tools.processes import memory, reset_peak

D, CLASSES, CHUNK, TREES = 20, 5, 50_000, 3


@contextmanager
def cluster(workers, memory_limit="4GiB"):
    """Start a local cluster."""
    settings = {
        "threads_per_worker": 1,
        "memory_limit": memory_limit,
        "dashboard_address": None,
        "silence_logs": "ERROR",
    }
    with LocalCluster(n_workers=workers, **settings) as here, Client(here) as client:
        client.run(__import__, "kernelwright")  # importing torch is not measured
        yield client


def made_up(n):
    """Draw n rows and labels, chunk by chunk."""
    X = da.random.default_rng(0).standard_normal((n, D), chunks=(CHUNK, D))
    return X, labels(X)


def labels(X):
    """Return the class of each row."""
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 2] > 0) * (X[:, 3] > 0.5)
    return y + (X[:, 4] > 2.0)


def model(p):
    """Make a model with fixed hyperparameters: only the sum over rows is left to do."""
    some = np.random.default_rng(0).normal(size=(1000, D))
    return EmbeddingClassifier(features=RandomFourier(p, lengthscale=4.0), learn=None, ridge=1e-4, random_state=0).fit(
        some, np.arange(1000) % CLASSES
    )


def reduction(client, n, p):
    """Sum over rows; return seconds, extra peak bytes of a worker, and bytes sent between workers."""
    X, y = made_up(n)
    rows, *_ = DaskRows.read(X, y, None, None, "the benchmark")
    fitted = model(p)
    before, moved = resident(client, "VmRSS"), sent(client)
    started = time.perf_counter()
    sums = rows.map_reduce(sum_points, fitted.kernel_, fitted.scaler_, ClassTargets(CLASSES))
    seconds = time.perf_counter() - started
    assert sums.moments.total == n
    return seconds, resident(client, "VmHWM") - before, sent(client) - moved


def resident(client, field):
    """Return the largest memory of any worker."""
    return max(client.run(memory, field).values())


def sent(client):
    """Return the bytes that workers have sent so far."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def cpu(client):
    """Return the CPU seconds that each worker has used so far."""
    return np.array(list(client.run(time.process_time).values()))


def tree_fit(client, n):
    """Fit the default with n rows; return what it has cost."""
    X, y = made_up(n)
    reset_peak()
    before, moved, own, started = cpu(client), sent(client), time.process_time(), time.perf_counter()
    fitted = EmbeddingClassifier(random_state=0).fit(X, y)
    seconds, here, there = time.perf_counter() - started, time.process_time() - own, cpu(client) - before
    assert fitted.solver_ == "tree"
    moved, peak = sent(client) - moved, memory("VmHWM")
    new = np.random.default_rng(1).standard_normal((10_000, D))
    return {
        "rows": n,
        "workers": len(there),
        "seconds": seconds,
        "CPU seconds of the caller": here,
        "CPU seconds of workers": there.sum(),
        "of the busiest": there.max(),
        "peak memory of a worker": format_bytes(resident(client, "VmHWM")),
        "of the caller": format_bytes(peak),
        "bytes between workers": format_bytes(moved),
        "accuracy": np.mean(fitted.predict(new) == labels(new)),
    }


def trees(quick):
    """Fit the default with one worker and with two, each with 2 GiB."""
    found = []
    for n, workers in ((60_000, 1), (60_000, 2)) if quick else ((100_000, 1), (100_000, 2), (1_000_000, 2)):
        with cluster(workers, "2GiB") as client:
            found.append(tree_fit(client, n))
    return [row | {"speed-up": _alone(row) / _critical(row)} for row in found]


def _critical(row):
    """Return the CPU seconds that no other machine can take over: on machines of their own, the time of the fit."""
    return row["CPU seconds of the caller"] + row["of the busiest"]


def _alone(row):
    """Return the CPU seconds of a fit with one worker, which does what all of them did."""
    return row["CPU seconds of the caller"] + row["CPU seconds of workers"]


def trees_plan(measured):
    """Predict time and bytes of the default from the small run with one worker, and check them with the largest run.

    Times are for machines with a core each that no one else uses, and a network that is never the limit.
    """
    one, largest = measured[0], measured[-1]
    of_worker = one["CPU seconds of workers"] / one["rows"]
    # What the caller does besides: rows that come back are put in their places.
    of_caller = (largest["CPU seconds of the caller"] - one["CPU seconds of the caller"]) / (
        largest["rows"] - one["rows"]
    )
    learning = one["CPU seconds of the caller"] - of_caller * one["rows"]
    rows = []
    for n, machines in ((largest["rows"], 2), (10**8, 10), (10**8, 100), (10**9, 10), (10**9, 100)):
        check = n == largest["rows"]
        seconds = learning + of_caller * n + of_worker * n / machines
        rows.append(
            {
                "rows": n,
                "machines": machines,
                "minutes planned": seconds / 60.0,
                "minutes measured": _critical(largest) / 60.0 if check else math.nan,
                "rows brought together": format_bytes(TREES * n * (8 * D + 32)),
                "measured": largest["bytes between workers"] if check else "",
                "to the caller": format_bytes(n * (8 * D + 16 + TREES * (8 * CLASSES + 8))),
                "model": format_bytes(n * (8 * D + 33 + TREES * (8 * CLASSES + 8))),
                "of the time, the caller alone": (learning + of_caller * n) / seconds,
            }
        )
    return rows


def _critical(row):
    """Return the CPU seconds that nobody else can take over: on machines of their own, the time of the fit."""
    return row["CPU seconds of the caller"] + row["of the busiest"]


def by_workers(quick):
    """Time the sum with one worker and with two."""
    rows, n, p = [], 500_000 if quick else 2_000_000, 300
    for workers in (1, 2):
        with cluster(workers) as client:
            reduction(client, 4 * CHUNK, p)
            seconds = min(reduction(client, n, p)[0] for _ in range(1 if quick else 3))
        rows.append({"workers": workers, "rows": n, "features": p, "seconds": seconds, "rows a second": n / seconds})
    one = rows[0]["rows a second"]
    return [row | {"share of ideal": row["rows a second"] / (row["workers"] * one)} for row in rows]


def by_size(quick):
    """Time the sum for growing numbers of rows."""
    rows, p = [], 200
    for n in (100_000, 300_000, 1_000_000) if quick else (1_000_000, 3_000_000, 10_000_000):
        with cluster(2) as client:
            reduction(client, 4 * CHUNK, p)
            seconds, peak, moved = reduction(client, n, p)
        rows.append(
            {
                "rows": n,
                "features": p,
                "as an array": format_bytes(8 * n * D),
                "seconds": seconds,
                "rows a second": n / seconds,
                "peak memory of a worker": format_bytes(peak),
                "bytes between workers": format_bytes(moved),
            }
        )
    return rows


def plan(quick, sizes):
    """Predict time and bytes from the rate of one worker, and for the largest run, to check it."""
    measured, rates = sizes[-1], {}
    with cluster(1) as client:
        for p in (measured["features"], 1000):
            n = 4 * CHUNK if quick or p == 1000 else 20 * CHUNK
            reduction(client, 2 * CHUNK, p)
            rates[p] = n / reduction(client, n, p)[0]
    rows = []
    for n, p, workers in ((measured["rows"], measured["features"], 2), (10**9, 1000, 100)):
        chunk = CHUNK if workers == 2 else 10**6
        sums = 8 * (p * p + p * (CLASSES + 1))
        rows.append(
            {
                "rows": n,
                "features": p,
                "workers": workers,
                "rows in a chunk": chunk,
                "rows a second, one worker": rates[p],
                "minutes planned": n / (workers * rates[p]) / 60.0,
                "minutes measured": measured["seconds"] / 60.0 if workers == 2 else math.nan,
                "data read": format_bytes(8 * n * D),
                "model to each worker": format_bytes(8 * p * (D + 1)),
                "sums made": format_bytes(sums * n // chunk),
                "levels of the tree": math.ceil(math.log(n / chunk, FAN_IN)),
            }
        )
    return rows
