"""Bayesian efficient multiple kernel learning: kernel weights by variational inference."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.special import log_ndtr

from kernelwright.inputs.arrays import validate_data
from kernelwright.inputs.labels import class_labels
from kernelwright.kernels import Gaussian, Kernel, Polynomial
from kernelwright.numerics.memory import check_memory
from kernelwright.numerics.threads import threads_for
from kernelwright.research.baselines.mkl_inference import Gamma, Inference
from kernelwright.storage.saved import saved

__all__ = ["BayesianMKL"]

STACKED_KERNEL_VALUES = 2**24  # kernel values held at once while predicting


def default_kernels() -> list[Kernel]:
    """Return Gaussians of eleven widths ``2^-5, ..., 2^5`` and polynomials of degree 1, 2 and 3."""
    return [Gaussian(2.0**power) for power in range(-5, 6)] + [Polynomial(degree) for degree in (1, 2, 3)]


def kernel_tensor(kernels: list[Kernel], X: Tensor, Z: Tensor | None = None) -> Tensor:
    """Return ``k_m(x_i, z_j) / sqrt(k_m(x_i, x_i) k_m(z_j, z_j))`` of all kernels, stacked."""
    K = X.new_empty(len(kernels), len(X), len(X if Z is None else Z))
    for m, kernel in enumerate(kernels):
        left = kernel._diag(X).clamp(min=1e-300).rsqrt()
        right = left if Z is None else kernel._diag(Z).clamp(min=1e-300).rsqrt()
        K[m] = (kernel.matrix(X) if Z is None else kernel.forward(X, Z)) * left[:, None] * right
    return K


@saved(
    "bayesian-mkl",
    fields="classes_ kernels_ points_ coefficients_ intercept_ kernel_weights_ lower_bound_ n_iter_ _posterior",
)
class BayesianMKL(ClassifierMixin, BaseEstimator):
    """Bayesian efficient multiple kernel learning of [Gonen2012]_, a probit classifier on a weighted sum of kernels.

    One vector of coefficients ``a`` serves all kernels: kernel m gives the intermediate outputs
    ``g_m(x) ~ N(a^T k_m(x), noise^2)``, they are weighted to ``f(x) ~ N(e^T g(x) + b, 1)``, and a label says that
    ``y f > margin``. Coefficients, bias and kernel weights (of either sign) are Gaussian, with precisions that have
    Gamma priors. The posterior factorises, and each factor is optimal given the others, so the bound on the evidence
    never falls. With three or more classes, one-versus-rest outputs have their own coefficients and share the kernel
    weights.

    Parameters
    ----------
    kernels : list of Kernel or None, default=None
        ``None`` is eleven Gaussians of widths ``2^-5, ..., 2^5`` and polynomials ``(x . z + 1)^d``, d = 1, 2, 3, on
        the unscaled inputs. Each is divided by ``sqrt(k(x, x) k(z, z))``. Kernels are not learned themselves
        (length scales "median" are set).
    sample_prior, bias_prior, kernel_prior : (float, float), default=(1.0, 1.0)
        Shape and scale of the Gamma priors of the precisions of coefficients, bias and kernel weights. A
        ``kernel_prior`` of ``(1e-10, 1e10)`` gives sparse kernel weights.
    margin : float, default=1.0
        Half the width of the band around zero that contains no training outputs.
    noise : float, default=0.1
        Standard deviation of the intermediate outputs.
    max_iter : int, default=200

    Attributes
    ----------
    classes_ : ndarray
    kernels_ : list of Kernel
    kernel_weights_ : ndarray of shape (n_kernels,)
        Posterior means of the weights e.
    coefficients_ : ndarray of shape (n, n_outputs)
        Posterior means of a; one output for two classes.
    intercept_ : ndarray of shape (n_outputs,)
    lower_bound_ : ndarray of shape (max_iter,)
        The bound on the log evidence after each sweep.
    n_iter_ : int
    points_ : ndarray
    n_features_in_, feature_names_in_

    Notes
    -----
    Memory is that of the p matrices of the p kernels; a sweep costs p products with them and one factorisation for
    each output. It starts from ``f = g = (1 + margin) y`` and equal kernel weights, so nothing is random. The variance
    of f at a new point is that of the weights, ``1 + [1, g]^T cov [1, g]`` at the mean g, as published.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright.research.baselines import BayesianMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianMKL(max_iter=50).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> len(model.kernel_weights_)
    14
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernels": ["array-like", None],
        "sample_prior": ["array-like"],
        "bias_prior": ["array-like"],
        "kernel_prior": ["array-like"],
        "margin": [Interval(Real, 0, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        kernels: list[Kernel] | None = None,
        *,
        sample_prior: tuple[float, float] = (1.0, 1.0),
        bias_prior: tuple[float, float] = (1.0, 1.0),
        kernel_prior: tuple[float, float] = (1.0, 1.0),
        margin: float = 1.0,
        noise: float = 0.1,
        max_iter: int = 200,
    ) -> None:
        self.kernels = kernels
        self.sample_prior = sample_prior
        self.bias_prior = bias_prior
        self.kernel_prior = kernel_prior
        self.margin = margin
        self.noise = noise
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> BayesianMKL:
        """Find the variational posterior."""
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, labels = class_labels(y, self)
        self.kernels_ = self._start_kernels()
        n, p = len(X), len(self.kernels_)
        check_memory(8.0 * n**2 * (p + 4), f"{p} kernel matrices of {n} rows", "Use fewer kernels or rows.")
        points = torch.from_numpy(X.copy())
        targets = 2.0 * (labels[:, None] == np.arange(len(self.classes_))) - 1.0
        Y = torch.from_numpy(targets[:, 1:] if len(self.classes_) == 2 else targets)
        with torch.no_grad(), threads_for(n):
            for kernel in self.kernels_:
                kernel.prepare_(points)
            K = kernel_tensor(self.kernels_, points)
            self._posterior = Inference(K, Y, self._priors(), self.margin, self.noise).ascend(self.max_iter)
        self.points_ = points.numpy()
        self.coefficients_ = self._posterior.coefficients.numpy()
        self.intercept_ = self._posterior.bias.numpy()
        self.kernel_weights_ = self._posterior.weights.numpy()
        self.lower_bound_, self.n_iter_ = self._posterior.lower_bound, self.max_iter
        return self

    def _start_kernels(self) -> list[Kernel]:
        kernels = default_kernels() if self.kernels is None else list(copy.deepcopy(self.kernels))
        if not kernels or not all(isinstance(kernel, Kernel) and kernel.takes_vectors for kernel in kernels):
            raise ValueError(
                "The 'kernels' parameter of BayesianMKL must be a list of at least one kernel on vectors, or None. "
                f"Got {self.kernels!r} instead."
            )
        return kernels

    def _priors(self) -> dict[str, Gamma]:
        priors = {}
        for name in ("sample", "bias", "kernel"):
            prior = np.asarray(getattr(self, f"{name}_prior"), dtype=np.float64)
            if prior.shape != (2,) or not (prior > 0).all():
                raise ValueError(
                    f"The '{name}_prior' parameter of BayesianMKL must be two positive numbers, shape and scale of a "
                    f"Gamma distribution. Got {getattr(self, f'{name}_prior')!r} instead."
                )
            priors[name] = Gamma(float(prior[0]), torch.tensor(prior[1]))
        return priors

    # prediction ----------------------------------------------------------------------------------------

    def _blocks(self, X: Any) -> Iterator[Tensor]:
        """Yield the kernel values between new points and the training points, some rows at a time."""
        check_is_fitted(self)
        new = torch.from_numpy(validate_data(self, X, dtype=np.float64, reset=False).copy())
        training = torch.from_numpy(self.points_)
        for block in new.split(max(1, STACKED_KERNEL_VALUES // (len(self.kernels_) * len(training)))):
            with torch.no_grad():
                yield kernel_tensor(self.kernels_, block, training)

    def _log_odds(self, X: Any) -> Tensor:
        """Return ``log p(y f > margin) - log p(y f < -margin)`` of each output."""
        moments = [self._posterior.predict(K) for K in self._blocks(X)]
        mean, variance = (torch.cat(part) for part in zip(*moments, strict=True))
        deviation = variance.sqrt()
        return log_ndtr((mean - self.margin) / deviation) - log_ndtr((-mean - self.margin) / deviation)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log odds of the second of two classes, or of each of more classes against the rest."""
        odds = self._log_odds(X).numpy()
        return odds.ravel() if len(self.classes_) == 2 else odds

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probits of the predictive mean and variance outside the margin; normalised for many classes."""
        return self.probabilities(self.decision_function(X))

    @staticmethod
    def probabilities(log_odds: np.ndarray) -> np.ndarray:
        """Return the probabilities behind the values of :meth:`decision_function`."""
        odds = torch.from_numpy(log_odds)
        if odds.ndim == 1:
            return torch.sigmoid(torch.stack([-odds, odds], 1)).numpy()
        return torch.softmax(torch.nn.functional.logsigmoid(odds), 1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class."""
        odds = self._log_odds(X)
        best = (odds.squeeze(1) > 0).long() if len(self.classes_) == 2 else odds.argmax(1)
        return self.classes_[best.numpy()]
