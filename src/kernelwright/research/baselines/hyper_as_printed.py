"""Kernels learned in a hyper-RKHS with the settings that [Liu2021]_ print, to compare with this library's own."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from kernelwright.estimators import HyperKernelRidge, HyperKernelSVR
from kernelwright.hyper import ExactPairs, LandmarkPairs, Partition
from kernelwright.hyper.kernels import Gaussian, HyperKernel, PointPairs, Wishart
from kernelwright.hyper.learned import LearnedKernel
from kernelwright.hyper.pairs import Pairs
from kernelwright.hyper.ridge import leave_points_out_dual
from kernelwright.hyper.svr import support_vector
from kernelwright.hyper.targets import target_matrix
from kernelwright.inputs.arrays import seed_of, validate_data
from kernelwright.storage.saved import saved

__all__ = ["HyperKernelAsPrinted"]

GRID = tuple(10.0**power for power in range(-5, 6))  # of lambda and of C
SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)  # sigma_h^2 / sigma^2
EPSILON = 0.1
CHOOSING_POINTS, FOLDS = 30, 5
STEPS = 20_000  # of each support vector machine while C is chosen


@saved("hyper-kernel-as-printed", fields="kernel_ learner_ sigma_h_ ridge_ C_")
class HyperKernelAsPrinted(BaseEstimator):
    """Stage 1 of [Liu2021]_ as printed: hyper-KRR, hyper-SVR, or nonnegative weights (Pan and others, 2017).

    Eq. (6) or (8) on all pairs, or Eq. (9) with landmarks, without a constant in hyper-KRR. The Gaussian hyper-kernel
    is the printed product, ``sigma_h^2`` is one of 1/4, 1/2, 1, 2, 4 times ``sigma^2``, and lambda and C are powers of
    ten from 1e-5 to 1e5. What the paper leaves open: ``sigma^2``, "the variance of data", is the sum over features
    (the variance of all entries is so narrow that nothing is learned); folds are of points, and their errors those of
    pairs with a held-out point; to save time they are of at most 30 points, with C as ``1 / (2 lambda m^2)``;
    hyper-SVR and nonnegative weights take the ``sigma_h`` of hyper-KRR; ``epsilon`` is 0.1; the Wishart hyper-kernel,
    whose numbers are not printed, is this library's.

    Parameters
    ----------
    regression : {"KRR", "SVR", "nonnegative"}, default="KRR"
    hyperkernel : {"Gaussian", "Wishart"}, default="Gaussian"
    n_landmarks : int or None, default=None
        ``None`` is Eq. (6), which takes all pairs as functions; a number is Eq. (9), with uniform landmarks.
    n_parts : int, default=1
        Parts of Algorithm 1.
    n_pairs : int or None, default=None
        Largest number of pairs (of each part) that landmarks are fitted to; ``None`` is all.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : LearnedKernel
    sigma_h_, ridge_ : float
        What was chosen for hyper-KRR; ``sigma_h_`` is None for a Wishart hyper-kernel.
    C_ : float or None
        What was chosen for hyper-SVR.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.research.baselines import HyperKernelAsPrinted
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> K = np.exp(-4.0 * ((X[:, None] - X) ** 2).sum(-1))
    >>> model = HyperKernelAsPrinted(random_state=0).fit(X[:20], K[:20, :20])
    >>> bool(np.abs(model.predict(X[20:]) - K[20:, 20:]).mean() < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "regression": [StrOptions({"KRR", "SVR", "nonnegative"})],
        "hyperkernel": [StrOptions({"Gaussian", "Wishart"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "n_parts": [Interval(Integral, 1, None, closed="left")],
        "n_pairs": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    kernel_: LearnedKernel

    def __init__(
        self,
        regression: str = "KRR",
        *,
        hyperkernel: str = "Gaussian",
        n_landmarks: int | None = None,
        n_parts: int = 1,
        n_pairs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.regression = regression
        self.hyperkernel = hyperkernel
        self.n_landmarks = n_landmarks
        self.n_parts = n_parts
        self.n_pairs = n_pairs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> HyperKernelAsPrinted:
        """Learn a kernel from points and a matrix of similarities, or from labels."""
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=5)
        y = np.asarray(y)
        seed = seed_of(self.random_state)
        some = torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))[:CHOOSING_POINTS].numpy()
        target = target_matrix(y[some] if y.ndim == 1 else y[np.ix_(some, some)], "signed")
        points, pairs = torch.from_numpy(X[some]), _pairs_of(target)
        folds = torch.arange(len(some)) % FOLDS
        hyper, self.ridge_ = _chosen_ridge(candidates(self.hyperkernel, X), points, pairs, folds)
        self.sigma_h_ = float(hyper.sigma_h) if isinstance(hyper, Gaussian) else None
        self.C_: float | None = None
        if self.regression == "SVR":
            m = len(X) // self.n_parts
            self.C_ = _chosen_cost(hyper, points, pairs, folds) * (len(some) / m) ** 2
        self.learner_ = self._learner(hyper, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # with C = 1e5
            self.kernel_ = self.learner_.fit(X, y).kernel_
        return self

    def _learner(self, hyper: HyperKernel, seed: int) -> Any:
        n_pairs = "all" if self.n_pairs is None else self.n_pairs
        landmarks = LandmarkPairs(self.n_landmarks, choose="uniform", n_pairs=n_pairs)
        part = ExactPairs() if self.n_landmarks is None else landmarks
        solver = part if self.n_parts == 1 else Partition(self.n_parts, part)
        if self.C_ is not None:
            return HyperKernelSVR(hyper, C=self.C_, epsilon=EPSILON, loss="linear", solver=solver, random_state=seed)
        nonnegative = self.regression == "nonnegative"
        return HyperKernelRidge(
            hyper,
            ridge=self.ridge_,
            bias=False,
            nonnegative=nonnegative,
            refine=False,
            solver=solver,
            random_state=seed,
        )

    def predict(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the matrix ``k*(x_i, z_j)``; without Z, the matrix ``k*(x_i, x_j)``."""
        return self.learner_.predict(X, Z)


def candidates(name: str, X: np.ndarray) -> list[HyperKernel]:
    """Return the hyper-kernels to choose among."""
    if name == "Wishart":
        return [Wishart().prepared(torch.from_numpy(X)).fixed()]
    variance = float(X.var(0).sum())
    sigma = variance**0.5 if variance > 0 else 1.0
    return [Gaussian(sigma=sigma, sigma_h=share**0.5 * sigma, form="printed").fixed() for share in SHARES]


def _pairs_of(target: np.ndarray) -> Pairs:
    """Return the unique pairs of a matrix."""
    first, second = torch.triu_indices(len(target), len(target))
    weights = torch.where(first == second, 1.0, 2.0).double()
    return Pairs(first, second, torch.from_numpy(target)[first, second].double(), weights)


def _gram(hyper: HyperKernel, X: Tensor, pairs: Pairs) -> Tensor:
    both = PointPairs(X[pairs.first], X[pairs.second])
    with torch.no_grad():
        return hyper.forward(both, both)


def _chosen_ridge(hypers: list[HyperKernel], X: Tensor, pairs: Pairs, folds: Tensor) -> tuple[HyperKernel, float]:
    """Return the hyper-kernel and the lambda of the least squared error at pairs with a held-out point."""
    errors = [leave_points_out_dual(_gram(h, X, pairs), pairs, folds, bias=False, ridges=GRID) for h in hypers]
    best, at = np.unravel_index(np.argmin(errors), (len(hypers), len(GRID)))
    return hypers[best], GRID[at]


def _chosen_cost(hyper: HyperKernel, X: Tensor, pairs: Pairs, folds: Tensor) -> float:
    """Return the C of the least absolute error at pairs with a held-out point."""
    G = _gram(hyper, X, pairs)
    errors = np.zeros(len(GRID))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fold in folds.unique():
            out = (folds[pairs.first] == fold) | (folds[pairs.second] == fold)
            judged, fitted = out.nonzero()[:, 0], (~out).nonzero()[:, 0]
            some = pairs.subset(judged)
            for number, C in enumerate(GRID):
                found = support_vector(
                    G[fitted][:, fitted], pairs.subset(fitted), C=C, epsilon=EPSILON, most_steps=STEPS
                )
                gap = G[judged][:, fitted] @ found.weights + found.bias - some.targets
                errors[number] += float((some.weights * gap.abs()).sum())
    return GRID[int(np.argmin(errors))]
