"""What the regressions over pairs share: targets, pairs, a basis, divide and conquer, prediction."""

from __future__ import annotations

import copy
import re
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kernelwright.arrays import (
    as_matrix,
    check_labels,
    check_memory,
    class_labels,
    generator,
    merge_duplicates,
    plain,
    row_weights,
    validate_data,
)
from kernelwright.features import Nystroem
from kernelwright.hyper.bases import Basis, MidpointBasis, PairBasis
from kernelwright.hyper.learned import LearnedKernel
from kernelwright.hyper.learning import HeldOutPoints, split_points
from kernelwright.hyper.pairs import LabelTarget, MatrixTarget, Pairs, Target, sample_pairs, unique_pairs
from kernelwright.hyper.partition import average_of_parts, random_parts
from kernelwright.hyper.refinement import PairSmoother
from kernelwright.hyper.regression import (
    BLOCK_ENTRIES,
    RIDGES,
    Coefficients,
    PrimalPath,
    fold_moments,
    largest_good,
    leave_points_out,
    point_splits,
    whitening,
)
from kernelwright.hyperkernels import HyperKernel, PointPairs, Sum
from kernelwright.kernels import Gaussian
from kernelwright.linalg import threads_for
from kernelwright.training import LBFGS, train

__all__ = ["EXACT_UP_TO", "SHARED_CONSTRAINTS", "PairRegression", "folds_of", "power_of_m"]

EXACT_UP_TO = 60  # points: 1830 pairs
CENTRES, LANDMARKS = 20, 30  # usual numbers: of the midpoint form, and of points whose pairs are landmarks
LEARNING_PAIRS, LEARNING_CENTRES, LEARNING_ROUNDS, LEARNING_RIDGE = 6000, 20, 3, 1e-3
FOLDS = 4

SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "hyperkernel": [HyperKernel, None],
    "bound": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
    "solver": [StrOptions({"auto", "exact", "nystroem", "midpoint", "partitioned"})],
    "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
    "landmarks": [StrOptions({"uniform", "leverage", "kmeans"})],
    "n_pairs": [Interval(Integral, 1, None, closed="left"), StrOptions({"all"}), None],
    "n_partitions": [Interval(Integral, 1, None, closed="left")],
    "n_jobs": [Integral, None],
    "coding": [StrOptions({"signed", "indicator"})],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "learn": [StrOptions({"held-out"}), None],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}


class PairRegression(BaseEstimator):
    """Learns ``kernel_``; a subclass has ``_coefficients``, the regression itself."""

    USUAL_PAIRS = 100_000

    hyperkernel: HyperKernel | None
    bound: float | str | None
    solver: str
    n_landmarks: int | None
    landmarks: str
    n_pairs: int | str | None
    n_partitions: int
    n_jobs: int | None
    coding: str
    class_weight: Any
    learn: str | None
    max_iter: int
    random_state: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn a kernel of the points X.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
        y : array of shape (m, m) or (m,)
            A symmetric matrix of similarities, NaN where nothing is known; or labels, for the ideal kernel.
        sample_weight : array of shape (m, m) or (m,), default=None
            Weights of pairs (with a matrix), or of points: a pair then has the product.
        """
        self._validate_params()
        for name in ("classes_", "ridges_", "errors_"):  # of another fit
            self.__dict__.pop(name, None)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=3)
        X, given, weights = self._target(X, plain(y), plain(sample_weight))
        points = as_matrix(X)
        if len(points) < 3 * self.n_partitions:
            raise ValueError(
                f"{self.n_partitions} parts of {len(points)} distinct points are too small: a part needs at least 3."
            )
        centre, scale = (given.mean() if self._is_centred() else 0.0), given.spread()
        goal = given.normalised(centre, scale)
        random = generator(self.random_state)
        hyper = Sum() if self.hyperkernel is None else copy.deepcopy(self.hyperkernel)
        hyper.prepare(points, weights)
        self.solver_ = self._pick_solver(hyper, len(points) // self.n_partitions)
        self.history_: list[Any] = []
        with threads_for(0):
            if self.learn is not None:
                self._learn(hyper, points, goal, random)
            hyper.requires_grad_(False)
            parts = random_parts(len(points), self.n_partitions, random)
            seed = int(torch.randint(2**31 - 1, (), generator=random))
            # Parts share their centres: the mean of their kernels is then no longer a sum than each of them.
            centres = self._choose(points, self.n_landmarks or CENTRES, seed) if self.solver_ == "midpoint" else None
            solve = partial(self._solve_part, hyper, seed, scale, centres)
            # A part travels with its own points alone: all parts together ship the data once.
            whole = len(parts) == 1
            own = ((points[rows], goal if whole else goal.subset(rows), int(rows[0])) for rows in parts)
            basis, found = average_of_parts(solve, own, self.n_jobs)
            kernel = LearnedKernel(basis, scale * found.weights, centre + scale * found.bias)
            kernel.refinement = self._refinement(kernel, points, given, random)
        kernel.bound = self._bound(given)
        self.kernel_ = kernel
        self._report(found)
        self.n_iter_ = max(len(self.history_), 1)
        return self

    def _is_centred(self) -> bool:
        """Whether the mean of the targets is taken off before, and put back as a constant."""
        return True

    def _report(self, found: Coefficients) -> None:
        """Attributes of the regression itself."""

    def predict(self, X: Any, Z: Any = None) -> np.ndarray:
        """The matrix ``k*(x_i, z_j)``; without Z that of X with itself."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        Z = X if Z is None else validate_data(self, Z, dtype=np.float64, reset=False)
        return self.kernel_(X, Z)

    def score(self, X: Any, y: Any) -> float:
        """The share of the variance of similarities (or of the ideal kernel of labels) that ``k*(X, X)`` explains."""
        y = np.asarray(y)
        target = y if y.ndim == 2 and y.shape[1] != 1 else np.where(y.reshape(-1, 1) == y.ravel(), *self._coding())
        known = ~np.isnan(target)
        gap = (self.predict(X) - target)[known]
        return float(1.0 - np.mean(gap**2) / np.var(target[known]))

    def _coding(self) -> tuple[float, float]:
        """Targets of labels, within a class and between classes."""
        return (1.0, -1.0) if self.coding == "signed" else (1.0, 0.0)

    def _refinement(
        self, kernel: LearnedKernel, X: Tensor, goal: Target, random: torch.Generator
    ) -> PairSmoother | None:
        """A smoother of what the kernel leaves over, where it explains a good part of that at left-out points."""
        return None

    # what is learned from ------------------------------------------------------------------------------

    def _target(self, X: np.ndarray, y: Any, sample_weight: Any) -> tuple[np.ndarray, Target, Tensor | None]:
        """Points, their target and their weights (if labels are given, of distinct points)."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed: m labels, or an m x m matrix of similarities."
            )
        if issparse(y) or isinstance(y, np.ma.MaskedArray):
            raise ValueError("A matrix of similarities must be a plain array, with NaN where nothing is known.")
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] != 1:
            return X, _matrix_target(y, sample_weight, len(X)), None
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        check_labels(y)  # before its classes are weighed
        weights = row_weights(y, sample_weight, self.class_weight)
        kept = weights > 0
        self.classes_, labels = class_labels(y[kept], self)
        distinct = merge_duplicates(X[kept], labels, weights[kept])
        X, labels, weights = distinct.X, distinct.y, distinct.weights / distinct.weights.mean()
        w = None if bool(np.ptp(weights) == 0.0) else torch.from_numpy(weights)
        same, other = self._coding()
        return X, LabelTarget(torch.from_numpy(labels), other, same, w), w

    def _bound(self, goal: Target) -> float | None:
        return goal.largest() if isinstance(self.bound, str) else self.bound

    def _pairs(self, goal: Target, X: Tensor, random: torch.Generator) -> Pairs:
        """All pairs, or a sample if there are more than are needed."""
        n_all = len(goal) * (len(goal) + 1) // 2
        wanted = self.USUAL_PAIRS if self.n_pairs is None else n_all if self.n_pairs == "all" else int(self.n_pairs)
        if self.solver_ == "exact":
            check_memory(
                self._exact_matrices() * 8.0 * n_all**2,
                f"The exact solution for {len(goal)} points ({n_all} pairs)",
                "Use solver='midpoint' (Gaussian hyper-kernels), 'nystroem', or n_partitions.",
            )
        check_memory(
            12 * 8.0 * min(n_all, wanted),
            f"A list of {min(n_all, wanted)} pairs",
            "Learn from fewer of them: n_pairs=100_000, say; None chooses a number.",
        )
        whole = self.solver_ == "exact" or n_all <= wanted
        pairs = unique_pairs(goal) if whole else sample_pairs(goal, X, wanted, generator=random)
        if len(pairs) == 0:
            raise ValueError("A part of the points has no pair of known similarity: use fewer parts (n_partitions).")
        return pairs

    def _exact_matrices(self) -> int:
        """Matrices of all pairs by all pairs that an exact solution holds at once."""
        return 4

    # the functions it is made of -----------------------------------------------------------------------

    def _pick_solver(self, hyper: HyperKernel, n_points: int) -> str:
        if self.solver == "partitioned":
            return "nystroem"
        if self.solver != "auto":
            return self.solver
        if hyper.widths() is not None:
            return "midpoint"
        return "exact" if n_points <= EXACT_UP_TO else "nystroem"

    def _basis(self, solver: str, hyper: HyperKernel, landmarks: Tensor) -> Basis:
        if solver == "midpoint":
            basis: Basis = MidpointBasis(hyper, landmarks)
        else:
            first, second = torch.triu_indices(len(landmarks), len(landmarks))
            basis = PairBasis(hyper, PointPairs(landmarks[first], landmarks[second]))
        check_memory(
            # Sums over the pairs of each two folds, and some; a block of values, with the matrices on the way to them.
            16 * 8.0 * len(basis) ** 2 + 6 * 8.0 * BLOCK_ENTRIES,
            f"A solution with {len(basis)} functions of pairs",
            "Use fewer landmarks (n_landmarks).",
        )
        return basis

    def _choose(self, X: Tensor, size: int, seed: int) -> Tensor:
        """Landmarks among the points, or centres of them."""
        return Nystroem(Gaussian("median"), min(size, len(X)), self.landmarks, seed=seed).fit(X).points

    def _learn(self, hyper: HyperKernel, X: Tensor, goal: Target, random: torch.Generator) -> None:
        """Learn the hyper-kernel's numbers on a sample of pairs, in rounds, each at the ridge that suits its start."""
        hyper.free_metric(X.shape[1])
        some = torch.randperm(len(X), generator=random)[: LEARNING_PAIRS // 4].sort().values
        points, target = X[some], goal.subset(some)
        n_all = len(some) * (len(some) + 1) // 2
        small = n_all <= LEARNING_PAIRS
        pairs = unique_pairs(target) if small else sample_pairs(target, points, LEARNING_PAIRS, generator=random)
        seed = int(torch.randint(2**31 - 1, (), generator=random))
        solver = "midpoint" if hyper.widths() is not None else "nystroem"
        basis = self._basis(solver, hyper, self._choose(points, LEARNING_CENTRES, seed))
        split, folds = split_points(points, pairs, random), folds_of(len(points), random)
        rounds = min(LEARNING_ROUNDS, self.max_iter)
        for _ in range(rounds):
            with torch.no_grad():
                solve = partial(PrimalPath, T=whitening(basis.gram()), bias=True)
                splits = point_splits(fold_moments(basis, points, pairs, folds))
                ridge = largest_good(RIDGES, leave_points_out(splits, solve))
            # Where the first numbers fit nothing, any ridge does, and a large one would hide what others could fit.
            objective = HeldOutPoints(basis, min(ridge, LEARNING_RIDGE))
            steps = LBFGS(self.max_iter // rounds)
            self.history_ += train(objective, hyper, split, optimizer=steps).history  # type: ignore[arg-type]

    def _solve_part(
        self,
        hyper: HyperKernel,
        seed: int,
        scale: float,
        centres: Tensor | None,
        X: Tensor,
        goal: Target,
        first_row: int,
    ) -> tuple[Basis, Coefficients]:
        """The regression on some of the points; without centres, landmarks are chosen among them."""
        random = torch.Generator().manual_seed(seed + first_row)
        if centres is not None and (found := self._without_pairs(hyper, centres, X, goal, random)) is not None:
            return found
        pairs = self._pairs(goal, X, random)
        with torch.no_grad():
            if self.solver_ == "exact":
                basis: Basis = PairBasis(hyper, PointPairs(X[pairs.first], X[pairs.second]))
            else:
                chosen = self._choose(X, self.n_landmarks or LANDMARKS, seed) if centres is None else centres
                basis = self._basis(self.solver_, hyper, chosen)
            return basis, self._coefficients(basis, X, pairs, random, scale)

    def _without_pairs(
        self, hyper: HyperKernel, centres: Tensor, X: Tensor, goal: Target, random: torch.Generator
    ) -> tuple[Basis, Coefficients] | None:
        """The regression on all pairs without visiting them, where that can be."""
        return None

    def _coefficients(
        self, basis: Basis, X: Tensor, pairs: Pairs, random: torch.Generator, scale: float
    ) -> Coefficients:
        """Weights for targets that have been divided by ``scale``."""
        raise NotImplementedError


def folds_of(n_points: int, random: torch.Generator, n_folds: int = FOLDS) -> Tensor:
    """A random fold for each point."""
    return torch.randperm(n_points, generator=random) % min(n_folds, n_points)


def power_of_m(value: float | str, n_points: int, name: str) -> float:
    """A number as it is given, or "m^-0.5" and the like for m points."""
    if not isinstance(value, str):
        return float(value)
    found = re.fullmatch(r"m\^(-?\d*\.?\d+)", value.replace(" ", ""))
    if found is None:
        raise ValueError(
            f"The {name!r} parameter must be a positive number, or a power of the number of points such as "
            f"'m^-0.5'. Got {value!r} instead."
        )
    return float(n_points) ** float(found[1])


def _matrix_target(matrix: np.ndarray, sample_weight: Any, n_points: int) -> MatrixTarget:
    """A target from a matrix of similarities and weights of pairs or of points."""
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.shape not in ((n_points,), (n_points, n_points)):
        raise ValueError(
            f"sample_weight must have shape ({n_points},), a weight for each point, or ({n_points}, {n_points}), "
            f"one for each pair. Got shape {weights.shape} instead."
        )
    if weights is not None and weights.ndim == 1:
        if (weights < 0).any():
            raise ValueError("Weights of points must not be negative.")
        weights = np.outer(weights, weights)
    target = MatrixTarget.checked(matrix, weights, n_points)
    known = target.values[~target.values.isnan()]
    if float(known.max() - known.min()) <= 1e-12 * max(float(known.abs().max()), 1e-300):
        raise ValueError(
            f"All known entries of the target matrix are {float(known[0]):.6g}: a constant says nothing about the "
            "points. Pass similarities that differ, or labels of at least 2 classes."
        )
    return target
