"""The embedding head against autograd through its factorisation, and against a linear + softmax head.

One forward and backward pass at 1000 rows, 512 features and 10 classes, and the least that any exact solve needs (the
features' Gram matrix and its factor); then a whole training step of a convolutional network with 128 features.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg import blas, lapack
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from benchmarks.floor import side_by_side
from kernelwright.embedding import TrainingSet
from kernelwright.networks.heads import BatchObjective, Head, LinearHead
from kernelwright.networks.training import seeded
from kernelwright.objectives import ClippedLogLoss, RademacherObjective
from kernelwright.research.experiments.hsu_network import SoftmaxHead, cnn

EPSILON = 0.1
GOAL = BatchObjective(RademacherObjective(loss=ClippedLogLoss(EPSILON)), tau=0.01)


class ByAutograd(LinearHead):
    """The same objective, differentiated through the Cholesky factor."""

    def backward(self, Z: Tensor, data: TrainingSet, goal: BatchObjective) -> None:
        Z, targets = self.widen(Z), data.targets.to(Z)
        S = Z.T @ Z + len(Z) * self.ridge.to(Z) * torch.eye(Z.shape[1], dtype=Z.dtype)
        W = torch.cholesky_solve(Z.T @ targets, torch.linalg.cholesky(S))
        loss = -((Z @ W) * targets).sum(1).clamp(EPSILON, 1.0).log().mean()
        (loss + goal.tau * (Z.square().sum(1).max() * W.square().sum()).sqrt()).backward()


def of_head(head: Head, Z: Tensor, data: TrainingSet) -> Callable[[], object]:
    """Return one forward and backward pass of a head."""

    def task() -> None:
        Z.grad = None
        head.zero_grad()
        head.backward(Z, data, GOAL)

    return task


def least(Z: Tensor) -> Callable[[], object]:
    """Return the least that an exact solve needs: the Gram matrix and its factor."""
    syrk, potrf = (blas.ssyrk, lapack.spotrf) if Z.dtype == torch.float32 else (blas.dsyrk, lapack.dpotrf)
    features = Z.detach().numpy().T

    def task() -> None:
        gram = syrk(1.0, features, lower=1)
        gram[np.diag_indices(len(gram))] += 10.0
        potrf(gram, lower=1, clean=0, overwrite_a=1)

    return task


def of_step(module: nn.Module, head: Head, images: Tensor, data: TrainingSet) -> Callable[[], object]:
    """Return one training step of a network."""
    module = copy.deepcopy(module)
    optimiser = torch.optim.Adam([*module.parameters(), *head.parameters()], 1e-3)

    def task() -> None:
        optimiser.zero_grad()
        head.backward(module(images), data, GOAL)
        optimiser.step()

    return task


def rows(quick: bool) -> list[dict[str, object]]:
    """Time heads and training steps against linear + softmax."""
    tasks = {}
    with seeded(0):
        targets = torch.eye(10, dtype=torch.float64)[torch.randint(10, (1000,))]
        for precision in (torch.float32, torch.float64):
            Z = torch.randn(1000, 512, dtype=precision, requires_grad=True)
            data = TrainingSet.of(Z.detach(), targets)
            heads = {
                "linear + softmax": SoftmaxHead(512, 10).to(precision),
                "embedding": LinearHead(0.01),
                "embedding by autograd": ByAutograd(0.01),
            }
            for name, head in heads.items():
                tasks[f"{str(precision)[6:]} head: {name}"] = of_head(head, Z, data)
            tasks[f"{str(precision)[6:]} head: Gram matrix and factor alone"] = least(Z)
        images, module = torch.randn(1000, 1, 28, 28), cnn((16, 32), 128)
        data = TrainingSet.of(images, targets)
        tasks["CNN step: linear + softmax"] = of_step(module, SoftmaxHead(128, 10), images, data)
        tasks["CNN step: embedding"] = of_step(module, LinearHead(0.01), images, data)
        with threadpool_limits(1):  # threads of two libraries compete for few cores: see threads.threads_for
            seconds = side_by_side(tasks, 5 if quick else 21)
    return [
        {
            "task": name,
            "milliseconds": 1e3 * value,
            "times linear + softmax": value / seconds[f"{name.split(':')[0]}: linear + softmax"],
        }
        for name, value in seconds.items()
    ]
