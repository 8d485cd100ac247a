"""Fit more rows than fit into memory: a stream of batches, with constant memory.

    python examples/big_data.py

An embedding with explicit features needs only sums over rows, so it reads each row once and a generator is enough.
Batches may come from files, a database or a network, and are not kept. Here they are synthetic.
"""

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np

from kernelwright import EmbeddingClassifier
from kernelwright.features import Nystroem
from kernelwright.kernels import Laplace

FEATURES = 10


def some_rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of ten numbers; the class is the sector of the first two, and one label in twenty is wrong."""
    X = rng.normal(size=(n, FEATURES))
    y = ((np.arctan2(X[:, 1], X[:, 0]) + np.pi) / (2 * np.pi) * 5).astype(int).clip(0, 4)
    return X, np.where(rng.random(n) < 0.05, rng.integers(0, 5, n), y)


def stream(n_rows: int, batch: int, seed: int, memory: list[float]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches, and append the peak memory of the process after each of them."""
    rng = np.random.default_rng(seed)
    for start in range(0, n_rows, batch):
        yield some_rows(rng, min(batch, n_rows - start))
        memory.append(largest_memory())


def largest_memory() -> float:
    """Return the peak memory of this process in MiB, or NaN if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)


def main(n_rows: int = 300_000, batch: int = 5000) -> dict[str, float]:
    features = Nystroem(Laplace("median", ard=True), n_landmarks=400)
    model = EmbeddingClassifier(features=features, scale="standard", random_state=0)
    X_test, y_test = some_rows(np.random.default_rng(1), 20_000)

    memory: list[float] = []
    started = time.perf_counter()
    model.fit_batches(stream(n_rows, batch, 0, memory), classes=range(5))
    seconds = time.perf_counter() - started
    accuracy = model.score(X_test, y_test)
    settled = memory[len(memory) // 3]
    print(f"{n_rows} rows in batches of {batch}: {seconds:.1f} s, test accuracy {accuracy:.1%} (at most 96 %)")
    print(f"Memory after a third of the rows {settled:.0f} MiB, at the end {memory[-1]:.0f} MiB")
    print(f"The rows themselves would take {n_rows * FEATURES * 8 / 2**20:.0f} MiB, their features ", end="")
    print(f"{n_rows * 400 * 8 / 2**20:.0f} MiB")

    # More rows later: partial_fit adds them; earlier rows still count.
    more = model.partial_fit(*some_rows(np.random.default_rng(2), batch)).score(X_test, y_test)
    print(f"After {batch} more rows by partial_fit: {more:.1%}")
    return {"accuracy": accuracy, "more": more, "grown": memory[-1] - settled, "seconds": seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--batch", type=int, default=5000)
    arguments = parser.parse_args()
    main(arguments.rows, arguments.batch)
