"""Multiple kernel learning with definite or indefinite kernels and a mixed norm [Kowalski2009]_."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.inputs.arrays import as_matrix, validate_data
from kernelwright.inputs.labels import class_labels, one_hot
from kernelwright.kernels import Gaussian, Kernel, Linear
from kernelwright.numerics.linalg import spectrum
from kernelwright.numerics.memory import check_memory
from kernelwright.research.baselines.alignment import prepared_kernels
from kernelwright.storage.saved import saved

__all__ = ["IndefiniteMKL", "fista", "group_soft_threshold", "soft_threshold"]

PREDICTED_KERNEL_VALUES = 2**22  # kernel values held at once while predicting
NEW_COLUMNS = 100  # of the dictionary that are added at once
TINY = 1e-30  # replaces the norm of a zero kernel matrix


@saved("indefinite-mkl", fields="classes_ kernels_ n_iter_ objective_ coef_ intercept_ points_")
class IndefiniteMKL(ClassifierMixin, BaseEstimator):
    """``f(x) = sum_k sum_i alpha_ki k_k(x_i, x) + b`` of kernels that need not be positive definite [Kowalski2009]_.

    The columns of all kernel matrices form a dictionary. The coefficients minimise ``C sum_i max(0, 1 - y_i f(x_i))^2``
    plus a norm of alpha. This is convex for all kernels, because no norm of a function space is used.

    Parameters
    ----------
    kernels : list of Kernel or None, default=None
        None: the linear kernel and Gaussians of widths 0.1 and 100, for inputs in [0, 1].
    C : float, default=0.3
        Weight of the loss. More columns of the dictionary are used as it grows.
    norm : {"l1", "l12"}, default="l1"
        "l1": the sum of ``|alpha_ki|``, for few pairs of kernel and point. "l12": the sum over kernels of the Euclidean
        norm of ``alpha_k``, for few kernels.
    tol : float, default=0.01
        Largest violation of the optimality conditions, in which the penalty has slope one.
    max_iter : int, default=100_000
        Maximum number of steps. Near the optimum a step takes less than a millisecond for a few hundred rows.

    Attributes
    ----------
    kernels_ : list of Kernel
    coef_ : ndarray of shape (n_kernels, n_rows, n_columns)
        alpha, with one column for two classes, otherwise one for each class against the rest.
    intercept_ : ndarray of shape (n_columns,)
    points_ : ndarray of shape (n_rows, n_features)
        The training points.
    objective_ : float
        The value at the minimum.
    n_iter_ : int
    classes_ : ndarray

    Notes
    -----
    Memory is quadratic in the number of rows, times the number of kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import minmax_scale
    >>> from kernelwright.research.baselines import IndefiniteMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> model = IndefiniteMKL().fit(minmax_scale(X), y)
    >>> bool(model.score(minmax_scale(X), y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernels": [list, tuple, None],
        "C": [Interval(Real, 0, None, closed="neither")],
        "norm": [StrOptions({"l1", "l12"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        *,
        C: float = 0.3,
        norm: str = "l1",
        tol: float = 1e-2,
        max_iter: int = 100_000,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.norm = norm
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> IndefiniteMKL:
        """Solve for the coefficients of all classes at once.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_, labels = class_labels(y, self)
        default = [Linear(), Gaussian(0.1), Gaussian(100.0)]
        points = as_matrix(X)
        self.kernels_ = prepared_kernels(self, default if self.kernels is None else self.kernels, points)
        n, n_kernels = len(X), len(self.kernels_)
        check_memory(8.0 * (2 * n_kernels + 2) * n**2, f"A dictionary of {n_kernels} kernels at {n} rows", "Use fewer.")
        Y = 2.0 * one_hot(labels, len(self.classes_)) - 1.0
        matrices = [kernel.matrix(points) for kernel in self.kernels_]
        means = torch.cat([K.mean(0) for K in matrices])
        signs = Y[:, 1:] if len(self.classes_) == 2 else Y
        problem = DictionaryProblem([K - K.mean(0) for K in matrices], signs, float(self.C), self.norm)
        A, self.n_iter_, violation = minimise(problem, tol=float(self.tol), max_iter=int(self.max_iter))
        if violation > self.tol:
            warnings.warn(
                f"The coefficients did not converge in {self.max_iter} steps: the optimality conditions are "
                f"violated by {violation:.2g}, not {self.tol:.2g}. Scale the inputs to [0, 1], lower C, or raise "
                "max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.objective_ = problem.objective(A)
        self.coef_ = A[:-1].reshape(n_kernels, n, -1).numpy()
        self.intercept_ = (A[-1] - means @ A[:-1]).numpy()  # of columns with their means
        self.points_ = X
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return ``f(x)``: one number for two classes, otherwise one column for each class."""
        check_is_fitted(self)
        X = as_matrix(validate_data(self, X, dtype=np.float64, reset=False))
        blocks = X.split(max(1, PREDICTED_KERNEL_VALUES // len(self.points_)))
        with torch.no_grad():
            values = torch.cat([self._outputs(block) for block in blocks]).numpy()
        return values[:, 0] if len(self.classes_) == 2 else values

    def _outputs(self, X: Tensor) -> Tensor:
        F = torch.from_numpy(self.intercept_).expand(len(X), -1).clone()
        for kernel, alpha in zip(self.kernels_, self.coef_, strict=True):
            used = np.flatnonzero(alpha.any(1))
            if len(used):
                F += kernel.forward(X, torch.from_numpy(self.points_[used])) @ torch.from_numpy(alpha[used])
        return F

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of the largest output."""
        F = self.decision_function(X)
        best = (F > 0).astype(np.int64) if F.ndim == 1 else F.argmax(1)
        return self.classes_[best]


class DictionaryProblem:
    """``C sum max(0, 1 - S o D A)^2 + penalty(A)`` with the dictionary ``D = [K_1 ... K_T 1]``; A ends in free biases.

    Kernel columns are centred, and the bias makes up for it. Wide kernels are nearly constant: without centring their
    columns would be almost parallel, and steps would be tiny.
    """

    def __init__(self, parts: list[Tensor], signs: Tensor, C: float, norm: str) -> None:
        self.parts, self.signs, self.C, self.norm = parts, signs, C, norm
        self.D = torch.cat([*parts, torch.ones(len(signs), 1, dtype=torch.float64)], 1)
        self.counts = [part.shape[1] for part in parts]

    def of_columns(self, kept: Tensor) -> DictionaryProblem:
        """Return the problem with some of the columns."""
        parts = [part[:, some] for part, some in zip(self.parts, kept.split(self.counts), strict=True)]
        return DictionaryProblem(parts, self.signs, self.C, self.norm)

    def steps(self) -> Tensor:
        """Return a step size for each coefficient, the same within a kernel.

        A common step size would be limited by the widest kernel, whose matrix has norm n; narrow kernels have norm 1.
        """
        sizes = [_squared_norm(part) for part in self.parts] + [float(len(self.signs))]
        counts = torch.tensor([*self.counts, 1])
        squares = torch.tensor(sizes, dtype=torch.float64).repeat_interleave(counts)
        return 1.0 / (2.0 * self.C * _squared_norm(self.D / squares.sqrt()) * squares)[:, None]

    def _slack(self, A: Tensor) -> Tensor:
        return (1.0 - self.signs * (self.D @ A)).clamp(min=0.0)

    def gradient(self, A: Tensor) -> Tensor:
        """Return the gradient of the loss."""
        return self.D.T @ (-2.0 * self.C * self.signs * self._slack(A))

    def prox(self, A: Tensor, steps: Tensor) -> Tensor:
        """Apply the proximal operator of the penalty, with a step size for each row."""
        if self.norm == "l1":
            return torch.cat([soft_threshold(A[:-1], steps[:-1]), A[-1:]])
        blocks = zip(A[:-1].split(self.counts), steps[:-1].split(self.counts), strict=True)
        return torch.cat([*(group_soft_threshold(block, step[:1]) for block, step in blocks), A[-1:]])

    def objective(self, A: Tensor) -> float:
        """Return the sum of loss and penalty."""
        blocks = A[:-1].split(self.counts)
        penalty = A[:-1].abs().sum() if self.norm == "l1" else torch.stack([B.norm(dim=0) for B in blocks]).sum()
        return float(self.C * (self._slack(A) ** 2).sum() + penalty)


def _squared_norm(part: Tensor) -> float:
    """Return the square of the spectral norm."""
    gram = part.T @ part if part.shape[1] < part.shape[0] else part @ part.T
    return max(float(spectrum(gram)[-1]), TINY) if gram.numel() else 1.0


def minimise(problem: DictionaryProblem, *, tol: float, max_iter: int) -> tuple[Tensor, int, float]:
    """Return the coefficients, the number of steps, and the violation of the optimality conditions.

    With the l1 norm most coefficients are zero. So columns are added, the most promising first, until the loss has a
    slope of at most one along all other columns.
    """
    A, used = torch.zeros(problem.D.shape[1], problem.signs.shape[1], dtype=torch.float64), 0
    kept = torch.full((len(A) - 1,), problem.norm != "l1")
    while True:
        part, rows = problem.of_columns(kept), torch.cat([kept, torch.ones(1, dtype=torch.bool)])
        A[rows], steps, violation = fista(
            part.gradient, part.prox, A[rows], part.steps(), tol=tol, max_iter=max_iter - used
        )
        used += steps
        excess = (problem.gradient(A)[:-1].abs().amax(1) - 1.0).clamp(min=0.0).masked_fill(kept, 0.0)
        worst, columns = excess.topk(min(NEW_COLUMNS, len(excess)))
        if worst[0] <= tol or used >= max_iter:
            return A, used, max(violation, float(worst[0]))
        kept[columns[worst > tol]] = True


def soft_threshold(A: Tensor, t: Tensor) -> Tensor:
    """Return ``argmin_B |B - A|^2 / 2 + t |B|_1``.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.research.baselines.indefinite_mkl import soft_threshold
    >>> soft_threshold(torch.tensor([3.0, -0.5, -2.0]), torch.tensor(1.0))
    tensor([ 2.,  0., -1.])
    """
    return A - A.clamp(min=-t, max=t)


def group_soft_threshold(A: Tensor, t: Tensor) -> Tensor:
    """Return ``argmin_B |B - A|^2 / 2 + t sum_c |B_c|`` with the Euclidean norms of columns.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.research.baselines.indefinite_mkl import group_soft_threshold
    >>> group_soft_threshold(torch.tensor([[3.0, 0.3], [4.0, 0.4]]), torch.tensor(2.5))
    tensor([[1.5000, 0.0000],
            [2.0000, 0.0000]])
    """
    norms = A.norm(dim=0).clamp(min=torch.finfo(A.dtype).tiny)
    return A * (1.0 - t / norms).clamp(min=0.0)


def fista(
    gradient: Callable[[Tensor], Tensor],
    prox: Callable[[Tensor, Tensor], Tensor],
    start: Tensor,
    steps: Tensor,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Tensor, int, float]:
    """Minimise a smooth function plus a function with a proximal operator, by accelerated steps [Beck2009]_.

    The momentum is reset if it points uphill, so that the method adapts to the curvature [ODonoghue2015]_.
    Stops when no entry of ``(point - next point) / steps`` is larger than ``tol``: that is how far the next point is
    from optimal, up to a factor of two. Returns the point, the number of steps and that largest entry.
    """
    last, point, momentum = start, start, 1.0
    for iteration in range(1, max_iter + 1):
        new = prox(point - steps * gradient(point), steps)
        slope = (point - new) / steps
        violation = float(slope.abs().max())
        if violation <= tol:
            return new, iteration, violation
        if float((slope * (new - last)).sum()) > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        point = new + (momentum - 1.0) / following * (new - last)
        last, momentum = new, following
    return last, max_iter, violation
