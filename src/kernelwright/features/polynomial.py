"""Monomials of the inputs."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from kernelwright.kernels.feature import FeatureMap
from kernelwright.kernels.vector import whole_number
from kernelwright.parameters import Positive
from kernelwright.storage.saved import saved

__all__ = ["Polynomial"]


@saved("polynomial-features", fields="degree n_inputs", parameters="log_lengthscale log_offset")
class Polynomial(FeatureMap):
    """All monomials up to a degree, weighted so that inner products are ``(x . z / lengthscale^2 + offset)^degree``.

    There are ``(d + degree)! / (d! degree!)`` of them, so this suits few inputs and a low degree.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.features import Polynomial
    >>> X = np.array([[3.0]])
    >>> Polynomial(degree=2).fit(X)(X).round(4)
    array([[1.    , 4.2426, 9.    ]])
    """

    lengthscale = Positive(vectors=False)
    offset = Positive(vectors=False)
    MOST_FEATURES = 20_000

    def __init__(self, degree: int = 2, lengthscale: float = 1.0, offset: float = 1.0) -> None:
        super().__init__()
        self.degree, self.lengthscale, self.offset = whole_number(degree, "degree", self), lengthscale, offset
        self.n_inputs: int | None = None

    @property
    def n_features(self) -> int:
        if self.n_inputs is None:
            raise ValueError("The number of polynomial features depends on the inputs: call fit(X) first.")
        return math.comb(self.n_inputs + self.degree, self.degree)

    def prepare_(self, X: Tensor, weights: Tensor | None = None) -> None:
        self.n_inputs = X.shape[1]
        if self.n_features > self.MOST_FEATURES:
            raise ValueError(
                f"{self.n_inputs} inputs have {self.n_features} monomials of degree {self.degree}, more than "
                f"{self.MOST_FEATURES}. Use a lower degree, or Nystroem(kernels.Polynomial(...))."
            )

    def forward(self, X: Tensor) -> Tensor:
        self._check_inputs(X, self.n_inputs)
        extended = torch.cat([self.offset.sqrt().expand(len(X), 1), X / self.lengthscale], 1)
        factors, scale = _monomials(X.shape[1] + 1, self.degree)
        product = extended[:, factors[:, 0]]
        for column in factors.T[1:]:
            product = product * extended[:, column]
        return product * scale


@cache
def _monomials(n_inputs: int, degree: int) -> tuple[Tensor, Tensor]:
    """Return the inputs that each monomial multiplies, and the root of its multinomial coefficient."""
    factors = np.array(list(itertools.combinations_with_replacement(range(n_inputs), degree)))
    repeats = np.array([math.prod(math.factorial(c) for c in np.bincount(row)) for row in factors])
    return torch.from_numpy(factors), torch.from_numpy(np.sqrt(math.factorial(degree) / repeats))
