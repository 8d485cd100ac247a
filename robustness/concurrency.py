"""One model in many threads and processes, and global state that must not change."""

import locale
import os
import random
import signal
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from threadpoolctl import threadpool_info

import kernelwright as kw
from robustness.faults import Row, Tally, blobs, python


def figures(*, quick: bool) -> list[Row]:
    """Make a row for each kind of concurrency, and for global state."""
    models = _models(quick)
    rounds = 2 if quick else 20
    rows = [
        _threads(models, rounds),
        _fits_in_threads(2 if quick else 8),
        _processes(models, "fork", 2 if quick else 8),
    ]
    if not quick:
        rows.append(_processes(models, "spawn", 2))
    return [*rows, _global_state(), _import()]


def _models(quick: bool) -> list[Any]:
    X, y = blobs(200)
    models = [
        kw.EmbeddingClassifier(random_state=0),
        kw.EmbeddingNetworkClassifier(training=kw.networks.Training(max_epochs=3), random_state=0),
        kw.LearnedKernelClassifier(),
        kw.PredictionSets(kw.EmbeddingClassifier(random_state=0)),
    ]
    return [model.fit(X, y) for model in (models[:2] if quick else models)]


def _answer(model: Any) -> np.ndarray:
    X, _ = blobs(500, seed=1)
    return model.predict_set(X) if isinstance(model, kw.PredictionSets) else model.decision_function(X)


def _threads(models: list[Any], rounds: int) -> Row:
    tally = Tally("predictions from 32 threads are those of one")
    for model in models:
        expected = _answer(model)
        with ThreadPoolExecutor(32) as pool:
            for found in pool.map(_answer, [model] * 32 * rounds):
                tally.check(np.array_equal(found, expected), type(model).__name__)
    return tally.row()


def _fits_in_threads(n: int) -> Row:
    """Check that concurrent fits give what a single one gives, and leave thread counts alone."""
    tally = Tally("fits in 8 threads are those of one")
    X, y = blobs(150)
    kinds = [kw.EmbeddingClassifier(random_state=0), kw.KreinSVC(kw.kernels.Gaussian(2.0))]
    module, training = kw.networks.MLP(dropout=0.2), kw.networks.Training(max_epochs=3)
    kinds.append(kw.EmbeddingNetworkClassifier(module, training=training, random_state=0))
    for kind in kinds:
        expected = clone(kind).fit(X, y).decision_function(X)
        before = [library["num_threads"] for library in threadpool_info()]
        with ThreadPoolExecutor(8) as pool:
            for model in pool.map(lambda kind: clone(kind).fit(X, y), [kind] * n):
                tally.check(np.array_equal(model.decision_function(X), expected), type(kind).__name__)
        tally.check([library["num_threads"] for library in threadpool_info()] == before, "threads of libraries")
    return tally.row()


def _processes(models: list[Any], how: str, n: int) -> Row:
    tally = Tally(f"predictions from {'forked' if how == 'fork' else 'spawned'} processes are those of one")
    with ProcessPoolExecutor(2, mp_context=get_context(how)) as pool:
        for model in models:
            expected = _answer(model)
            for found in pool.map(_answer, [model] * n):
                tally.check(np.allclose(found, expected, rtol=0, atol=1e-12), type(model).__name__)
    return tally.row()


# Global state ------------------------------------------------------------------------------------------


def global_state() -> dict[str, Any]:
    """Collect the global state that a library might change unnoticed."""
    return {
        "numpy's random numbers": str(np.random.get_state()),  # noqa: NPY002
        "Python's random numbers": random.getstate(),
        "torch's random numbers": torch.get_rng_state().tolist(),
        "default dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads of torch": torch.get_num_threads(),
        "threads of libraries": sorted((library["filepath"], library["num_threads"]) for library in threadpool_info()),
        "warnings": list(warnings.filters),
        "numpy's errors": np.geterr(),
        "numpy's printing": str(np.get_printoptions()),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)],
        "locale": locale.setlocale(locale.LC_ALL),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "recursion": sys.getrecursionlimit(),
        "hooks": [sys.excepthook, sys.unraisablehook, threading.excepthook],
        "backend": sys.modules["matplotlib"].rcParams._get("backend") if "matplotlib" in sys.modules else None,
    }


def _uses(folder: Path) -> dict[str, Any]:
    """List ordinary uses of the library, one for each estimator and package."""
    X, y = blobs(80)
    path = folder / "model.kw"
    estimators = [
        kw.EmbeddingClassifier(),
        kw.EmbeddingClassifier(features=kw.features.RandomFourier(50)),
        kw.EmbeddingClassifier(kw.kernels.Gaussian(1.0), solver=kw.solvers.Landmarks(20)),
        kw.ConditionalMeanEmbedding(),
        kw.EmbeddingNetworkClassifier(
            kw.networks.MLP(dropout=0.1),
            training=kw.networks.Training(max_epochs=2, checkpoint=folder / "checkpoint"),
        ),
        kw.HyperKernelRidge(),
        kw.HyperKernelSVR(),
        kw.KreinSVC(kw.kernels.Gaussian(1.0)),
        kw.LearnedKernelClassifier(),
        kw.PredictionSets(kw.EmbeddingClassifier()),
        kw.research.baselines.BayesianMKL(),
        kw.research.baselines.RandomFeatureAlignment(),
    ]
    uses: dict[str, Any] = {repr(each): (lambda each=each: each.fit(X, y)) for each in estimators}
    model = kw.EmbeddingClassifier(random_state=0).fit(X, y)

    def report() -> None:
        import pandas as pd

        from kernelwright import reports, tables

        frame = pd.DataFrame(X, columns=list("abcdef")).assign(target=y.astype(str))
        reports.model_report(tables.TabularModel.fit(tables.TrainingTable.of(tables.as_table(frame), "target")))

    def refused() -> None:
        try:
            kw.EmbeddingClassifier().fit(X * np.nan, y)
        except ValueError:
            return
        raise AssertionError("a fit accepted NaN")

    return uses | {
        "predict_proba": lambda: model.predict_proba(X),
        "risk_bound": lambda: model.risk_bound(),
        "save and load": lambda: (kw.save(model, path), kw.load(path)),
        "datasets": lambda: kw.datasets.load("iris"),
        "report": report,
        "a fit that is refused": refused,
    }


def _global_state() -> Row:
    tally = Tally("nothing global is changed by a use of the library")
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import matplotlib.figure  # noqa: F401, sets things of its own
        import torch._dynamo  # noqa: F401, the same: a variable of the environment and a warning filter

        for name, use in _uses(Path(folder)).items():
            before = global_state()
            use()
            changed = [what for what, value in global_state().items() if value != before[what]]
            tally.check(not changed, f"{name} changed {changed}")
    return tally.row()


def _import() -> Row:
    """Check the same for importing the library and all its modules."""
    tally = Tally("nothing global is changed by importing the library")
    source = Path(__file__).read_text()
    body = source[source.index("def global_state") : source.index("def _uses")]
    code = f"""
import locale, os, random, signal, sys, threading, warnings, importlib, pkgutil
from typing import Any
import numpy as np, torch, pandas, matplotlib.figure
import sklearn.calibration, sklearn.datasets, sklearn.model_selection, sklearn.svm
from threadpoolctl import threadpool_info
{body}
before = global_state()
import kernelwright
for found in pkgutil.walk_packages(kernelwright.__path__, "kernelwright."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print([what for what, value in global_state().items() if value != before[what]])
"""
    done = python(code, check=False)
    tally.check(done.stdout.strip() == "[]", done.stdout + done.stderr[-500:])
    return tally.row()
