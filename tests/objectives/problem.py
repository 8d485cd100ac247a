"""A small problem, and settings at which objectives are compared with naive ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernelwright.embedding import TrainingSet
from kernelwright.inputs.labels import one_hot
from kernelwright.objectives.evaluate import OBJECTIVES
from tests import reference as naive
from tests.cases import N_FEATURES, by_id

N, M = 14, 3
RNG = np.random.default_rng(7)
LABELS = RNG.permutation(np.arange(N) % M)
X = RNG.normal(size=(N, N_FEATURES)) + 0.8 * np.eye(M, N_FEATURES)[LABELS]
Y = np.eye(M)[LABELS]
WHOLE = RNG.integers(1, 4, N)
WEIGHTS = RNG.uniform(0.3, 2.5, N)  # some below one: such a row is left out whole
RIDGE, TAU, EPSILON = 0.05, 0.07, 0.02
FOLDS = naive.turns(LABELS, 2)
GROUPS = np.array([0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6])
PRIOR = np.array([0.5, 0.3, 0.2])

each_objective = pytest.mark.parametrize("name", OBJECTIVES)
each_loss = pytest.mark.parametrize("loss", ["log", "brier"])
weightings = pytest.mark.parametrize("w", [None, WEIGHTS], ids=["unweighted", "weighted"])


def kernels(*ids: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", by_id(*ids), ids=lambda case: case.id)


def settings(**changes) -> dict:
    return {"tau": TAU, "loss": "log", "epsilon": EPSILON, "folds": FOLDS} | changes


def rows(**columns) -> TrainingSet:
    """Return the rows of the problem; fields of the training set can be replaced by arrays."""
    given = {name: None if column is None else torch.from_numpy(np.asarray(column)) for name, column in columns.items()}
    return TrainingSet.of(torch.from_numpy(X), one_hot(LABELS, M), **given)


def assert_gradients_close(
    found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], tol: float = 1e-9
) -> None:
    assert found.keys() == expected.keys()
    scale = max(float(g.abs().max()) for g in expected.values())
    for key, gradient in expected.items():
        assert found[key].shape == gradient.shape, key
        torch.testing.assert_close(
            found[key], gradient, rtol=tol, atol=tol * scale, msg=lambda m, key=key: f"{key}: {m}"
        )
