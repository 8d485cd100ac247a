import numpy as np
import pytest
import torch

from kernelwright.kernels.function import FunctionKernel

X = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 2)))


def test_a_function_is_called_with_arrays():
    kernel = FunctionKernel(lambda X, Z: np.tanh(X @ Z.T))
    torch.testing.assert_close(kernel.forward(X, X[:2]), torch.tanh(X @ X[:2].T))
    torch.testing.assert_close(kernel.matrix(X), torch.tanh(X @ X.T))


def test_a_small_gap_is_rounding_and_a_large_one_is_refused():
    slope = torch.arange(5.0).double()[:, None]
    nearly = FunctionKernel(lambda X, Z: X @ Z.T + (1e-12 * slope).numpy()).matrix(X)
    torch.testing.assert_close(nearly, nearly.T, rtol=0, atol=0)
    with pytest.raises(ValueError, match="must be symmetric"):
        FunctionKernel(lambda X, Z: X @ Z.T + slope.numpy()).matrix(X)


def test_a_matrix_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"here \(5, 3\)\. Got shape \(3, 5\)"):
        FunctionKernel(lambda X, Z: Z @ X.T).forward(X, X[:3])
