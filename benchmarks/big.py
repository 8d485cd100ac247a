"""Rows that are never all in memory: fits from Parquet files, up to ten million rows, and the same fit in memory."""

import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from kernelwright import EmbeddingClassifier
from kernelwright.inputs import ParquetRows
from kernelwright.solvers import Tree
from tools.processes import cpu_seconds

D, FILE_ROWS, TEST_ROWS = 10, 250_000, 50_000
FLIPPED = 0.05  # share of labels that are wrong: no classifier has an accuracy above 95 %
SIZES = {"quick": (100_000, 300_000), "usual": (1_000_000, 3_000_000), "all": (1_000_000, 3_000_000, 10_000_000)}
IN_MEMORY_UP_TO = 1_000_000


def made_up(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of two classes; four of the ten columns matter."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, D))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] > 0.5 * X[:, 3]
    return X, (y ^ (random.uniform(size=n) < FLIPPED)).astype(int)


def write_files(folder: str, n: int) -> None:
    """Write n rows to Parquet files, one after the other."""
    for number, start in enumerate(range(0, n, FILE_ROWS)):
        X, y = made_up(min(FILE_ROWS, n - start), number)
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(D)]).assign(y=y)
        frame.to_parquet(Path(folder) / f"part-{number:04d}.parquet", index=False)


def work(folder: str, n: int, where: str, pipe: object) -> None:
    """Fit in this process; send times, memory, and how good the answers are at new rows."""
    started, used = time.perf_counter(), cpu_seconds()
    model = EmbeddingClassifier(solver=Tree(), random_state=0, verbose=10**6)
    source = ParquetRows(folder, target="y")
    if where == "memory":
        parts = list(source.parts())
        model.fit(pd.concat([part.X for part in parts]), np.concatenate([part.y for part in parts]))
    else:
        model.fit(source)
    wall, cpu = time.perf_counter() - started, cpu_seconds() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    X, y = made_up(TEST_ROWS, 10**6)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(D)])
    started = time.perf_counter()
    p = model.predict_proba(frame)
    pipe.send(
        {
            "rows": n,
            "read from": where,
            "seconds": wall,
            "CPU seconds": cpu,
            "peak GiB of the process": memory,
            "accuracy %": 100.0 * float(np.mean(p.argmax(1) == y)),
            "log loss": float(log_loss(y, p)),
            "predicted rows a second": TEST_ROWS / (time.perf_counter() - started),
        }
    )


def measured(folder: str, n: int, where: str) -> dict[str, object]:
    """Measure in a new process, whose memory is that of the fit alone."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(folder, n, where, send))
    process.start()
    send.close()
    found = receive.recv()
    process.join()
    return found


def rows(sizes: tuple[int, ...]) -> list[dict[str, object]]:
    """Measure every size."""
    table = []
    for n in sizes:
        with tempfile.TemporaryDirectory(prefix="big-") as folder:
            write_files(folder, n)
            for where in ("files", "memory") if n <= IN_MEMORY_UP_TO else ("files",):
                table.append(measured(folder, n, where))
    return table
