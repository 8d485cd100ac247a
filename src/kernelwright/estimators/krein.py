"""A support vector machine whose kernel need not be positive semidefinite."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from kernelwright.errors import DistanceMatrixWarning, NumericalError
from kernelwright.estimators.arrows import refuse_if_too_large
from kernelwright.estimators.base import KernelEstimator
from kernelwright.inputs.arrays import plain, validate_data
from kernelwright.inputs.duplicates import merge_duplicates
from kernelwright.inputs.labels import check_labels, class_labels
from kernelwright.inputs.weights import check_class_weight
from kernelwright.kernels import Gaussian, Kernel, Precomputed
from kernelwright.kernels.precomputed import looks_like_distances
from kernelwright.numerics.threads import threads_for
from kernelwright.similarity.indefinite import CORRECTIONS, Signature, correct
from kernelwright.solvers import Exact
from kernelwright.storage.saved import saved

__all__ = ["KreinSVC"]

MOST_STEPS = 10_000_000  # of the solver, which on some matrices would go on for ever; it warns when it stops here
COST_FACTORS = (0.01, 0.1, 1.0, 10.0, 100.0)

LIKE_DISTANCES = (
    "Each row of this kernel matrix is smallest at its own object, as a row of distances is, but large values must "
    "mean alike. If these are distances, use their negatives or np.exp(-D / D_train.mean()), at fit and at prediction "
    "alike. If they are similarities, put those of each object with itself on the diagonal."
)

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]


class FunctionKernel(Kernel):
    """A function ``(X, Z) -> matrix`` of NumPy arrays as a kernel. It must be symmetric and is not learned."""

    def __init__(self, function: Similarity) -> None:
        super().__init__()
        self.function = function

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        Z = X if Z is None else Z
        K = torch.from_numpy(np.array(self.function(X.numpy(), Z.numpy()), dtype=np.float64))
        if K.shape != (len(X), len(Z)):
            raise ValueError(
                f"A kernel function must return a matrix with a row for each row of its first argument and a column "
                f"for each row of its second, here {(len(X), len(Z))}. Got shape {tuple(K.shape)} instead."
            )
        return K

    def matrix(self, X: Tensor) -> Tensor:
        K = self.forward(X)
        gap = float((K - K.T).abs().max())
        if gap > 1e-8 * max(1.0, float(K.abs().max())):
            raise ValueError(
                f"A kernel function must be symmetric. Entries differ from their mirror by {gap:.3g}; "
                "use the mean of k(x, z) and k(z, x)."
            )
        return 0.5 * (K + K.T)


@saved("krein-svc", fields="classes_ scaler_ kernel_ C_ points_ coefficients_ intercept_ signature_ support_")
class KreinSVC(ClassifierMixin, KernelEstimator):
    """A support vector classifier on any symmetric similarity, also one with negative eigenvalues.

    The kernel matrix of the training rows is corrected (:func:`kernelwright.similarity.indefinite.correct`), a
    :class:`sklearn.svm.SVC` is fitted to it, and the same correction of new rows is folded into its coefficients,
    ``f(x) = k(x)^T (P a) + b``: a prediction costs one row of kernel values and one product. ``signature_`` says how
    indefinite the matrix was. Where it was not, all corrections are the plain support vector machine.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, default=None
        A kernel of this library; a symmetric function ``(X, Z) -> matrix`` of arrays of numbers; "precomputed", where
        ``X`` is the kernel matrix (at prediction: new rows against training rows). Large values mean alike: what looks
        like distances brings a :class:`~kernelwright.DistanceMatrixWarning`. ``None`` is a Gaussian at the median
        distance of the inputs as they are.
    C : float or "auto", default=1.0
        Weight of the slack, as in SVC. "auto" is the best of a few in cross-validation, relative to the spread of the
        corrected kernel.
    correction : {"clip", "flip", "shift", "none"}, default="clip"
        What happens to negative eigenvalues. "clip" sets them to zero. "flip" takes their absolute values, which is
        KSVM of [Loosli2016]_: a stationary point of the problem in the Krein space. "shift" adds the most negative
        one to the diagonal. "none" leaves them: the solver then finds *a* stationary point of a problem that is not
        convex, and which one depends on where it starts.
    class_weight : dict, "balanced" or None, default=None
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With three classes or more: a column for each class (votes of the pairwise machines and, within a vote, their
        confidence) or for each pair of classes.
    tol : float, default=1e-3
        Accuracy of the solver, as in SVC.

    Attributes
    ----------
    classes_ : ndarray
    C_ : float
    signature_ : Signature
        Signs of the eigenvalues of the kernel matrix before correction.
    kernel_ : Kernel
        The kernel, with its length scale set if that was "median"; a function is wrapped into a kernel.
    support_ : ndarray of int
        Rows of ``X`` that are support vectors of the corrected problem.
    points_ : ndarray
        The training points that predictions need: with "clip" and "flip" on an indefinite kernel all, else the
        support vectors.
    coefficients_ : ndarray of shape (n_pairs, n_points)
        ``P a`` of each pair of classes; positive outputs are the first class of a pair, with two classes the second.
    intercept_ : ndarray of shape (n_pairs,)
    n_features_in_, feature_names_in_

    Notes
    -----
    Equal rows with equal labels are one row with the sum of their weights, in the spectrum too (not with
    "precomputed"). :meth:`predict` is the largest decision value: ``SVC(break_ties=True)``. Cost is cubic, memory
    quadratic in the number of rows. Nothing is random.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [Kernel, callable, StrOptions({"precomputed"}), None],
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "correction": [StrOptions(set(CORRECTIONS))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    signature_: Signature

    def __init__(
        self,
        kernel: Kernel | Similarity | str | None = None,
        *,
        C: float | str = 1.0,
        correction: str = "clip",
        class_weight: dict[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        tol: float = 1e-3,
    ) -> None:
        self.kernel = kernel  # type: ignore[assignment]
        self.C = C
        self.correction = correction
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KreinSVC:
        """Correct the kernel matrix of the rows and fit a support vector machine to it.

        Parameters
        ----------
        X : array-like of shape (n, d), or of shape (n, n) with kernel="precomputed"
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Factors of ``C``; rows of weight zero do not exist.
        """
        self._validate_params()
        kernel = self._start_kernel()
        X, labels, weights, kept = self._check_training_data(kernel, X, y, sample_weight)
        rows = np.flatnonzero(kept)
        if kernel.takes_vectors:
            distinct = merge_duplicates(X[rows], labels, weights)
            X, labels, weights = distinct.X, distinct.y, distinct.weights
            rows = rows[np.unique(distinct.place, return_index=True)[1]]
        refuse_if_too_large(Exact(), len(rows))
        points = kernel.encode_similarities(X) if isinstance(kernel, Precomputed) else kernel.encode_training(X)
        if not kernel.takes_vectors:  # places of precomputed values are those in the whole matrix
            points = points[torch.from_numpy(rows)]
        with torch.no_grad(), threads_for(len(points)):
            kernel.prepare(points, torch.from_numpy(weights))
            support = self._solve(kernel, points, labels, weights)
        self.kernel_, self.support_ = kernel, np.sort(rows[support])
        return self

    def _start_kernel(self) -> Kernel:
        if self.kernel is None:
            return Gaussian("median")
        if isinstance(self.kernel, (Kernel, str)):
            return super()._start_kernel()
        return FunctionKernel(self.kernel)

    def _check_training_data(
        self, kernel: Kernel, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Checked X; labels and weights of the rows that count, and which rows those are (weight not zero)."""
        self.scaler_ = None
        if kernel.takes_vectors or isinstance(kernel, Precomputed):
            given = isinstance(kernel, Precomputed)  # which has words of its own for values that are missing
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=not given)
        else:
            X, y = np.asarray(X, dtype=object), column_or_1d(y)
            check_consistent_length(X, y)
        check_labels(y)  # before its classes are weighed
        weights = _check_sample_weight(plain(sample_weight), y, dtype=np.float64, ensure_non_negative=True, copy=True)
        if not isinstance(self.class_weight, str):
            check_class_weight(self.class_weight)
        weights[weights > 0] *= compute_sample_weight(self.class_weight, y[weights > 0])
        kept = weights > 0
        self.classes_, labels = class_labels(y[kept], self)
        return X, labels, weights[kept], kept

    def _solve(self, kernel: Kernel, points: Tensor, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Keep what prediction needs, and return the support vectors."""
        K = kernel.matrix(points)
        if looks_like_distances(K):
            warnings.warn(LIKE_DISTANCES, DistanceMatrixWarning, stacklevel=3)
        corrected = correct(K, self.correction)
        try:
            self.C_ = _best_cost(corrected.matrix, labels, weights) if self.C == "auto" else float(self.C)
            machine = SVC(C=self.C_, kernel="precomputed", tol=self.tol, random_state=0, max_iter=MOST_STEPS)
            machine.fit(corrected.matrix.numpy(), labels, sample_weight=weights)
        except ValueError as error:
            if "not finite" not in str(error):
                raise
            raise NumericalError(
                "The support vector machine found no finite solution: kernel values go up to "
                f"{float(corrected.matrix.abs().max()):.1e}. Likely causes: (a) inputs of a kernel without bounds that "
                "are not standardised; (b) an outlier; (c) a very large C."
            ) from error
        alpha = pair_coefficients(machine, labels)
        folded = corrected.transform(torch.from_numpy(alpha)).numpy()
        used = np.flatnonzero(folded.any(0))
        # Of precomputed values only a training object's place is needed to find its column in new rows.
        width = 1 if isinstance(kernel, Precomputed) else None
        self.points_ = points.numpy()[used, :width]
        self.coefficients_ = folded[:, used]
        self.intercept_ = machine.intercept_
        self.signature_ = corrected.signature
        return machine.support_

    # prediction ----------------------------------------------------------------------------------------

    def _pairwise(self, X: Any) -> np.ndarray:
        """Outputs of the machines, a column for each pair of classes."""
        new = self._new_points(X)
        P = torch.from_numpy(self.coefficients_.T)
        return torch.cat([K @ P for K in self._kernel_blocks(new)]).numpy() + self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distances of two classes; a column for each class or pair of more, as SVC has them."""
        outputs = self._pairwise(X)
        if len(self.classes_) == 2:
            return outputs.ravel()
        if self.decision_function_shape == "ovo":
            return outputs
        return _ovr_decision_function(outputs < 0, -outputs, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest decision value."""
        outputs = self._pairwise(X)
        if len(self.classes_) == 2:
            return self.classes_[(outputs.ravel() > 0).astype(int)]
        votes = _ovr_decision_function(outputs < 0, -outputs, len(self.classes_))
        return self.classes_[votes.argmax(1)]


def _best_cost(K: Tensor, labels: np.ndarray, weights: np.ndarray) -> float:
    """The cost of the best accuracy in up to five folds; the smallest of equal ones, in units of 1/spread."""
    spread = float(K.diagonal().mean() - K.mean())  # mean squared distance from the mean, in the feature space
    unit = 1.0 / spread if spread > 0 else 1.0
    if np.bincount(labels).min() < 2:
        return unit  # a class that cannot be left out
    folds = StratifiedKFold(int(np.clip(np.bincount(labels).min(), 2, 5)), shuffle=True, random_state=0)
    search = GridSearchCV(
        SVC(kernel="precomputed", random_state=0, max_iter=MOST_STEPS),
        {"C": [unit * factor for factor in COST_FACTORS]},
        cv=folds,
    )
    return float(search.fit(K.numpy(), labels, sample_weight=weights).best_params_["C"])


def pair_coefficients(machine: SVC, labels: np.ndarray) -> np.ndarray:
    """Coefficients of all training rows in the output of each pair of classes.

    SVC keeps them packed: of the machine of classes i < j, a support vector of class i has its coefficient in row
    j - 1 of ``dual_coef_``, and one of class j has it in row i.
    """
    pairs = list(combinations(range(len(machine.classes_)), 2))
    of_support = labels[machine.support_]
    alpha = np.zeros((len(pairs), len(labels)))
    for row, (i, j) in enumerate(pairs):
        first, second = of_support == i, of_support == j
        alpha[row, machine.support_[first]] = machine.dual_coef_[j - 1, first]
        alpha[row, machine.support_[second]] = machine.dual_coef_[i, second]
    return alpha
