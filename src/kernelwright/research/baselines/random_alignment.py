"""Random features weighted by their alignment with the labels [Sinha2016]_."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.optimize import brentq
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from kernelwright.inputs.arrays import as_matrix, generator, validate_data
from kernelwright.inputs.labels import class_labels, one_hot
from kernelwright.kernels import FeatureKernel, Gaussian
from kernelwright.kernels.feature import FeatureMap
from kernelwright.storage.saved import saved

__all__ = ["RandomFeatureAlignment", "WeightedCosines", "best_in_chi2_ball", "best_in_kl_ball"]

BLOCK_FEATURE_VALUES = 2**22  # features held at once
TIE = 1e-12  # scores closer than this, relative to their range, are equal


@saved("weighted-cosines", buffers="frequencies phases weights")
class WeightedCosines(FeatureMap):
    """``z_m(x) = sqrt(2 q_m) cos(w_m . x + b_m)``: random Fourier features with weights q that sum to one.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from kernelwright.research.baselines.random_alignment import WeightedCosines
    >>> features = WeightedCosines(torch.tensor([[1.0]]), torch.zeros(1), torch.ones(1))
    >>> features(np.array([[0.0], [np.pi]])).round(4)
    array([[ 1.4142],
           [-1.4142]])
    """

    frequencies: Tensor
    phases: Tensor
    weights: Tensor

    def __init__(self, frequencies: Tensor, phases: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.register_buffer("frequencies", frequencies.double())
        self.register_buffer("phases", phases.double())
        self.register_buffer("weights", weights.double())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_features} features of {self.frequencies.shape[1]} inputs)"

    @property
    def n_features(self) -> int:
        """The number of cosines."""
        return len(self.weights)

    @property
    def bound(self) -> float:
        """``|z(x)|^2`` is at most twice the sum of the weights."""
        return 2.0 * float(self.weights.sum())

    def forward(self, X: Tensor) -> Tensor:
        """Return one row of weighted cosines for each row of X."""
        if X.shape[1] != self.frequencies.shape[1]:
            raise ValueError(f"{self!r} cannot be applied to points with {X.shape[1]} inputs.")
        return (2.0 * self.weights).sqrt() * torch.cos(X @ self.frequencies.T + self.phases)


@saved("random-feature-alignment", fields="classes_ width_ weights_ kernel_")
class RandomFeatureAlignment(BaseEstimator):
    """Random features of a Gaussian kernel, weighted so that their kernel is aligned with the labels [Sinha2016]_.

    Of M random cosines ``phi_m(x) = cos(w_m . x + b_m)`` the weights q maximise ``sum_m q_m (sum_i y_i phi_m(x_i))^2``
    over the distributions near the uniform one. Features of weight zero, often most of them, are not kept. This is the
    first of two stages: ``kernel_`` is then used by a support vector machine, or any estimator that takes a kernel.

    Parameters
    ----------
    n_features : int, default=10000
        M, the number of random cosines.
    width : float or "median", default="median"
        Width of the Gaussian kernel ``exp(-|x - z|^2 / (2 width^2))``; "median": the median distance between rows.
    divergence : {"chi2", "kl"}, default="chi2"
        Divergence of q from the uniform weights 1/M: ``M sum_m (q_m - 1/M)^2``, or ``sum_m q_m log(M q_m)``, for which
        no weight is exactly zero.
    rho : float, default=3.0
        The largest divergence: rho for chi-square, log(1 + rho) for Kullback-Leibler. In both cases the effective
        number of features, ``exp`` of the entropy of q (of order two or one), is at least
        ``M / (1 + rho)``. Zero leaves the weights uniform. (The authors' program bounds ``sum_m (q_m - 1/M)^2``
        by its rho over M, which is the same rho; their examples have 0.005 M.)
    random_state : int, RandomState or None, default=None
        For the random features.

    Attributes
    ----------
    kernel_ : FeatureKernel
        ``k(x, z) = 2 sum_m q_m phi_m(x) phi_m(z)``.
    weights_ : ndarray of shape (n_features,)
        q, with sum one.
    width_ : float
        The width of the Gaussian kernel.
    classes_ : ndarray

    Notes
    -----
    For two classes y is -1 or 1; for more, scores are added over the columns of centred one-hot labels. Time is
    linear in the number of rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from kernelwright.research.baselines import RandomFeatureAlignment
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> learner = RandomFeatureAlignment(2000, width=0.5, rho=10.0, random_state=0).fit(X, y)
    >>> bool(SVC(kernel=learner.kernel_, C=10.0).fit(X, y).score(X, y) > 0.95)
    True
    >>> bool(learner.kernel_.features.n_features < 1500)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "width": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "divergence": [StrOptions({"chi2", "kl"})],
        "rho": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    kernel_: FeatureKernel

    def __init__(
        self,
        n_features: int = 10000,
        width: float | str = "median",
        *,
        divergence: str = "chi2",
        rho: float = 3.0,
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.width = width
        self.divergence = divergence
        self.rho = rho
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> RandomFeatureAlignment:
        """Draw the features and learn their weights.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_, labels = class_labels(y, self)
        points, M = as_matrix(X), int(self.n_features)
        gaussian = Gaussian(self.width)
        gaussian.prepare_(points)  # the median distance
        self.width_ = float(gaussian.lengthscale.detach())
        draw = generator(self.random_state)
        frequencies = torch.randn(M, X.shape[1], generator=draw, dtype=torch.float64) / self.width_
        phases = 2.0 * math.pi * torch.rand(M, generator=draw, dtype=torch.float64)
        features = WeightedCosines(frequencies, phases, torch.full((M,), 1.0 / M))
        best = best_in_chi2_ball if self.divergence == "chi2" else best_in_kl_ball
        q = best(feature_scores(features, points, _codes(labels)), float(self.rho))
        kept = q > 0
        self.weights_ = q.numpy()
        self.kernel_ = FeatureKernel(WeightedCosines(frequencies[kept], phases[kept], q[kept]))
        return self


def _codes(labels: np.ndarray) -> Tensor:
    """Return labels as columns of numbers: -1 and 1 for two classes, centred one-hot rows for more."""
    n_classes = int(labels.max()) + 1
    if n_classes == 2:
        return torch.from_numpy(2.0 * labels - 1.0)[:, None]
    Y = one_hot(labels, n_classes)
    return Y - Y.mean(0)


def feature_scores(features: FeatureMap, X: Tensor, Y: Tensor) -> Tensor:
    """Return ``sum_c (sum_i Y_ic z_m(x_i))^2`` for each feature m, computed by blocks of rows."""
    step = max(1, BLOCK_FEATURE_VALUES // features.n_features)
    with torch.no_grad():
        blocks = zip(X.split(step), Y.split(step), strict=True)
        sums = sum(y.T @ features(x) for x, y in blocks)
    return (sums**2).sum(0)


def best_in_chi2_ball(scores: Tensor, rho: float) -> Tensor:
    """Return the weights q of sum one that maximise ``sum_m q_m scores_m`` with ``M sum_m (q_m - 1/M)^2 <= rho``.

    With the multiplier 1/t of the ball, q is the projection of ``t * scores`` onto the simplex, which is
    ``t (scores - threshold)`` where that is positive, on the k best features. As t grows, k falls and ``sum q^2``
    rises to its bound ``(1 + rho) / M``. Sums over the sorted scores give ``sum q^2`` at each t where k changes;
    between two of them t has a closed form. So the search over t of [Sinha2016]_ ends after one sort.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.research.baselines.random_alignment import best_in_chi2_ball
    >>> best_in_chi2_ball(torch.tensor([3.0, 1.0, 2.0, 0.0]), 0.2)
    tensor([0.4000, 0.2000, 0.3000, 0.1000], dtype=torch.float64)
    """
    M = len(scores)
    loss, order = (scores.max() - scores.double()).sort()  # of each feature against the best one
    q, spread = torch.zeros(M, dtype=torch.float64), float(loss[-1])
    if spread > 0:
        loss = loss / spread
    k, first = torch.arange(1, M + 1, dtype=torch.float64), loss.cumsum(0)
    about_mean = ((loss**2).cumsum(0) - first**2 / k).clamp(min=0.0)  # of the first k
    entry = (k * loss - first).clamp(min=0.0)  # the k-th feature has weight where t < 1 / entry
    limit, ties = (1.0 + rho) / M, int((loss <= TIE).sum())
    if limit >= 1.0 / ties:  # large enough for all weight to be on the best feature and its ties
        q[order[:ties]] = 1.0 / ties
        return q
    norms = torch.full((M,), torch.inf, dtype=torch.float64)
    norms[ties:] = 1.0 / k[ties:] + about_mean[ties:] / entry[ties:] ** 2  # sum q^2 at t = 1 / entry
    best = int((norms > limit).sum())
    t = math.sqrt(max(limit - 1.0 / best, 0.0) / float(about_mean[best - 1]))
    q[order[:best]] = (1.0 / best + t * (first[best - 1] / best - loss[:best])).clamp(min=0.0)
    return q / q.sum()


def best_in_kl_ball(scores: Tensor, rho: float) -> Tensor:
    """Return the weights q of sum one that maximise ``sum_m q_m scores_m`` in a Kullback-Leibler ball.

    The ball is ``sum_m q_m log(M q_m) <= log(1 + rho)``. The weights are ``softmax(t * scores)``, with t from
    bisection, because the divergence grows with t.

    Examples
    --------
    >>> import torch
    >>> from kernelwright.research.baselines.random_alignment import best_in_kl_ball
    >>> best_in_kl_ball(torch.tensor([3.0, 1.0, 2.0, 0.0]), 0.0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """
    loss = scores.max() - scores.double()
    spread, M, limit = float(loss.max()), len(scores), math.log1p(rho)
    if spread == 0 or rho == 0:
        return torch.full_like(loss, 1.0 / M)
    best = loss <= TIE * spread
    if limit >= math.log(M / int(best.sum())):
        return best.double() / best.sum()

    def excess(t: float) -> float:
        log_q = torch.log_softmax(-t * loss / spread, 0)
        return float((log_q.exp() * (log_q + math.log(M))).sum()) - limit

    most = 1.0
    while excess(most) < 0:
        most *= 2.0
    return torch.softmax(-brentq(excess, 0.0, most, xtol=1e-14) * loss / spread, 0)
