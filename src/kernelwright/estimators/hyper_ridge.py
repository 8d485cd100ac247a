"""A kernel function learned by ridge regression over pairs of points."""

from __future__ import annotations

from collections.abc import Sequence
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


@saved(
    "hyper-kernel-ridge",
    fields="classes_ reader_ centre_ encoder_ kernel_ solver_ ridge_ ridges_ errors_ history_ n_iter_",
)
class HyperKernelRidge(KernelLearner):
    """A kernel function learned by ridge regression over pairs of points, from similarities or from labels [Liu2021]_.

    It takes objects as rows of numbers, and a matrix of similarities between them: judgements, alignment scores, or
    another kernel, positive definite or not, with or without missing values. ``kernel_`` is a function that
    approximates these values and can be evaluated at new objects. With labels instead of a matrix, the target is the
    ideal kernel.

    Parameters
    ----------
    hyperkernel : HyperKernel or None, default=None
        ``None`` is :class:`kernelwright.hyperkernels.Sum`, Gaussian hyper-kernels of eight widths.
    ridge : float, "auto" or str, default="auto"
        "auto" is chosen by leaving out points. A number is lambda of Eq. (4). "m^-0.5" (with any exponent) is a
        schedule in the number m of points, as in the theory.
    bias : bool, default=True
        Subtract the mean of the targets and add a constant; log-like similarities need it. The constant stays near the
        mean, and the kernel returns to it far from all points.
    nonnegative : bool, default=False
        Allow no negative weights: ``kernel_`` is then positive definite by construction, and fits indefinite targets
        poorly.
    bound : float, "auto" or None, default=None
        Clip the values of ``kernel_`` to [-bound, bound]. It may then no longer be positive definite. "auto" is the
        largest absolute target.
    symmetric : bool, default=True
        Whether a matrix of similarities must be symmetric. With ``False``, each ordered pair is one observation: (i, j)
        and (j, i) may differ, or only one of them may be known. ``kernel_`` is always symmetric, like every function in
        a hyper-RKHS.
    solver : str or an object of :mod:`kernelwright.hyper`, default="auto"
        The functions that the kernel is made of, and the number of pairs it is learned from. "exact" (``ExactPairs()``)
        is Eq. (6) on all pairs, for up to about 100 points. "midpoint" (``Midpoints(n=20)``) is much faster and needs
        Gaussian hyper-kernels, which separate; "auto" (``AutoPairs()``) chooses it for them. "nystroem"
        (``LandmarkPairs(n=30)``) is Eq. (9), for all hyper-kernels. "partitioned" (``Partition(4)``) is Algorithm 1:
        the mean over random parts of the points, each with any of these solvers.
    learn : "held-out", HeldOutMetric or None, default=None
        "held-out" (``HeldOutMetric(max_iter=30)``) learns the parameters of the hyper-kernel, with one length scale for
        each feature, by gradient descent on the error at held-out points.
    coding : {"signed", "indicator"}, default="signed"
        Targets from labels: 1 and -1 (``y y^T`` for two classes) or 1 and 0 (delta).
    class_weight : dict, "balanced" or None, default=None
        With labels: the weight of a pair is the product of its class weights.
    refine : bool or "auto", default="auto"
        Whether the residual on a given matrix is smoothed over pairs of known points and added. A Gaussian hyper-kernel
        sees only the length and the midpoint of a pair; the refinement sees more, but must keep all points. "auto"
        refines if the solver is "auto", there are 20 to 3000 points, and it explains a tenth of the squared residual
        at held-out points.
    categorical, keep
        As in :class:`EmbeddingClassifier`, for data frames.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    encoder_ : TableCoordinates or None
        For data frames with other columns than numbers: numbers standardised, a column for each category. ``kernel_``
        takes such rows.
    kernel_ : LearnedKernel
        A kernel for :class:`EmbeddingClassifier`, :class:`KreinSVC` or scikit-learn's ``SVC(kernel=...)``.
    ridge_ : float
        The ridge; of the first part, if there are several.
    ridges_, errors_ : ndarray
        The ridges that were compared, and their root mean squared errors at held-out points, in units of the targets'
        spread and before a refinement.
    solver_ : {"exact", "nystroem", "midpoint"}
        The solver that was used.
    classes_ : ndarray
        Only if labels were given.
    history_ : list of Step
        Steps of learning the hyper-kernel.
    n_iter_, n_features_in_, feature_names_in_, columns_

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
        categorical: str | Sequence[Any] | None = "from_dtype",
        keep: Sequence[Any] = (),
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
        self.categorical = categorical
        self.keep = keep
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HyperKernelRidge:
        """Learn a kernel function from the points X and their targets y.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
        y : array of shape (m, m) or (m,)
            A symmetric matrix of similarities, with NaN for unknown pairs; or labels, for the ideal kernel.
        sample_weight : array of shape (m, m) or (m,), default=None
            Weights of pairs (with a matrix), or of points: the weight of a pair is then the product.
        """
        regressor = PairRidge(self.ridge, self.bias, self.nonnegative, self.refine)
        found = self._fit(X, y, sample_weight, regressor).coefficients
        self.ridge_ = found.ridge
        for name in ("ridges_", "errors_"):  # from an earlier fit
            self.__dict__.pop(name, None)
        if found.errors is not None:
            self.ridges_, self.errors_ = np.array(RIDGES), np.sqrt(found.errors)
        return self
