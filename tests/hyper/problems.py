"""Small problems over pairs, and Eq. (6) written out."""

import numpy as np
import torch

from kernelwright.hyper.bases import PairBasis
from kernelwright.hyper.kernels import Gaussian, PointPairs, Sum, Wishart
from kernelwright.hyper.moments import fold_moments
from kernelwright.hyper.targets import MatrixTarget

GAUSSIAN = Gaussian(sigma=1.0, sigma_h=0.7).requires_grad_(False)


SEVERAL = Sum([Gaussian(sigma=0.5, sigma_h=1.5), Gaussian(sigma=1.2, sigma_h=1.0)]).requires_grad_(False)


WISHART = Wishart(delta=2.0, nu=4).requires_grad_(False)


def data(m=8, d=2, seed=0):
    random = np.random.default_rng(seed)
    A = random.normal(size=(m, m))
    return torch.from_numpy(random.normal(size=(m, d))), MatrixTarget.checked(A + A.T, None, m)


def pair_basis(hyper, X):
    i, j = torch.triu_indices(len(X), len(X))
    return PairBasis(hyper, PointPairs(X[i], X[j]))


def no_folds(X):
    return torch.zeros(len(X), dtype=torch.int64)


def whole_moments(basis, X, pairs):
    return fold_moments(basis, X, pairs, no_folds(X))[0, 0]


def all_m2(hyper, X):
    """Compute the whole m^2 x m^2 matrix of Eq. (6)."""
    m = len(X)
    i, j = np.divmod(np.arange(m * m), m)
    pairs = PointPairs(X[i], X[j])
    return hyper(pairs, pairs).numpy()


def symmetric(m, seed=0):
    A = np.random.default_rng(seed).normal(size=(m, m))
    return A + A.T


def points(m=60, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(m, d))


def log_kernel(X, Z):
    return -np.log1p(np.linalg.norm(X[:, None] - Z, axis=-1))


def gaussian(X, Z):
    return np.exp(-(np.linalg.norm(X[:, None] - Z, axis=-1) ** 2) / 4)


def relative_error(K, target):
    return np.linalg.norm(K - target) / np.linalg.norm(target)
