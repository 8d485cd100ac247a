"""More rows than fit into memory: a stream of batches, and memory that stays flat.

    python examples/big_data.py

An embedding of explicit features needs sums over all rows, and no row twice. So a generator is enough: batches may come
from files, a database or a network, and are forgotten as soon as they have been added. Here they are made up.
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
    """Rows of ten numbers. The class is the sector of the plane of the first two; one label in twenty is wrong."""
    X = rng.normal(size=(n, FEATURES))
    y = ((np.arctan2(X[:, 1], X[:, 0]) + np.pi) / (2 * np.pi) * 5).astype(int).clip(0, 4)
    return X, np.where(rng.random(n) < 0.05, rng.integers(0, 5, n), y)


def stream(n_rows: int, batch: int, seed: int, memory: list[float]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches, and after each of them the largest memory of the process so far."""
    rng = np.random.default_rng(seed)
    for start in range(0, n_rows, batch):
        yield some_rows(rng, min(batch, n_rows - start))
        memory.append(largest_memory())


def largest_memory() -> float:
    """The most memory that this process has had, in MiB (NaN where the system does not tell)."""
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

    # More rows later: the model adds them to what it has, and forgets nothing.
    more = model.partial_fit(*some_rows(np.random.default_rng(2), batch)).score(X_test, y_test)
    print(f"After {batch} more rows by partial_fit: {more:.1%}")
    return {"accuracy": accuracy, "more": more, "grown": memory[-1] - settled, "seconds": seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--batch", type=int, default=5000)
    arguments = parser.parse_args()
    main(arguments.rows, arguments.batch)
