"""Rows inside and outside a disc, for testing every way to choose hyperparameters."""

import copy

import numpy as np
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Kernel
from kernelwright.learning import Choice, LearningMethod, LearningTask, choose

N = 60
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
LABELS = (np.hypot(*X.T) + 0.1 * RNG.normal(size=N) > 1.1).astype(int)  # inside or outside a disc


def data(points: np.ndarray = X, labels: np.ndarray = LABELS, **how) -> TrainingSet:
    return TrainingSet.of(torch.from_numpy(points), one_hot(labels, 2), **how)


def run(
    kernel: Kernel, method: LearningMethod, rows: TrainingSet | None = None, seed: int = 0, ridge="auto", **how
) -> Choice:
    generator = torch.Generator().manual_seed(seed)
    return choose(method, LearningTask(copy.deepcopy(kernel), rows or data(), ridge, generator, **how))


def raise_once(step: int, error: BaseException):
    calls = []

    def callback(_):
        calls.append(1)
        if len(calls) == step:
            raise error

    return callback, calls
