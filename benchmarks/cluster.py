"""Sums over rows on a local Dask cluster: one worker and two, up to ten million rows, and a plan for more.

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
from tools.processes import memory

D, CLASSES, CHUNK = 20, 5, 50_000


@contextmanager
def cluster(workers):
    """Start a local cluster."""
    settings = {"threads_per_worker": 1, "memory_limit": "4GiB", "dashboard_address": None, "silence_logs": "ERROR"}
    with LocalCluster(n_workers=workers, **settings) as here, Client(here) as client:
        client.run(__import__, "kernelwright")  # importing torch is not measured
        yield client


def made_up(n):
    """Draw n rows and labels, chunk by chunk."""
    X = da.random.default_rng(0).standard_normal((n, D), chunks=(CHUNK, D))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 2] > 0) * (X[:, 3] > 0.5)
    return X, y + (X[:, 4] > 2.0)


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
