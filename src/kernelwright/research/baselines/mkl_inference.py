"""Variational inference for Bayesian efficient multiple kernel learning: the posterior and its evidence bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.special import digamma, log_ndtr

from kernelwright.numerics.linalg import factorise
from kernelwright.storage.saved import saved

__all__ = ["Gamma", "Inference", "Posterior"]

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Gamma:
    """Gamma distributions of one shape and many scales (mean ``shape * scale``)."""

    shape: float
    scale: Tensor

    def after(self, squares: Tensor) -> Gamma:
        """Return the posterior of the precision of zero-mean Gaussian numbers with these expected squares."""
        return Gamma(self.shape + 0.5, 1.0 / (1.0 / self.scale + 0.5 * squares))

    @property
    def mean(self) -> Tensor:
        """``E[x]``."""
        return self.shape * self.scale

    @property
    def mean_log(self) -> Tensor:
        """``E[log x]``."""
        return digamma(torch.tensor(self.shape, dtype=torch.float64)) + self.scale.log()

    def bound(self, prior: Gamma) -> float:
        """Return ``E log p + entropy``: minus the divergence from the prior."""
        shapes = torch.tensor([self.shape, prior.shape], dtype=torch.float64)
        log_gamma, psi = torch.lgamma(shapes), digamma(shapes[0])
        expected = (prior.shape - 1.0) * self.mean_log - self.mean / prior.scale
        expected = expected - log_gamma[1] - prior.shape * prior.scale.log()
        entropy = self.shape + self.scale.log() + log_gamma[0] + (1.0 - self.shape) * psi
        return float((expected + entropy).sum())


def gaussian_bound(precision: Gamma, squares: Tensor, log_determinant: float) -> float:
    """Return ``E log N(x; 0, 1 / precision) + entropy`` of a Gaussian, from E[x^2] and its log determinant."""
    expected = precision.mean_log.sum() - (precision.mean * squares).sum()
    return 0.5 * (float(expected) + log_determinant + squares.numel())


@saved("mkl-posterior")
@dataclass(frozen=True)
class Posterior:
    """The parts of the variational posterior that prediction needs; L outputs, p kernels, n rows."""

    coefficients: Tensor  # E[a], n x L
    bias: Tensor  # E[b], L
    weights: Tensor  # E[e], p
    covariance: Tensor  # of (b, e), (L + p) x (L + p)
    lower_bound: np.ndarray

    def predict(self, K: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and variances of the outputs f at new points, from p x new x n kernel values."""
        n_outputs = len(self.bias)
        g = K @ self.coefficients
        mean = torch.einsum("m,mio->io", self.weights, g) + self.bias
        of_bias, mixed, of_weights = (
            self.covariance[:n_outputs, :n_outputs].diagonal(),
            self.covariance[n_outputs:, :n_outputs],
            self.covariance[n_outputs:, n_outputs:],
        )
        spread = torch.einsum("mio,mk,kio->io", g, of_weights, g) + 2.0 * torch.einsum("mo,mio->io", mixed, g)
        return mean, 1.0 + spread + of_bias


class Inference:
    """Coordinate ascent on the variational bound. Each ``update_*`` is the optimum of one factor given the others."""

    def __init__(self, K: Tensor, Y: Tensor, priors: dict[str, Gamma], margin: float, noise: float) -> None:
        self.K, self.Y, self.priors, self.margin, self.variance = K, Y, priors, margin, noise**2
        p, n, n_outputs = len(K), len(Y), Y.shape[1]
        self.KK = sum(K_m @ K_m for K_m in K) / self.variance
        self.a_squares = torch.ones_like(Y)
        self.f = (1.0 + margin) * Y
        self.g = self.f.expand(p, n, n_outputs)
        self.b, self.e = Y.new_zeros(n_outputs), Y.new_ones(p)
        self.cov = torch.eye(n_outputs + p, dtype=Y.dtype)

    def ascend(self, max_iter: int) -> Posterior:
        """Update all factors ``max_iter`` times, and record the bound after each sweep."""
        bounds = np.empty(max_iter)
        for step in range(max_iter):
            parts = self.update_a() + self.update_g() + self.update_weights()
            bounds[step] = parts + self.update_f()
        return Posterior(self.a, self.b, self.e, self.cov, bounds)

    def update_a(self) -> float:
        """Update q(lambda), then q(a); return their part of the bound."""
        precision = self.priors["sample"].after(self.a_squares)
        Kg = torch.einsum("mij,mjo->io", self.K, self.g) / self.variance
        self.a, variances, log_determinant = torch.empty_like(Kg), torch.empty_like(Kg), 0.0
        for o in range(Kg.shape[1]):
            factor = factorise(self.KK, precision.mean[:, o])
            log_determinant -= factor.log_determinant()
            self.a[:, o] = factor.solve(Kg[:, o : o + 1]).squeeze(1)
            variances[:, o] = factor.inverse_diagonal()
        self.a_squares = self.a**2 + variances
        # E|K a|^2 / variance exceeds |K E[a]|^2 / variance by trace(KK cov), and (KK + diag(lambda)) cov = I.
        self.a_spread = Kg.numel() - float((precision.mean * variances).sum())
        return precision.bound(self.priors["sample"]) + gaussian_bound(precision, self.a_squares, log_determinant)

    def update_g(self) -> float:
        """Update q(G), with one covariance for every row and output; return its part of the bound."""
        n, n_outputs = self.Y.shape
        of_weights, mixed = self.cov[n_outputs:, n_outputs:], self.cov[n_outputs:, :n_outputs]
        p = len(self.e)
        precision = factorise(torch.outer(self.e, self.e) + of_weights, 1.0 / self.variance)
        self.g_cov = precision.solve(torch.eye(p, dtype=self.Y.dtype))
        Ka = self.K @ self.a
        pull = self.e[:, None, None] * (self.f - self.b) - mixed[:, None, :]
        self.g = torch.einsum("mk,kio->mio", self.g_cov, Ka / self.variance + pull)
        rows = n * n_outputs
        misfit = float(((self.g - Ka) ** 2).sum() + rows * self.g_cov.trace()) / self.variance + self.a_spread
        entropy = rows * (p * (1.0 + LOG_2PI) - precision.log_determinant())
        return 0.5 * (entropy - misfit - rows * p * (LOG_2PI + np.log(self.variance)))

    def update_weights(self) -> float:
        """Update q(gamma) and q(omega), then q(b, e) together; return their part of the bound."""
        n, n_outputs = self.Y.shape
        squares = torch.cat([self.b, self.e]) ** 2 + self.cov.diagonal()
        of_bias = self.priors["bias"].after(squares[:n_outputs])
        of_kernels = self.priors["kernel"].after(squares[n_outputs:])
        gg = torch.einsum("mio,kio->mk", self.g, self.g) + n * n_outputs * self.g_cov
        totals = self.g.sum(1)  # p x L
        A = torch.cat([torch.cat([n * torch.eye(n_outputs, dtype=gg.dtype), totals.T], 1), torch.cat([totals, gg], 1)])
        factor = factorise(A, torch.cat([of_bias.mean, of_kernels.mean]))
        log_determinant = -factor.log_determinant()
        right = torch.cat([self.f.sum(0), torch.einsum("mio,io->m", self.g, self.f)])
        mean = factor.solve(right[:, None]).squeeze(1)
        self.cov = factor.into_inverse_()
        self.b, self.e = mean[:n_outputs], mean[n_outputs:]
        squares = mean**2 + self.cov.diagonal()
        # Var(e . g_i + b) over all rows and outputs: (b, e) spread by A, and the spread of g seen through E[e].
        self.f_spread = float((self.cov * A).sum() + n * n_outputs * self.e @ self.g_cov @ self.e)
        parts = gaussian_bound(of_bias, squares[:n_outputs], 0.0)
        parts += gaussian_bound(of_kernels, squares[n_outputs:], log_determinant)
        return parts + of_bias.bound(self.priors["bias"]) + of_kernels.bound(self.priors["kernel"])

    def update_f(self) -> float:
        """Update q(f), Gaussians truncated at the margin; return its part of the bound."""
        mean = torch.einsum("m,mio->io", self.e, self.g) + self.b
        reach = self.Y * mean - self.margin
        log_kept = log_ndtr(reach)
        self.f = mean + self.Y * torch.exp(-0.5 * (reach**2 + LOG_2PI) - log_kept)
        return float(log_kept.sum()) - 0.5 * self.f_spread
