"""A kernel function learned by ridge regression over pairs of points."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from kernelwright.estimators.hyper import SHARED_CONSTRAINTS, KernelLearner
from kernelwright.hyper.kernels import HyperKernel
from kernelwright.hyper.learning import HeldOutMetric
from kernelwright.hyper.ridge import RIDGES, PairRidge
from kernelwright.hyper.solvers import PairSolver
from kernelwright.storage.saved import saved

__all__ = ["HyperKernelRidge"]


@saved("hyper-kernel-ridge", fields="classes_ kernel_ solver_ ridge_ ridges_ errors_ history_ n_iter_")
class HyperKernelRidge(KernelLearner):
    """A kernel function learned by ridge regression over pairs of points, from similarities or from labels [Liu2021]_.

    Give it objects as rows of numbers and a matrix of similarities between them (judgements, alignment scores, a
    metric or a kernel from elsewhere, positive definite or not, with gaps or without): ``kernel_`` is a function that
    has these values, as nearly as the data support, and that can be asked for new objects. Or give it labels, for the
    ideal kernel.

    Parameters
    ----------
    hyperkernel : HyperKernel or None, default=None
        ``None`` is :class:`kernelwright.hyperkernels.Sum`, Gaussian hyper-kernels of eight widths.
    ridge : float, "auto" or str, default="auto"
        "auto" is chosen by leaving out points. A number is lambda of Eq. (4). "m^-0.5" is the theory's kind of
        schedule, with any exponent, in the number m of points.
    bias : bool, default=True
        Take the mean off the targets and add a constant, which log-like similarities need. Far from all points the
        kernel returns to it; it is kept near the mean.
    nonnegative : bool, default=False
        Allow no negative weights: ``kernel_`` is then positive definite by construction, and a poor fit to what is not.
    bound : float, "auto" or None, default=None
        Cut the values of ``kernel_`` to [-bound, bound], which may cost it its definiteness; "auto" is the largest
        target.
    symmetric : bool, default=True
        Whether a matrix of similarities must be symmetric. With ``False`` each ordered pair is an observation of its
        own: (i, j) and (j, i) may differ, or be known one way only. The fit is that of all ordered pairs, and
        ``kernel_`` is symmetric in any case, as every function in a hyper-RKHS is.
    solver : str or an object of :mod:`kernelwright.hyper`, default="auto"
        Which functions the kernel is made of, and how many pairs it is learned from. "exact" (``ExactPairs()``) is
        Eq. (6) on all pairs, to about 100 points. "midpoint" (``Midpoints(n=20)``) uses that Gaussian hyper-kernels
        separate: far faster, and the choice of "auto" (``AutoPairs()``) for them. "nystroem" (``LandmarkPairs(n=30)``)
        is Eq. (9), for all hyper-kernels. "partitioned" (``Partition(4)``) is Algorithm 1: any of them on random
        parts of the points, and the mean.
    learn : "held-out", HeldOutMetric or None, default=None
        "held-out" (``HeldOutMetric(max_iter=30)``) learns the numbers of the hyper-kernel, with a length scale for each
        feature, by gradient on the error at points that are left out.
    coding : {"signed", "indicator"}, default="signed"
        Targets of labels: 1 and -1 (``y y^T`` for two classes) or 1 and 0 (delta).
    class_weight : dict, "balanced" or None, default=None
        With labels: the weight of a pair is the product of its classes'.
    refine : bool or "auto", default="auto"
        Whether what the hyper-kernel leaves over of a given matrix is smoothed over pairs of the known points. A
        Gaussian hyper-kernel sees of a pair its length and midpoint only; this sees the rest, and keeps all points
        for it. "auto" does it where the solver is left to "auto", from 20 to 3000 points, if it explains a tenth of
        the rest at points that are left out.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : LearnedKernel
        A kernel like any other: in :class:`EmbeddingClassifier`, :class:`KreinSVC` or scikit-learn's
        ``SVC(kernel=...)``.
    ridge_ : float
        Of the first part, if there are several.
    ridges_, errors_ : ndarray
        Ridges that were compared, and root mean squared errors at left-out points in units of the targets' spread
        (before a refinement).
    solver_ : {"exact", "nystroem", "midpoint"}
        What was used.
    classes_ : ndarray
        If labels were given.
    history_ : list of Step
        Of the learning of the hyper-kernel.
    n_iter_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright import HyperKernelRidge
    >>> def similarity(X, Z):
    ...     return -np.log(1 + np.linalg.norm(X[:, None] - Z, axis=-1))
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> known, new = X[:60], X[60:]
    >>> model = HyperKernelRidge(random_state=0).fit(known, similarity(known, known))
    >>> error = model.predict(new, known) - similarity(new, known)
    >>> bool(np.abs(error).mean() < 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = SHARED_CONSTRAINTS | {
        "ridge": [Interval(Real, 0, None, closed="neither"), str],
        "bias": ["boolean"],
        "nonnegative": ["boolean"],
        "refine": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        hyperkernel: HyperKernel | None = None,
        *,
        ridge: float | str = "auto",
        bias: bool = True,
        nonnegative: bool = False,
        bound: float | str | None = None,
        symmetric: bool = True,
        solver: str | PairSolver = "auto",
        learn: str | HeldOutMetric | None = None,
        refine: bool | str = "auto",
        coding: str = "signed",
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.hyperkernel = hyperkernel
        self.ridge = ridge
        self.bias = bias
        self.nonnegative = nonnegative
        self.bound = bound
        self.symmetric = symmetric
        self.solver = solver
        self.learn = learn
        self.refine = refine
        self.coding = coding
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HyperKernelRidge:
        """Learn a kernel of the points X.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
        y : array of shape (m, m) or (m,)
            A symmetric matrix of similarities, NaN where nothing is known; or labels, for the ideal kernel.
        sample_weight : array of shape (m, m) or (m,), default=None
            Weights of pairs (with a matrix), or of points: a pair then has the product.
        """
        regressor = PairRidge(self.ridge, self.bias, self.nonnegative, self.refine)
        found = self._fit(X, y, sample_weight, regressor).coefficients
        self.ridge_ = found.ridge
        for name in ("ridges_", "errors_"):  # of another fit
            self.__dict__.pop(name, None)
        if found.errors is not None:
            self.ridges_, self.errors_ = np.array(RIDGES), np.sqrt(found.errors)
        return self
