"""Blocks of the default kernel against the matrix product of the same size, and compressed models against whole ones.

Each ratio is of times taken side by side on one thread; the page on cost has the arithmetic behind them.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import make_classification

import kernelwright as kw
from benchmarks import floor
from kernelwright import EmbeddingClassifier
from kernelwright.kernels import Tabular

ROWS, POINTS, ROWS_OF_GRADIENT = 2000, 4000, 800
FEATURES = (16, 54)
FITTED, NEW, COLUMNS, CLASSES = 2000, 100_000, 20, 3


def blocks(quick: bool) -> dict[str, float]:
    """Time values of the default kernel against ``X Z^T`` in double precision."""
    ratios = {}
    for d in FEATURES:
        random = np.random.default_rng(0)
        X, Z = (torch.from_numpy(random.normal(size=(n, 2 * d))) for n in (ROWS // (4 if quick else 1), POINTS))
        kernel, single = (Tabular(np.linspace(1.0, 3.0, d) * d, smooth=d**0.5) for _ in range(2))
        single = single.float()
        x, z, x_single, z_single = X[:, :d].contiguous(), Z[:, :d].contiguous(), X.float(), Z.float()
        values, values_in_single = kernel.against(Z), single.against(z_single)
        tasks = {
            "product": partial(torch.matmul, x, z.T),
            "product in single precision": partial(torch.matmul, x.float(), z.float().T),
            "one pass": partial(values, X),
            "one pass in single precision": partial(values_in_single, x_single),
            "plain torch": partial(kernel._in_torch, X, Z),
        }
        ratios |= _against("product", tasks, f"default kernel, {d} features: ", 3 if quick else 7)
    return ratios


def gradients(quick: bool) -> dict[str, float]:
    """Time a training matrix of the default kernel with its pullback against one product of that size."""
    ratios = {}
    for d in FEATURES:
        random = np.random.default_rng(0)
        X = torch.from_numpy(random.normal(size=(ROWS_OF_GRADIENT, 2 * d)))
        W = torch.from_numpy(random.normal(size=(ROWS_OF_GRADIENT, ROWS_OF_GRADIENT)))
        kernel = Tabular(np.linspace(1.0, 3.0, d) * d, smooth=d**0.5)
        tasks = {
            "product": partial(torch.matmul, X[:, :d].contiguous(), X[:, :d].contiguous().T),
            "matrix and gradient": partial(_matrix_and_gradient, kernel, X, W),
        }
        ratios |= _against("product", tasks, f"default kernel, {d} features: ", 3 if quick else 7)
    return ratios


def _matrix_and_gradient(kernel: Tabular, X: torch.Tensor, W: torch.Tensor) -> None:
    _, pullback = kernel.vjp(X)
    pullback(W.clone())


def compressed(quick: bool) -> dict[str, float]:
    """Compare a compressed model with the whole one: times, bytes, and log loss of new rows."""
    n = FITTED // (4 if quick else 1)
    X, y = make_classification(n + 3000, COLUMNS, n_informative=8, n_classes=CLASSES, class_sep=1.5, random_state=0)
    whole = EmbeddingClassifier(random_state=0).fit(X[:n], y[:n])
    models = {"whole": whole, "compressed": whole.compress()}
    new = np.resize(X[n:], (NEW // (10 if quick else 1), COLUMNS))
    many = floor.side_by_side({name: partial(each.predict_proba, new) for name, each in models.items()}, 3)
    one = floor.side_by_side({name: partial(each.predict_proba, new[:1]) for name, each in models.items()}, 200)
    losses = {name: float(each.losses_of_rows(X[n:], y[n:]).mean()) for name, each in models.items()}
    sizes = {name: _bytes_of(each) for name, each in models.items()}
    return {
        "compressed: points, of the whole model's": len(models["compressed"].points_) / len(whole.points_),
        "compressed: predict_proba of many rows, of the whole model's": many["compressed"] / many["whole"],
        "compressed: predict_proba of many rows, microseconds a row": 1e6 * many["compressed"] / len(new),
        "compressed: predict_proba of one row, milliseconds": 1e3 * one["compressed"],
        "compressed: kilobytes of the file": sizes["compressed"] / 1e3,
        "compressed: rise of the log loss of new rows": losses["compressed"] - losses["whole"],
    }


def _bytes_of(model: EmbeddingClassifier) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kw"
        kw.save(model, path)
        return os.path.getsize(path)


def _against(base: str, tasks: dict[str, Callable[[], object]], prefix: str, repeats: int) -> dict[str, float]:
    def without_gradient(task: Callable[[], object]) -> object:
        with torch.no_grad():
            return task()

    seconds = floor.side_by_side({name: partial(without_gradient, task) for name, task in tasks.items()}, repeats)
    return {prefix + name: value / seconds[base] for name, value in seconds.items() if name != base}
