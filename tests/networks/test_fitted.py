"""A trained network with its embedding, on new rows."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

from kernelwright.embedding.support import KernelSupport
from kernelwright.kernels import Gaussian
from kernelwright.networks.fitted import FittedNetwork, InputReader
from kernelwright.networks.heads import EmbeddingNetwork, KernelHead, LinearHead

X = np.random.default_rng(0).normal(size=(6, 2, 3))


def test_rows_are_scaled_column_by_column_and_flat_where_asked_for():
    scaler = StandardScaler().fit(X.reshape(6, 6))
    expected = scaler.transform(X.reshape(6, 6))
    np.testing.assert_array_equal(InputReader(scaler, (2, 3), flat=True)(X), expected)
    np.testing.assert_array_equal(InputReader(scaler, (2, 3), flat=False)(X), expected.reshape(6, 2, 3))
    with pytest.raises(ValueError, match=r"Expected inputs of shape \(2, 3\), as in fit\. Got \(3, 3\) instead\."):
        InputReader(scaler, (2, 3), flat=True)(np.zeros((1, 3, 3)))


def test_read_only_rows_are_taken():
    frozen = X.copy()
    frozen.flags.writeable = False
    assert InputReader(None, (2, 3), flat=True)(frozen).shape == (6, 6)


def fitted(head, coefficients, points=None):
    network = EmbeddingNetwork(nn.Flatten().double(), head)
    reader, support = InputReader(None, (2, 3), flat=False), KernelSupport(0.5, 6)
    return FittedNetwork(reader, network, coefficients, points, support, ridge=0.1, jitter=0.0, n_features=6)


def test_outputs_are_features_times_coefficients():
    W = torch.arange(14, dtype=torch.float64).reshape(7, 2)
    model = fitted(LinearHead(0.1), W)
    Z = np.column_stack([X.reshape(6, 6), np.ones(6)])
    np.testing.assert_allclose(model.outputs(X)[0], Z.astype(np.float32).astype(float) @ W.numpy(), rtol=1e-6)
    assert model.kernel is None
    assert model.scaler is None
    assert model.n_support_rows == 6


def test_a_kernel_is_taken_with_the_points_and_the_constant_is_no_support():
    points = torch.from_numpy(X[:2].reshape(2, 6)).float().double()
    V = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    model = fitted(KernelHead(Gaussian(2.0), 0.1), V, points)
    K = Gaussian(2.0)(points.numpy())
    outputs, support = model.outputs(X[:2])
    np.testing.assert_allclose(outputs, (K + 1.0) @ V.numpy(), rtol=1e-6)
    np.testing.assert_allclose(support, [2.0, 2.0], rtol=1e-6)  # k(x, x) = 1 over the level
    assert isinstance(model.kernel, Gaussian)
