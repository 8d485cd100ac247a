"""A support vector machine whose kernel need not be positive semidefinite."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import _check_sample_weight

from kernelwright.errors import DistanceMatrixWarning
from kernelwright.estimators.arrows import refuse_if_too_large
from kernelwright.estimators.base import COLUMN_CONSTRAINTS, KernelEstimator
from kernelwright.inputs.arrays import plain
from kernelwright.inputs.dataset import Dataset, check_rows
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.frames.given_rows import GivenRows, training_rows
from kernelwright.inputs.labels import check_labels, class_labels
from kernelwright.inputs.weights import check_class_weight
from kernelwright.kernels import Gaussian, Kernel, Precomputed
from kernelwright.kernels.coordinates import coordinates_of
from kernelwright.kernels.function import FunctionKernel, SimilarityFunction
from kernelwright.kernels.precomputed import looks_like_distances
from kernelwright.numerics.threads import threads_for
from kernelwright.similarity.indefinite import CORRECTIONS, Signature
from kernelwright.similarity.machine import fit_machine
from kernelwright.solvers import Exact
from kernelwright.storage.saved import saved

__all__ = ["KreinSVC"]

LIKE_DISTANCES = (
    "Each row of this kernel matrix is smallest at its own object, like a row of distances, but large values must mean "
    "similar. If these are distances, use their negatives or np.exp(-D / D_train.mean()), both at fit and at "
    "prediction. If they are similarities, put the similarity of each object with itself on the diagonal."
)


@saved(
    "krein-svc",
    fields="classes_ reader_ centre_ scaler_ kernel_ C_ points_ coefficients_ intercept_ signature_ support_",
)
class KreinSVC(ClassifierMixin, KernelEstimator):
    """A support vector classifier for any symmetric similarity, even with negative eigenvalues.

    The kernel matrix of the training rows is corrected (:func:`kernelwright.similarity.indefinite.correct`), a
    :class:`sklearn.svm.SVC` is fitted to it, and the same correction of new rows is folded into its coefficients,
    ``f(x) = k(x)^T (P a) + b``: a prediction costs one row of kernel values and one product. ``signature_`` says how
    indefinite the matrix was. If it was positive semidefinite, every correction gives the plain support vector machine.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, default=None
        A kernel of this library; a symmetric function ``(X, Z) -> matrix`` of arrays of numbers; "precomputed", where
        ``X`` is the kernel matrix (at prediction: new rows against training rows). Large values mean similar; a matrix
        that looks like distances gives a :class:`~kernelwright.DistanceMatrixWarning`. ``None`` is a Gaussian with the
        median distance between the unscaled inputs as its length scale.
    C : float or "auto", default=1.0
        Weight of the slack, as in SVC. "auto" is the best of a few values in cross-validation, relative to the spread
        of the corrected kernel.
    correction : {"clip", "flip", "shift", "none"}, default="clip"
        What happens to negative eigenvalues. "clip" sets them to zero. "flip" takes their absolute values, which is
        KSVM of [Loosli2016]_: a stationary point of the problem in the Krein space. "shift" adds the size of the most
        negative one to the diagonal. "none" keeps them: the problem is then not convex, and the solver finds *a*
        stationary point that depends on its start.
    class_weight : dict, "balanced" or None, default=None
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With three or more classes: one column for each class (votes of the pairwise machines, ties broken by
        confidence) or for each pair of classes.
    tol : float, default=1e-3
        Accuracy of the solver, as in SVC.
    categorical, keep
        As in :class:`EmbeddingClassifier`, for data frames.

    Attributes
    ----------
    classes_ : ndarray
    C_ : float
    signature_ : Signature
        Signs of the eigenvalues of the kernel matrix before correction.
    kernel_ : Kernel
        The kernel, with its length scale set if it was "median"; a function is wrapped as a kernel.
    support_ : ndarray of int
        Rows of ``X`` that are support vectors of the corrected problem.
    points_ : ndarray
        The training points that predictions need: all of them with "clip" and "flip" on an indefinite kernel, otherwise
        the support vectors.
    coefficients_ : ndarray of shape (n_pairs, n_points)
        ``P a`` of each pair of classes. A positive output means the first class of the pair; with two classes, the
        second.
    intercept_ : ndarray of shape (n_pairs,)
    n_features_in_, feature_names_in_, columns_

    Notes
    -----
    Equal rows with equal labels are merged into one row with the sum of their weights, also in the spectrum (not with
    "precomputed"). :meth:`predict` returns the class of the largest decision value, as ``SVC(break_ties=True)`` does.
    Cost is cubic and memory quadratic in the number of rows. Nothing is random.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright.estimators.krein import KreinSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> def logarithm(X, Z):
    ...     return -np.log1p(cdist(X, Z))
    >>> model = KreinSVC(logarithm, correction="flip").fit(X, y)
    >>> model.signature_.negative
    1
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = COLUMN_CONSTRAINTS | {
        "kernel": [Kernel, callable, StrOptions({"precomputed"}), None],
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "correction": [StrOptions(set(CORRECTIONS))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    signature_: Signature
    scaler_: Any = None  # only data frames with other columns than numbers are

    def __init__(
        self,
        kernel: Kernel | SimilarityFunction | str | None = None,
        *,
        C: float | str = 1.0,
        correction: str = "clip",
        class_weight: dict[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        tol: float = 1e-3,
        categorical: str | Sequence[Any] | None = "from_dtype",
        keep: Sequence[Any] = (),
    ) -> None:
        self.kernel = kernel  # type: ignore[assignment]
        self.C = C
        self.correction = correction
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.tol = tol
        self.categorical = categorical
        self.keep = keep

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KreinSVC:
        """Correct the kernel matrix of the rows and fit a support vector machine to it.

        Parameters
        ----------
        X : array-like of shape (n, d), or of shape (n, n) with kernel="precomputed"
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Factors of ``C``; rows of weight zero are ignored.
        """
        self._validate_params()
        kernel = self._start_kernel()
        rows, classes, number = check_factors(self, kernel, X, y, sample_weight)
        rows, number = encoded(kernel, rows, number)
        points = rows.points
        assert points is not None
        with torch.no_grad(), threads_for(len(points)):
            kernel.prepare_(points, torch.from_numpy(rows.weights))
            K = kernel.matrix(points)
            if looks_like_distances(K):
                warnings.warn(LIKE_DISTANCES, DistanceMatrixWarning, stacklevel=2)
            machine = fit_machine(K, rows.y, rows.weights, C=self.C, correction=self.correction, tol=self.tol)
        used = np.flatnonzero(machine.coefficients.any(0))
        # With precomputed values, a training object is only the index of its column in new rows.
        self.points_ = points.numpy()[used, : 1 if isinstance(kernel, Precomputed) else None]
        self.classes_, self.kernel_, self.C_, self.signature_ = classes, kernel, machine.C, machine.signature
        self.coefficients_, self.intercept_ = machine.coefficients[:, used], machine.intercept
        self.support_ = np.sort(number[machine.support])
        return self

    def _start_kernel(self) -> Kernel:
        if self.kernel is None:
            return Gaussian("median")
        if isinstance(self.kernel, (Kernel, str)):
            return super()._start_kernel()
        return FunctionKernel(self.kernel)

    def _pairwise(self, X: Any) -> np.ndarray:
        """Return the outputs of the machines, one column for each pair of classes."""
        new = self._new_points(X)
        P = torch.from_numpy(self.coefficients_.T)
        return torch.cat([K @ P for K in self._kernel_blocks(new)]).numpy() + self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values as SVC does: signed for two classes, otherwise a column for each class or pair."""
        outputs = self._pairwise(X)
        if len(self.classes_) == 2:
            return outputs.ravel()
        if self.decision_function_shape == "ovo":
            return outputs
        return _ovr_decision_function(outputs < 0, -outputs, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of the largest decision value."""
        outputs = self._pairwise(X)
        if len(self.classes_) == 2:
            return self.classes_[(outputs.ravel() > 0).astype(int)]
        votes = _ovr_decision_function(outputs < 0, -outputs, len(self.classes_))
        return self.classes_[votes.argmax(1)]


def check_factors(
    model: KreinSVC, kernel: Kernel, X: Any, y: Any, sample_weight: Any
) -> tuple[Dataset, np.ndarray, np.ndarray]:
    """Check training data; return rows of positive weight (a factor of C), the classes and the original row indices."""
    given = isinstance(kernel, Precomputed)  # it has its own error for missing values
    rows = GivenRows(X)
    if kernel.takes_vectors:
        rows = training_rows(X, y, categorical=model.categorical, keep=model.keep)
    vectors, finite = kernel.takes_vectors or given, rows.finite if not given else False
    X, y = check_rows(model, rows.X, y, vectors=vectors, finite=finite)
    rows.settle(model)
    layout = rows.layout(X) if kernel.takes_vectors else None
    model.scaler_ = None if layout is None else coordinates_of(layout, X)
    X = X if model.scaler_ is None else model.scaler_.transform(X)
    check_labels(y)  # before class weights are computed
    weights = _check_sample_weight(plain(sample_weight), y, dtype=np.float64, ensure_non_negative=True, copy=True)
    if not isinstance(model.class_weight, str):
        check_class_weight(model.class_weight)
    weights[weights > 0] *= compute_sample_weight(model.class_weight, y[weights > 0])
    number = np.flatnonzero(weights > 0)
    classes, labels = class_labels(y[number], model)
    if kernel.takes_vectors:
        return Dataset(X[number], None, labels, weights[number]), classes, number
    refuse_if_too_large(Exact(), len(number))
    points = kernel.encode_similarities(X) if isinstance(kernel, Precomputed) else kernel.encode_training(X)
    return Dataset(None, points[torch.from_numpy(number)], labels, weights[number]), classes, number


def encoded(kernel: Kernel, rows: Dataset, number: np.ndarray) -> tuple[Dataset, np.ndarray]:
    """Return the rows as the kernel sees them, with equal rows of equal labels merged, and the first index of each.

    Weights are factors of C here, so the weights of equal rows add up.
    """
    if rows.points is not None:
        return rows, number
    distinct = merge_duplicates(rows.X, rows.y, rows.weights)
    refuse_if_too_large(Exact(), len(distinct.y))
    first = np.unique(distinct.place, return_index=True)[1]
    return Dataset(None, kernel.encode_training(distinct.X), distinct.y, distinct.weights), number[first]
