"""A kernel function learned by support vector regression over pairs of points."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kernelwright.estimators.hyper import SHARED_CONSTRAINTS, KernelLearner
from kernelwright.hyper.kernels import HyperKernel
from kernelwright.hyper.learning import HeldOutMetric
from kernelwright.hyper.solvers import PairSolver
from kernelwright.hyper.svr import LOSSES, PairSVR
from kernelwright.storage.saved import saved

__all__ = ["HyperKernelSVR"]


@saved("hyper-kernel-svr", fields="classes_ reader_ centre_ encoder_ kernel_ solver_ C_ history_ n_iter_")
class HyperKernelSVR(KernelLearner):
    """A kernel function learned by support vector regression over pairs of points, Eq. (8) of [Liu2021]_.

    The loss ignores errors below ``epsilon`` and grows linearly above, so outliers among the similarities matter less
    than in :class:`HyperKernelRidge`. The exact solution (up to about 100 points) uses scikit-learn's SVR on unique
    pairs. The other solvers use a linear model on the functions of "midpoint" or "nystroem", with the squared loss
    above ``epsilon`` unless ``loss="linear"``.

    Parameters
    ----------
    hyperkernel : HyperKernel or None, default=None
    C : float or "auto", default="auto"
        Weight of the errors; "auto" is chosen by leaving out points.
    epsilon : float or str, default="auto"
        Errors up to ``epsilon`` are ignored. "auto" is a tenth of the standard deviation of the similarities (0.1 with
        labels); "m^-1" is a schedule in the number m of points.
    loss : {"auto", "linear"}, default="auto"
        "linear" is the loss of Eq. (7) with any solver. "auto" is the same with the exact solution, and squared (and
        faster) otherwise.
    bound, symmetric, solver, learn, coding, class_weight, categorical, keep, random_state
        As in :class:`HyperKernelRidge`. The solver "auto" is exact up to 60 points; the other solvers learn from 20,000
        pairs by default. With ``symmetric=False``, the values of (i, j) and (j, i) are averaged first.

    Attributes
    ----------
    kernel_ : LearnedKernel
    C_ : float
    solver_, classes_, history_, n_iter_, n_features_in_, feature_names_in_, columns_

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import HyperKernelSVR
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> K = HyperKernelSVR(C=10.0, random_state=0).fit(X, y).predict(X)
    >>> bool(K[y == "same"][:, y == "same"].mean() > K[y == "same"][:, y == "other"].mean() + 0.2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = SHARED_CONSTRAINTS | {
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "epsilon": [Interval(Real, 0, None, closed="left"), str],
        "loss": [StrOptions(set(LOSSES))],
    }

    def __init__(
        self,
        hyperkernel: HyperKernel | None = None,
        *,
        C: float | str = "auto",
        epsilon: float | str = "auto",
        loss: str = "auto",
        bound: float | str | None = None,
        symmetric: bool = True,
        solver: str | PairSolver = "auto",
        learn: str | HeldOutMetric | None = None,
        coding: str = "signed",
        class_weight: Any = None,
        categorical: str | Sequence[Any] | None = "from_dtype",
        keep: Sequence[Any] = (),
        random_state: Any = None,
    ) -> None:
        self.hyperkernel = hyperkernel
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.bound = bound
        self.symmetric = symmetric
        self.solver = solver
        self.learn = learn
        self.coding = coding
        self.class_weight = class_weight
        self.categorical = categorical
        self.keep = keep
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HyperKernelSVR:
        """Learn a kernel function from the points X and their targets y.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
        y : array of shape (m, m) or (m,)
            A symmetric matrix of similarities, with NaN for unknown pairs; or labels, for the ideal kernel.
        sample_weight : array of shape (m, m) or (m,), default=None
            Weights of pairs (with a matrix), or of points: the weight of a pair is then the product.
        """
        self.C_ = self._fit(X, y, sample_weight, PairSVR(self.C, self.epsilon, self.loss)).coefficients.ridge
        return self
