"""Learned kernel functions: recovery of known kernels, speed, table 2 of [Liu2021], and many rows."""

import time
import warnings

import numpy as np
import torch

import kernelwright as kw
from kernelwright.research.experiments import liu_table2
from kernelwright.research.experiments.runner import read_published


def log_kernel(X, Z):
    """Return -log(1 + distance), an indefinite similarity."""
    return -np.log1p(torch.cdist(torch.as_tensor(X), torch.as_tensor(Z)).numpy())


def standardised(name):
    """Load a data set and standardise its columns."""
    X, y = kw.datasets.load(name)
    X = np.asarray(X, dtype=np.float64)
    deviation = X.std(0)
    return (X - X.mean(0)) / np.where(deviation > 0, deviation, 1.0), y


def known(quick=False):
    """Learn a kernel from its matrix on 1000 points, and measure the relative error on new points."""
    rows = []
    for name in ("segment", "digits", "banknote"):
        X, _ = standardised(name)
        X = X[np.random.default_rng(0).permutation(len(X))]
        m = 300 if quick else 1000
        old, new = X[:m], X[m : m + 300]
        for label, kernel in (("Gaussian", kw.kernels.Gaussian(X.shape[1] ** 0.5)), ("log", log_kernel)):
            start = time.process_time()
            model = kw.HyperKernelRidge(random_state=0).fit(old, kernel(old, old))
            seconds = time.process_time() - start
            errors = [
                np.linalg.norm(model.predict(new, Z) - kernel(new, Z)) / np.linalg.norm(kernel(new, Z))
                for Z in (new, old)
            ]
            rows.append(
                {
                    "data": name,
                    "target": label,
                    "points": m,
                    "error new-new %": 100 * errors[0],
                    "error new-old %": 100 * errors[1],
                    "CPU seconds": seconds,
                }
            )
    return rows


def evaluation(quick=False):
    """Time 10,000 x 1000 values of a learned kernel against a plain Gaussian, in turn, the best of several."""
    rows = []
    torch.set_num_threads(1)
    for n_features in (4, 16, 54):
        random = np.random.default_rng(0)
        X, Z = (torch.from_numpy(random.normal(size=(n, n_features))) for n in (10_000, 1000))
        plain = kw.kernels.Gaussian(n_features**0.5)
        learned = kw.HyperKernelRidge(random_state=0).fit(Z.numpy(), plain(Z.numpy())).kernel_
        times = {"plain": [], "learned": []}
        for _ in range(3 if quick else 10):
            for name, kernel in (("plain", plain), ("learned", learned)):
                start = time.perf_counter()
                with torch.no_grad():
                    kernel(X, Z)
                times[name].append(time.perf_counter() - start)
        best = {name: min(values) for name, values in times.items()}
        rows.append(
            {
                "features": n_features,
                "plain Gaussian, s": best["plain"],
                "learned kernel, s": best["learned"],
                "ratio": best["learned"] / best["plain"],
            }
        )
    return rows


def table2(quick=False):
    """Repeat table 2 of [Liu2021] as ``kernelwright reproduce liu-table2`` does, with fewer trials; add means."""
    published = {(p.row, p.column): p.mean for p in read_published(liu_table2.EXPERIMENT.published)}
    rows = []
    for method in liu_table2.METHODS:
        accuracies, seconds = [], []
        for name in liu_table2.SETS:
            trials = 1 if name == "guide1t" else (2 if quick else 5)
            found = [liu_table2.trial(name, method, seed) for seed in range(trials)]
            accuracies.append(np.mean([each["accuracy"] for each in found]))
            seconds.append(np.mean([each["CPU seconds"] for each in found]))
        theirs = [published.get((name, method), np.nan) for name in liu_table2.SETS]
        row = {"method": "kernelwright's default" if method == "default" else method}
        row |= {name: f"{mean:.1f}" for name, mean in zip(liu_table2.SETS, accuracies, strict=True)}
        row |= {"mean %": float(np.mean(accuracies)), "published mean %": float(np.mean(theirs))}
        rows.append(row | {"CPU seconds": float(np.mean(seconds))})
    return sorted(rows, key=lambda row: -row["mean %"])


def many_rows(quick=False):
    """Fit both stages on the large data sets of table 3 of [Liu2021], next to the best published hyper-KRR."""
    from benchmarks.large import covtype_binary, ijcnn1

    rows = []
    for name, load, n, published in (
        ("ijcnn1", ijcnn1, 49_990, "90.94 % in 752 s"),
        ("covtype, class 2", covtype_binary, 232_405, "70.45 % in 2306 s"),
    ):
        X, y, X_test, y_test = load(5000 if quick else n)
        X, y = (X[:5000], y[:5000]) if quick else (X, y)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kw.NumericalRepairWarning)  # the kernel is indefinite
            model = kw.LearnedKernelClassifier().fit(X, y)
        accuracy = 100 * float(np.mean(model.predict(X_test) == y_test))
        rows.append(
            {
                "data": name,
                "rows": len(X),
                "accuracy %": accuracy,
                "CPU seconds": time.process_time() - start,
                "published hyper-KRR": published,
            }
        )
    return rows
