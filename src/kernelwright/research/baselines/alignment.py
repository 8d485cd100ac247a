"""The weighted sum of kernels that is best aligned with the labels [Cortes2012]_."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions
from torch import Tensor

from kernelwright.inputs.arrays import as_matrix, validate_data
from kernelwright.inputs.labels import class_labels
from kernelwright.kernels import Gaussian, Kernel, KroneckerDelta
from kernelwright.similarity.alignment import LazyKernelMatrix, centred_gram, weights_of_gram
from kernelwright.storage.saved import saved

__all__ = ["AlignmentKernel"]


@saved("alignment-kernel", fields="classes_ alignment_ weights_ kernel_")
class AlignmentKernel(BaseEstimator):
    """``k = sum_k mu_k k_k`` with weights ``mu >= 0`` that align it with the labels [Cortes2012]_.

    This is the first of two stages: ``kernel_`` is then used by a support vector machine, or by any estimator that
    takes a kernel. The target is the ideal kernel ``2 delta(y, y') - 1``, which is ``y y^T`` for two classes.

    Parameters
    ----------
    kernels : list of Kernel or None, default=None
        The kernels to combine. None: eleven Gaussians of widths 2^-5, 2^-4, ..., 2^5, for inputs in [0, 1].
    method : {"alignf", "align"}, default="alignf"
        "alignf" chooses all weights together; "align" uses the alignment of each kernel on its own.

    Attributes
    ----------
    kernel_ : Kernel
        The sum, without the kernels of weight zero.
    weights_ : ndarray
        One weight for each of ``kernels``: mu, scaled so that the centred ``kernel_`` is closest to the ideal kernel.
        (With norm one, as in the paper, nearly constant kernels give a sum that hardly varies, and a support vector
        machine would need a very large C.)
    alignment_ : float
        The centred alignment of ``kernel_`` with the target on the training points.
    classes_ : ndarray

    Notes
    -----
    Time is quadratic in the number of rows; no n x n matrix is held.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from kernelwright.research.baselines import AlignmentKernel
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> learner = AlignmentKernel().fit(X, y)
    >>> bool(SVC(kernel=learner.kernel_).fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernels": [list, tuple, None],
        "method": [StrOptions({"alignf", "align"})],
    }

    kernel_: Kernel

    def __init__(self, kernels: Sequence[Kernel] | None = None, *, method: str = "alignf") -> None:
        self.kernels = kernels
        self.method = method

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> AlignmentKernel:
        """Learn the weights of the kernels.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_, labels = class_labels(y, self)
        points = as_matrix(X)
        kernels = prepared_kernels(self, gaussians() if self.kernels is None else self.kernels, points)
        # The ideal kernel is 2 delta - 1. Centring removes the constant, and the factor is applied below.
        target = LazyKernelMatrix(KroneckerDelta(), torch.from_numpy(labels)[:, None])
        gram = centred_gram([*(LazyKernelMatrix(kernel, points) for kernel in kernels), target])
        mu = weights_of_gram(gram, method=self.method)
        to_target, to_itself = float(mu @ gram[:-1, -1]), float(mu @ gram[:-1, :-1] @ mu)
        self.alignment_ = to_target / math.sqrt(to_itself * float(gram[-1, -1]))
        self.weights_ = (2.0 * to_target / to_itself * mu).numpy()
        terms = zip(self.weights_.tolist(), kernels, strict=True)
        self.kernel_ = sum(weight * kernel for weight, kernel in terms if weight > 0)
        return self


def gaussians() -> list[Kernel]:
    """Return ``exp(-|x - z|^2 / (2 sigma^2))`` for eleven widths, for inputs in [0, 1]."""
    return [Gaussian(2.0**power) for power in range(-5, 6)]


def prepared_kernels(estimator: Any, kernels: Sequence[Any], X: Tensor) -> list[Kernel]:
    """Return copies of the user's kernels, with parameters that depend on the data set."""
    wrong = [kernel for kernel in kernels if not isinstance(kernel, Kernel) or not kernel.takes_vectors]
    if wrong or len(kernels) == 0:
        raise ValueError(
            f"The 'kernels' parameter of {type(estimator).__name__} must be a list of at least one kernel on "
            f"vectors. Got {wrong[0] if wrong else kernels!r} instead."
        )
    copies = [copy.deepcopy(kernel) for kernel in kernels]
    for kernel in copies:
        kernel.prepare_(X)
    return copies
