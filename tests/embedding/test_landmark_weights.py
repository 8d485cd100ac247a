"""Embeddings in the span of landmarks against their ridge regression, and against the exact one."""

import numpy as np
import pytest
import torch

from kernelwright.embedding.conditional import FactorisedEmbedding, merge_rows
from kernelwright.embedding.landmark_weights import embed_any_by_landmarks
from kernelwright.embedding.target_space import TargetSpace
from kernelwright.inputs.any_targets import DistinctTargets
from kernelwright.kernels import Matern
from kernelwright.numerics.linalg import factorise

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(60, 2)), np.zeros((5, 2))])
Y = np.append(np.sin(2 * X[:60, 0]) + 0.3 * RNG.normal(size=60), np.full(5, 0.25))  # five equal rows
NEW = torch.from_numpy(RNG.normal(size=(7, 2)))
RIDGE = 1e-2


def both(kernel, landmarks, fills):
    distinct = DistinctTargets.of(Y)
    space, rows = TargetSpace.of(distinct), merge_rows(X, distinct.number, kernel, None)
    chosen = rows.points if landmarks is None else rows.points[:landmarks]
    noise = RIDGE * len(Y) / torch.from_numpy(rows.counts).double()
    exact = FactorisedEmbedding(kernel, RIDGE, rows, factorise(kernel.matrix(rows.points), noise), fills=fills)
    return exact, embed_any_by_landmarks(kernel, rows, chosen, RIDGE, space, fills=fills)


@pytest.mark.parametrize("fills", [False, True])
def test_with_all_rows_as_landmarks_it_is_the_exact_embedding(fills):
    kernel = Matern(nu=0.5)
    exact, few = both(kernel, None, fills)
    K = kernel(NEW, exact.points).detach()
    for name in ("masses", "whole_masses", "row_weights"):
        torch.testing.assert_close(getattr(few, name)(K), getattr(exact, name)(K), rtol=0, atol=1e-7)
    values = np.column_stack([Y, Y**2])
    for ours, theirs in zip(few.solve(values), exact.solve(values), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("fills", [False, True])
def test_it_is_the_ridge_regression_in_the_span_of_the_landmarks(fills):
    kernel = Matern(0.7, nu=0.5)
    _, few = both(kernel, 20, fills)
    M, g = few.points.numpy(), np.cos(Y)
    K_nM, K_MM, mean = kernel(X, M), kernel(M), g.mean() * fills
    alpha = np.linalg.solve(K_nM.T @ K_nM + RIDGE * len(Y) * K_MM, K_nM.T @ (g - mean))
    expected = mean + kernel(NEW.numpy(), M) @ alpha
    K = torch.from_numpy(kernel(NEW.numpy(), M))
    means, coefficients = few.solve(g[:, None])
    np.testing.assert_allclose((means + K @ coefficients)[:, 0], expected, atol=1e-7)
    np.testing.assert_allclose(few.row_weights(K).numpy() @ g, expected, atol=1e-7)
    np.testing.assert_allclose(few.masses(K).numpy() @ np.cos(few.space.values), expected, atol=1e-7)
    np.testing.assert_allclose(few.whole_masses(K).sum(1), 1.0, atol=1e-9)
