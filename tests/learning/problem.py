"""A small problem for the training loop."""

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian
from kernelwright.learning import LBFGS, Adam
from kernelwright.objectives import Hyperparameters, Objective, objective_named

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
LABELS = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
DATA = TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, 2))
OBJECTIVES = [
    objective_named("rademacher", complexity_weight="4e/n"),
    objective_named("leave-one-out", complexity_weight="1/n", loss="brier", shrinkage=1.0),
    objective_named("held-out"),
    objective_named("folds", loss="brier", folds=3),
]
LOO = OBJECTIVES[1]

each_optimizer = pytest.mark.parametrize(
    "optimizer", [LBFGS(max_iter=15), Adam(max_iter=25)], ids=lambda optimizer: type(optimizer).__name__
)


def start() -> Hyperparameters:
    return Hyperparameters(Gaussian([2.0, 2.0, 2.0]), 0.1)


def value_of(objective: Objective, hyper: Hyperparameters) -> float:
    return objective(hyper, DATA).value


def at(values: dict[str, np.ndarray]) -> Hyperparameters:
    return Hyperparameters(Gaussian(values["kernel.lengthscale"]), float(values["ridge"]))


class Watched:
    """An objective that records the points at which it was evaluated, and can be made to fail."""

    def __init__(self, objective: Objective, fail=lambda hyper, calls: None) -> None:
        self.objective, self.fail, self.seen = objective, fail, []

    def __call__(self, hyper, data, workspace=None):
        self.seen.append(data.points)
        self.fail(hyper, len(self.seen))
        return self.objective(hyper, data)


def raise_at(step: int, error: BaseException):
    calls = []

    def callback(_):
        calls.append(1)
        if len(calls) == step:
            raise error

    return callback
