"""Rows inside and outside a disc, with an embedding for every solver."""

import numpy as np
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian
from kernelwright.solvers import Solution, Solver

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
LABELS = (np.hypot(*X.T) > 1.1).astype(int)
NEW = torch.from_numpy(RNG.normal(size=(300, 2)))
TRUTH = (np.hypot(*NEW.numpy().T) > 1.1).astype(int)
KERNEL, RIDGE = Gaussian(0.7), 1e-4


def data() -> TrainingSet:
    Y, w = one_hot(LABELS, 2), torch.ones(N, dtype=torch.float64)
    return TrainingSet.of(torch.from_numpy(X), Y, weights=w, prior=ClassTargets(2).prior(Y, w))


def random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def solve(solver: Solver, rows: TrainingSet | None = None, ridge: float = RIDGE) -> Solution:
    return solver.solve(KERNEL, data() if rows is None else rows, ridge, random())


def outputs(found, features=None) -> np.ndarray:
    with torch.no_grad():
        values = KERNEL.forward(NEW, found.points) if features is None else features(NEW)
    return (values @ found.coefficients + data().prior).numpy()
