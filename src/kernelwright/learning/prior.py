"""A Bayesian reading of the complexity term: ``exp(-n tau r)`` as a prior, and draws from it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length, column_or_1d

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.inputs.arrays import seed_of
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Kernel
from kernelwright.numerics.linalg import eigen
from kernelwright.objectives import Hyperparameters, ObjectiveValue, RademacherObjective
from kernelwright.objectives.losses import EPSILON, ClippedLogLoss, complexity_multiplier
from kernelwright.parameters import plain_values, raw_bounds

__all__ = ["ComplexityPrior", "slice_samples"]

MOST_SHRINKS = 200  # of an interval; each halves it on average, so the last ones are below rounding errors


@dataclass(frozen=True)
class ComplexityPrior:
    """The prior ``exp(-n tau r)`` behind Eq. (12) of [Hsu2018]_: ``n q`` is minus the log of likelihood times prior.

    The likelihood is the product of ``clip(f_y, epsilon, 1)``, whose values over the classes need not sum to one, so
    the posterior is a generalised one (a Gibbs posterior). There are two readings of the prior, with a sampler each;
    ``docs/theory/bayes.md`` derives them. With "4e/n", ``n tau = 4e`` whatever n.

    *Over functions*, for a given kernel: ``r = alpha |W|``, so the weights W of the outputs have a density that falls
    exponentially with their norm, not with its square as in a Gaussian process. It is a Gaussian process with one
    random amplitude for all classes: :meth:`functions`.

    *Over hyperparameters*, relative to the logarithmic scale of positive numbers within their bounds: r is that of the
    embedding that they give, which depends on the rows and their labels, so it is an empirical prior:
    :meth:`hyperparameters`.

    Parameters
    ----------
    complexity_weight : float or str, default="4e/n"
        tau.
    epsilon : float, default=1e-15
        The clip of the likelihood, for draws from the posterior.
    ridge_range : (float, float), default=(1e-6, 100.0)
        The range of lambda in draws of hyperparameters. Without a largest ridge the prior is improper, because r falls
        to zero. Below the default the complexity of a kernel of low rank is lost in rounding errors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright import kernels, learning
    >>> X, y = load_iris(return_X_y=True)
    >>> prior = learning.ComplexityPrior()
    >>> prior.functions(kernels.Gaussian(), X[:20], n_outputs=3, size=5, random_state=0).shape
    (5, 20, 3)
    >>> draws = prior.hyperparameters(kernels.Gaussian(), X[::5], y[::5], size=9, random_state=0)
    >>> sorted(draws), draws["kernel.lengthscale"].shape
    (['complexity', 'kernel.lengthscale', 'loss', 'ridge'], (9,))
    >>> fitted = prior.hyperparameters(kernels.Gaussian(), X[::5], y[::5], size=9, posterior=True, random_state=0)
    >>> bool(fitted["loss"].mean() < draws["loss"].mean())
    True
    """

    complexity_weight: float | str = "4e/n"
    epsilon: float = EPSILON
    ridge_range: tuple[float, float] = (1e-6, 100.0)

    def __post_init__(self) -> None:
        complexity_multiplier(self.complexity_weight, 1.0)
        ClippedLogLoss(self.epsilon)
        low, high = self.ridge_range
        if not 0 < low < high < math.inf:
            raise ValueError(f"The 'ridge_range' must be two numbers with 0 < low < high. Got {self.ridge_range!r}.")

    def log_density(self, kernel: Kernel, X: Any, y: Any, *, ridge: float, posterior: bool = False) -> float:
        """Return ``-n tau r`` of the embedding of the rows (``-n q`` for the posterior), up to a constant."""
        target = _Target(self, kernel, X, y, ridge, posterior)
        return target.log_density(target.evaluate())

    def hyperparameters(
        self,
        kernel: Kernel,
        X: Any,
        y: Any,
        *,
        ridge: float = 0.01,
        size: int = 100,
        thin: int = 5,
        posterior: bool = False,
        random_state: Any = None,
    ) -> dict[str, np.ndarray]:
        """Draw kernels and ridges by slice sampling, one parameter at a time, within their bounds.

        Each sweep costs some ten evaluations of Eq. (12) for each parameter. Where the complexity hardly changes, as at
        large ridges or length scales, the prior is flat, and its draws fill what their ranges leave.

        Parameters
        ----------
        kernel : Kernel
            It is copied. Its parameters are where the chain starts.
        X, y : array-like
            Rows and their labels, on which r depends.
        ridge : float, default=0.01
            Where the chain starts.
        size : int, default=100
            Number of draws; as many sweeps as one in ten come first and are left out.
        thin : int, default=5
            Sweeps between two draws.
        posterior : bool, default=False
            Multiply by the likelihood: draws of what Eq. (12) has its minimum at.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        draws : dict of str to ndarray
            "ridge", "kernel.lengthscale" and so on, one row for each draw; and "complexity" (r) and "loss" (the mean
            training loss).
        """
        target = _Target(self, kernel, X, y, ridge, posterior)
        random = np.random.default_rng(seed_of(random_state))
        chain = slice_samples(target, target.position(), target.bounds(), random)
        for _ in range(1 + size // 10):
            next(chain)
        draws = []
        for _ in range(size):
            for _ in range(thin):
                place = next(chain)
            found = target.at(place)
            numbers = {"complexity": np.array(found.complexity), "loss": np.array(found.loss)}
            draws.append(plain_values(target.hyper) | numbers)
        return {name: np.stack([draw[name] for draw in draws]) for name in draws[0]}

    def functions(
        self, kernel: Kernel, X: Any, *, n_outputs: int = 1, size: int = 1, random_state: Any = None
    ) -> np.ndarray:
        """Draw outputs at points: values of functions in the span of the kernel at these points.

        Their weights W have ``M = n * n_outputs`` coordinates, with the density ``exp(-c |W|)``, ``c = n tau alpha``:
        the norm is Gamma distributed with shape M and scale 1 / c, and all directions are alike. The covariance of
        outputs of a class is ``(M + 1) / c^2`` times the kernel. So it depends on the number of points: pass all at
        once.

        Parameters
        ----------
        kernel : Kernel
        X : array-like
            Distinct points.
        n_outputs : int, default=1
            The number of classes.
        size : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        outputs : ndarray of shape (size, n, n_outputs)
        """
        points = kernel.encode_training(X)
        kernel = kernel.prepared(points)
        n, random = len(points), np.random.default_rng(seed_of(random_state))
        with torch.no_grad():
            values, vectors = eigen(kernel.matrix(points))
            alpha = math.sqrt(float(kernel.sup_diag(points)))
        root = (vectors * values.clamp(min=0.0).sqrt()).numpy()
        c = n * complexity_multiplier(self.complexity_weight, n) * alpha
        W = random.normal(size=(size, n, n_outputs))
        norms = random.gamma(n * n_outputs, 1.0 / c, size)
        W *= (norms / np.sqrt((W**2).sum((1, 2))))[:, None, None]
        return root @ W


class _Target:
    """The log density at a vector of raw parameters, which are logarithms of positive numbers."""

    def __init__(self, prior: ComplexityPrior, kernel: Kernel, X: Any, y: Any, ridge: float, posterior: bool) -> None:
        points = kernel.encode_training(X)
        classes, labels = np.unique(column_or_1d(y), return_inverse=True)
        check_consistent_length(points, labels)
        self.data = TrainingSet.of(points, one_hot(labels, len(classes)))
        kernel = copy.deepcopy(kernel)
        kernel.prepare_(points, self.data.weights)
        self.hyper, self.posterior = Hyperparameters(kernel, ridge), posterior
        low, high = prior.ridge_range
        self.log_ridges = math.log(low), math.log(high)
        self.objective = RademacherObjective(prior.complexity_weight, ClippedLogLoss(prior.epsilon))
        self.parameters = {name: p for name, p in self.hyper.named_parameters() if p.requires_grad}

    def position(self) -> np.ndarray:
        return np.concatenate([p.detach().numpy().ravel() for p in self.parameters.values()])

    def bounds(self) -> np.ndarray:
        limits = {name: raw_bounds(self.hyper, name) for name in self.parameters} | {"log_ridge": self.log_ridges}
        found = [limits[name] for name, p in self.parameters.items() for _ in range(p.numel())]
        if not np.isfinite(found).all():
            raise ValueError("Draws of hyperparameters need a kernel whose parameters all have bounds, not a network.")
        return np.array(found)

    def evaluate(self) -> ObjectiveValue:
        return self.objective(self.hyper, self.data)

    def at(self, place: np.ndarray) -> ObjectiveValue:
        start = 0
        with torch.no_grad():
            for p in self.parameters.values():
                p.copy_(torch.from_numpy(place[start : start + p.numel()]).reshape(p.shape))
                start += p.numel()
        return self.evaluate()

    def log_density(self, found: ObjectiveValue) -> float:
        loss = found.loss if self.posterior else 0.0
        return -self.data.total_weight * (loss + self.objective.tau(self.data) * found.complexity)

    def __call__(self, place: np.ndarray) -> float:
        try:
            return self.log_density(self.at(place))
        except NumericalError:
            return -math.inf


def slice_samples(
    log_density: Callable[[np.ndarray], float], start: np.ndarray, bounds: np.ndarray, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the states of a Markov chain with this density on a box: slice sampling by shrinkage [Neal2003]_.

    In each sweep, each coordinate in turn is drawn uniformly from where the density exceeds a random share of that at
    the current place: from its whole range, which is cut down to the side of the current place at every miss.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.learning.prior import slice_samples
    >>> chain = slice_samples(lambda x: -x[0], np.zeros(1), np.array([[0.0, 50.0]]), np.random.default_rng(0))
    >>> bool(abs(np.mean([next(chain)[0] for _ in range(2000)]) - 1.0) < 0.1)  # exponential, mean 1
    True
    """
    place = np.clip(start, bounds[:, 0], bounds[:, 1])
    height = log_density(place)
    while True:
        for i, (low, high) in enumerate(bounds):
            level, moved = height - random.exponential(), place.copy()
            for _ in range(MOST_SHRINKS):
                moved[i] = random.uniform(low, high)
                found = log_density(moved)
                if found >= level:
                    place, height = moved.copy(), found
                    break
                low, high = (moved[i], high) if moved[i] < place[i] else (low, moved[i])
        yield place
