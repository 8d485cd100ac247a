"""The base class of the scikit-learn estimators that learn a kernel function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kernelwright.estimators.base import COLUMN_CONSTRAINTS
from kernelwright.hyper.fitting import BasisPlan, PairFit, fit_pairs
from kernelwright.hyper.kernels import HyperKernel
from kernelwright.hyper.learned import LearnedKernel
from kernelwright.hyper.learning import HeldOutMetric
from kernelwright.hyper.regression import PairRegressor
from kernelwright.hyper.solvers import SOLVERS, PairSolver, as_solver
from kernelwright.hyper.targets import CODINGS, pair_problem, target_matrix
from kernelwright.inputs.arrays import generator, plain, validate_data
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.given_rows import check_new_rows, described_columns, training_rows
from kernelwright.inputs.options import TakesOptions
from kernelwright.kernels.coordinates import coordinates_of

__all__ = ["SHARED_CONSTRAINTS", "KernelLearner"]

SHARED_CONSTRAINTS: dict[str, list[Any]] = COLUMN_CONSTRAINTS | {
    "hyperkernel": [HyperKernel, None],
    "bound": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
    "symmetric": ["boolean"],
    "solver": [StrOptions(set(SOLVERS)), PairSolver],
    "learn": [StrOptions({"held-out"}), HeldOutMetric, None],
    "coding": [StrOptions(set(CODINGS))],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "random_state": ["random_state"],
}


class KernelLearner(TakesOptions):
    """The base of kernel learners: a fit by any regression over pairs, ``predict`` and ``score``."""

    _options: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "solver": as_solver,
        "learn": lambda given: HeldOutMetric() if given == "held-out" else given,
    }
    hyperkernel: HyperKernel | None
    bound: float | str | None
    symmetric: bool
    solver: str | PairSolver
    learn: str | HeldOutMetric | None
    coding: str
    class_weight: Any
    categorical: str | Sequence[Any] | None
    keep: Sequence[Any]
    random_state: Any
    kernel_: LearnedKernel

    def _fit(self, X: Any, y: Any, sample_weight: Any, regressor: PairRegressor) -> PairFit:
        """Check the data, fit, and store the common attributes; the record holds the rest."""
        self._validate_params()
        given = training_rows(X, y, categorical=self.categorical, keep=self.keep)
        X = validate_data(self, given.X, dtype=np.float64, ensure_min_samples=3, ensure_all_finite=given.finite)
        given.settle(self)
        layout = given.layout(X)
        self.encoder_ = None if layout is None else coordinates_of(layout, X)
        X = X if self.encoder_ is None else self.encoder_.transform(X)
        problem = pair_problem(
            X,
            plain(y),
            plain(sample_weight),
            coding=self.coding,
            class_weight=self.class_weight,
            symmetric=self.symmetric,
            owner=self,
        )
        basis = BasisPlan(self.hyperkernel, self.solver, self.learn)
        found = fit_pairs(problem, basis, regressor, bound=self.bound, random=generator(self.random_state))
        self.__dict__.pop("classes_", None)  # from an earlier fit
        if problem.classes is not None:
            self.classes_ = problem.classes
        self.kernel_, self.solver_, self.history_ = found.kernel, found.solver, found.history
        self.n_iter_ = max(len(found.history), 1)
        return found

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What was done to each column of the training table."""
        return described_columns(self)

    def predict(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the matrix ``k*(x_i, z_j)``; without Z, the matrix ``k*(x_i, x_j)``."""
        check_is_fitted(self)
        new = self._new(X)
        return self.kernel_(new, new if Z is None else self._new(Z))

    def _new(self, X: Any) -> np.ndarray:
        codes, encoder = check_new_rows(self, X, dtype=np.float64), vars(self).get("encoder_")
        return codes if encoder is None else encoder.transform(codes)

    def score(self, X: Any, y: Any) -> float:
        """Return R^2: the explained share of the variance of the similarities (or of the ideal kernel of labels)."""
        target = target_matrix(y, self.coding)
        known = ~np.isnan(target)
        gap = (self.predict(X) - target)[known]
        return float(1.0 - np.mean(gap**2) / np.var(target[known]))
