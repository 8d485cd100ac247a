"""The kernel of an explicit feature map."""

from __future__ import annotations

from typing import Any, Self

import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor

from kernelwright.inputs.arrays import as_matrix
from kernelwright.kernels.base import Kernel
from kernelwright.parameters import Parametrised
from kernelwright.storage.saved import saved

__all__ = ["FeatureKernel", "FeatureMap"]


class FeatureMap(Parametrised):
    """Explicit features ``z(x)``. Subclasses write ``forward``, and ``prepare_`` if they depend on the data.

    A map that depends on the data raises an error before it is prepared, and for points with a different number of
    features than it was prepared on.
    """

    def forward(self, X: Tensor) -> Tensor:
        """Return a row of features for each row of X."""
        raise NotImplementedError

    def fit(self, X: Any) -> Self:
        """Draw or choose what depends on the points X; return the map itself."""
        self.forget_()
        self.prepare_(self._points(X))
        return self

    def _points(self, X: Any) -> Tensor:
        return as_matrix(X)

    def forget_(self) -> None:
        """Drop what ``prepare_`` has drawn or chosen, after a parameter has changed."""

    def _check_inputs(self, X: Tensor, n_inputs: int | None) -> None:
        """Raise an error for points that the map is not prepared for."""
        name = type(self).__name__
        if n_inputs is None:
            raise NotFittedError(f"{name} has not seen any points yet. Call fit(X) with training points first.")
        if X.shape[1] != n_inputs:
            raise ValueError(
                f"{name} was prepared on points with {n_inputs} features, but these have {X.shape[1]}. Pass points "
                "of the same kind, or call fit(X) again."
            )

    def set_params(self, **params: Any) -> Any:
        super().set_params(**params)
        self.forget_()
        return self

    @property
    def n_features(self) -> int:
        """The number p of features, known after ``prepare_``."""
        raise NotImplementedError

    @property
    def bound(self) -> float | None:
        """An upper bound of ``|z(x)|^2`` for all x, or None."""
        return None

    def __call__(self, X: Any) -> Any:
        """Return features of user data: a tensor (with gradient) for tensors, else a NumPy array."""
        if torch.is_tensor(X):
            return super().__call__(X)
        with torch.no_grad():
            return super().__call__(as_matrix(X)).numpy()


@saved("feature-kernel", fields="features")
class FeatureKernel(Kernel):
    """``k(x, z) = <features(x), features(z)>``: the linear kernel of an explicit feature map.

    With fewer features than rows, objectives and embeddings use p x p matrices (Algorithm 2 of
    [Hsu2018]_).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.features import Polynomial
    >>> from kernelwright.kernels import FeatureKernel
    >>> X = np.array([[1.0], [2.0]])
    >>> FeatureKernel(Polynomial(degree=2).fit(X))(X).round(6)
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    features: FeatureMap

    def __init__(self, features: FeatureMap) -> None:
        super().__init__()
        self.features = features

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        left = self.features(X)
        return left @ (left if Z is None else self.features(Z)).T

    def _diag(self, X: Tensor) -> Tensor:
        return (self.features(X) ** 2).sum(1)

    @property
    def bounded(self) -> bool:
        return self.features.bound is not None

    def sup_diag(self, X: Any = None) -> Tensor:
        if self.features.bound is None:
            return super().sup_diag(X)
        return torch.tensor(self.features.bound, dtype=torch.float64)
