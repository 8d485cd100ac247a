"""One objective value and gradient (n = 2000, d = 16, 5 classes, float64) against the least that any method needs."""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian, Laplace
from kernelwright.numerics.distances import squared_euclidean
from kernelwright.numerics.linalg import Workspace
from kernelwright.objectives import Hyperparameters, objective_named


def problem(n: int, d: int, m: int, precision: torch.dtype = torch.float64) -> TrainingSet:
    """Draw random rows and labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, m, n)
    return TrainingSet.of(torch.from_numpy(X).to(precision), one_hot(y, m).to(precision))


def gram_and_cholesky(data: TrainingSet) -> None:
    """Compute a Gram matrix and its Cholesky factor: the floor."""
    K = squared_euclidean(data.points / 4.0).mul_(-0.5).exp_()
    K.diagonal().add_(0.01 * len(K))
    factorise = lapack.dpotrf if K.dtype == torch.float64 else lapack.spotrf
    factorise(K.numpy().T, lower=1, clean=0, overwrite_a=1)


def by_autograd(data: TrainingSet) -> None:
    """Differentiate the bound objective through everything, as one would first write it."""
    n = len(data)
    log_scale = torch.full((data.points.shape[1],), np.log(4.0), dtype=torch.float64, requires_grad=True)
    log_ridge = torch.tensor(np.log(0.01), dtype=torch.float64, requires_grad=True)
    X = data.points / log_scale.exp()
    half = 0.5 * (X * X).sum(1)
    K = torch.exp(X @ X.T - half[:, None] - half)
    L = torch.linalg.cholesky(K + n * log_ridge.exp() * torch.eye(n, dtype=torch.float64))
    V = torch.cholesky_solve(data.targets, L)
    P = K @ V
    loss = -torch.log((P * data.targets).sum(1).clamp(1e-15, 1.0)).mean()
    (loss + 4 * np.e / n * torch.sqrt((V * P).sum())).backward()


def value_and_gradient(
    data: TrainingSet, name: str, kernel: Gaussian | Laplace, loss: str, precision: str = "double"
) -> Callable[[], object]:
    """Return one evaluation of an objective, with a reused workspace as in the training loop."""
    workspace = Workspace()
    kernel.prepare_(data.points)
    objective = objective_named(name, complexity_weight="4e/n", loss=loss, precision=precision)
    hyper = Hyperparameters(kernel, 0.01)
    return lambda: objective(hyper, data, workspace)


def side_by_side(tasks: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Time the tasks in turn, so that a busy moment hits them alike; return the median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def rows(quick: bool, n: int = 2000) -> list[dict[str, object]]:
    """Time objectives against the floor."""
    d, m = 16, 5
    data = problem(n, d, m)

    def ours(name: str, kernel: Gaussian | Laplace, loss: str, precision: str = "double") -> Callable[[], object]:
        return value_and_gradient(data, name, kernel, loss, precision)

    tasks = {
        "floor: Gram + Cholesky": lambda: gram_and_cholesky(data),
        "rademacher, Gaussian": ours("rademacher", Gaussian(4.0, ard=True), "log"),
        "rademacher, Gaussian, single factor": ours("rademacher", Gaussian(4.0, ard=True), "log", "single"),
        "rademacher, Laplace": ours("rademacher", Laplace(20.0, ard=True), "log"),
        "leave-one-out, Gaussian": ours("leave-one-out", Gaussian(4.0, ard=True), "brier"),
        "leave-one-out, Laplace": ours("leave-one-out", Laplace(20.0, ard=True), "brier"),
        "two folds, Gaussian": ours("folds", Gaussian(4.0, ard=True), "brier"),
        "held-out half, Gaussian": ours("held-out", Gaussian(4.0, ard=True), "log"),
        "rademacher by autograd": lambda: by_autograd(data),
    }
    with threadpool_limits(1):  # threads of two libraries compete for few cores: see threads.threads_for
        seconds = side_by_side(tasks, 5 if quick else 11)
    floor = seconds["floor: Gram + Cholesky"]
    return [
        {"task": name, "milliseconds": 1e3 * value, "times the floor": value / floor} for name, value in seconds.items()
    ]
