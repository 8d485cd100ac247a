"""A kernel without a formula: a weight for each pair of training points, in the style of DANK."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval
from torch import Tensor

from kernelwright.inputs.arrays import validate_data
from kernelwright.inputs.labels import class_labels
from kernelwright.inputs.options import TakesOptions
from kernelwright.kernels import Gaussian, Kernel
from kernelwright.numerics.distances import euclidean
from kernelwright.numerics.linalg import eigen
from kernelwright.numerics.memory import check_memory
from kernelwright.numerics.threads import threads_for
from kernelwright.storage.saved import saved

__all__ = ["AdaptedKernel", "DataAdaptiveKernel"]

SOLVER_TOLERANCE = 1e-6  # of the support vector machines, well below the required gap
CHECK_EVERY = 10  # steps, because each check of the gap fits support vector machines
BISECTIONS = 60  # enough for full precision


@saved("pair-weighting")
@dataclass(frozen=True)
class Weighting:
    """A weight for each pair of training points, and the distance up to which a point represents its neighbours."""

    points: Tensor
    bordered: Tensor  # F, with a last row and column of ones for points without a neighbour
    reach: Tensor  # the distance of each point to its nearest neighbour

    @classmethod
    def of(cls, points: Tensor, F: Tensor) -> Weighting:
        """Compute the reaches from the distances between the points."""
        bordered = torch.nn.functional.pad(F, (0, 1, 0, 1), value=1.0)
        return cls(points, bordered, euclidean(points).fill_diagonal_(torch.inf).min(1).values)

    def places(self, X: Tensor) -> Tensor:
        """Return the index of each point's reciprocal nearest neighbour, or the index of the ones if it has none."""
        nearest = euclidean(X, self.points).min(1)
        reciprocal = nearest.values <= self.reach[nearest.indices]
        return torch.where(reciprocal, nearest.indices, len(self.points))

    def __repr__(self) -> str:
        return f"<weights of {len(self.points)} points>"


@saved("adapted-kernel", fields="kernel weighting")
class AdaptedKernel(Kernel):
    """``F(x, z) k(x, z)``: a kernel, and weights of pairs that are looked up at reciprocal nearest neighbours.

    A training point and a new point are reciprocal neighbours if the training point is nearest to the new point, and no
    other training point is nearer to it than the new point. At training points F is the learned matrix. A point without
    such a neighbour has weight 1 with all others. Values jump where the neighbour changes.
    """

    def __init__(self, kernel: Kernel, weighting: Weighting) -> None:
        super().__init__()
        self.kernel, self.weighting = kernel, weighting

    def forward(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        """Return the matrix ``F(x_i, z_j) k(x_i, z_j)``; ``Z = None`` means ``Z = X``."""
        left = self.weighting.places(X)
        right = left if Z is None else self.weighting.places(Z)
        return self.weighting.bordered[left][:, right] * self.kernel.forward(X, Z)

    def _diag(self, X: Tensor) -> Tensor:
        return self.weighting.bordered.diagonal()[self.weighting.places(X)] * self.kernel._diag(X)


@dataclass(frozen=True)
class AdaptiveProblem:
    """``min_F max_alpha`` of :class:`DataAdaptiveKernel`; a column of Y is a task, of signs."""

    K: Tensor
    Y: Tensor
    C: float
    eta: float
    tau: float

    def machines(self, F: Tensor) -> Tensor:
        """Return ``alpha * y`` of the support vector machines with kernel matrix ``F * K``, one column a task."""
        A, beta = (F * self.K).numpy(), torch.zeros_like(self.Y)
        for task, y in enumerate(self.Y.T.numpy()):
            machine = SVC(C=self.C, kernel="precomputed", tol=SOLVER_TOLERANCE).fit(A, y)
            beta[torch.from_numpy(machine.support_).long(), task] = torch.from_numpy(machine.dual_coef_[0])
        return beta

    def value(self, F: Tensor, beta: Tensor) -> float:
        """Return the objective at given weights and dual variables."""
        dual = (self.Y * beta).sum() - 0.5 * (beta * ((F * self.K) @ beta)).sum()
        return float(dual + self.eta * (((F - 1.0) ** 2).sum() + self.tau * F.trace()))

    def best_weights(self, beta: Tensor) -> Tensor:
        """Return the optimal weights for given dual variables: eigenvalues shrunk by ``tau / 2``."""
        values, U = eigen(1.0 + self.K * (beta @ beta.T) / (4.0 * self.eta))
        return (U * (values - 0.5 * self.tau).clamp(min=0.0)) @ U.T


def project(beta: Tensor, Y: Tensor, C: float) -> Tensor:
    """Project each column to the nearest ``alpha * y`` with ``0 <= alpha <= C`` and ``alpha^T y = 0``, by bisection."""
    high = beta.abs().max(0).values + C
    low = -high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        too_small = (Y * (Y * (beta - middle)).clamp(0.0, C)).sum(0) > 0
        low, high = torch.where(too_small, middle, low), torch.where(too_small, high, middle)
    return Y * (Y * (beta - 0.5 * (low + high))).clamp(0.0, C)


@dataclass(frozen=True)
class Found:
    """Weights, their objective, a bound on its distance to the minimum, and the number of steps."""

    weights: Tensor
    objective: float
    gap: float
    n_iter: int


def learn_weights(problem: AdaptiveProblem, max_iter: int, tol: float) -> Found:
    """Learn the weights by Nesterov's accelerated projected gradient on the dual variables.

    The minimum over F has a closed form. It is concave and smooth in the dual variables, and its gradient is that of
    the machines at the best F. Machines that are solved for that F give the upper bound.
    """
    beta = problem.machines(torch.ones_like(problem.K))
    ahead, momentum, curvature = beta, 1.0, 1.0
    for step in range(max_iter + 1):
        if step % CHECK_EVERY == 0 or step == max_iter:
            F = problem.best_weights(beta)
            upper = problem.value(F, problem.machines(F))
            gap = max(upper - problem.value(F, beta), 0.0)
            if gap <= tol * abs(upper):
                break
        following, curvature = ascend(problem, ahead, 0.9 * curvature)
        if float(((following - ahead) * (following - beta)).sum()) < 0:  # the momentum points uphill: restart it
            momentum, ahead = 1.0, following
        else:
            larger = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = following + (momentum - 1.0) / larger * (following - beta)
            momentum = larger
        beta = following
    return Found(F, upper, gap, step)


def ascend(problem: AdaptiveProblem, beta: Tensor, curvature: float) -> tuple[Tensor, float]:
    """Take one projected gradient step, as long as the curvature allows; return the point and the curvature."""
    F = problem.best_weights(beta)
    value, gradient = problem.value(F, beta), problem.Y - (F * problem.K) @ beta
    while True:
        following = project(beta + gradient / curvature, problem.Y, problem.C)
        move = following - beta
        promised = float((gradient * move).sum() - 0.5 * curvature * (move**2).sum())
        if problem.value(problem.best_weights(following), following) >= value + promised - 1e-10 * abs(value):
            return following, curvature
        curvature *= 2.0


@saved("data-adaptive-kernel", fields="classes_ kernel_ weights_ matrix_ objective_ gap_ n_iter_")
class DataAdaptiveKernel(TakesOptions):
    """Learn a weight for each pair of training points, so that a support vector machine has a larger margin.

    This follows the data-adaptive nonparametric kernels (DANK) of [Liu2020]_. The exact problem is

    ``min_F max_a  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j F_ij K_ij + eta (|F - 1 1^T|^2 + tau trace(F))``

    over positive semidefinite F (whose trace is their nuclear norm) and ``0 <= a <= C, a^T y = 0``. The first term
    widens the margin, eta keeps F near one (instead of a bounded region around it), tau gives it low rank. The
    minimum over F at given a is known: the eigenvalues of ``1 1^T + K_ij a_i y_i a_j y_j / (4 eta)``, less tau / 2.
    The maximum over a is found by Nesterov's accelerated projected gradient, and ``gap_`` bounds the remaining error.
    With three or more classes, the duals of one-versus-rest machines are summed and share F.

    This learner has no ``predict``: use ``SVC(kernel=learner.kernel_)``.

    Parameters
    ----------
    kernel : Kernel or None, default=None
        The kernel K that is adapted, positive semidefinite and on vectors; ``None`` is a Gaussian at the median
        distance of the unscaled inputs. Its parameters are not learned.
    C : float, default=1.0
        Weight of the slack of the machines.
    eta : float, default=16.0
        How closely F stays near one: without tau, ``|F_ij - 1| <= C^2 |K_ij| / (4 eta)`` for two classes. Small
        changes of all pairs add up: with ``eta = C^2`` most training labels are fitted, right or wrong.
    tau : float, default=0.01
        Eigenvalues of F are shrunk by half of it.
    max_iter : int, default=500
        Maximum number of steps; each costs two or three eigendecompositions.
    tol : float, default=1e-4
        Stop at this gap, relative to the objective.

    Attributes
    ----------
    classes_ : ndarray
    weights_ : ndarray of shape (n, n)
        F.
    matrix_ : ndarray of shape (n, n)
        The learned kernel matrix of the training points, F * K.
    kernel_ : AdaptedKernel
        Its extension to any points, by reciprocal nearest neighbours.
    objective_ : float
        The maximum over a at these weights.
    gap_ : float
        Upper bound on the difference between the objective and its minimum.
    n_iter_ : int
    n_features_in_, feature_names_in_

    Notes
    -----
    ``kernel_`` at the training points is ``matrix_``, except that equal rows share the weights of the first of them.
    Between new points it may be slightly indefinite (:class:`kernelwright.estimators.krein.KreinSVC` takes it).
    Cost is cubic, memory quadratic in the number of rows. Nothing is random.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from kernelwright.research.baselines import DataAdaptiveKernel
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> learner = DataAdaptiveKernel().fit(X, y)
    >>> bool(SVC(kernel=learner.kernel_).fit(X, y).score(X, y) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [Kernel, None],
        "C": [Interval(Real, 0, None, closed="neither")],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "tau": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        C: float = 1.0,
        eta: float = 16.0,
        tau: float = 0.01,
        max_iter: int = 500,
        tol: float = 1e-4,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.eta = eta
        self.tau = tau
        self.max_iter = max_iter
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> DataAdaptiveKernel:
        """Learn the weights from labels y."""
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, labels = class_labels(y, self)
        kernel = self._start_kernel()
        check_memory(8 * 8.0 * len(X) ** 2, f"The weights of {len(X)} rows", "Fit on a sample of the rows.")
        points = torch.from_numpy(X.copy())
        signs = 2.0 * (labels[:, None] == np.arange(len(self.classes_))) - 1.0
        Y = torch.from_numpy(signs[:, 1:] if len(self.classes_) == 2 else signs)
        with torch.no_grad(), threads_for(len(points)):
            kernel.prepare_(points)
            K = kernel.matrix(points)
            found = learn_weights(AdaptiveProblem(K, Y, self.C, self.eta, self.tau), self.max_iter, self.tol)
            self.kernel_ = AdaptedKernel(kernel, Weighting.of(points, found.weights))
        if found.gap > self.tol * abs(found.objective):
            warnings.warn(
                f"The weights did not converge: after {found.n_iter} steps the objective, {found.objective:.3g}, may "
                f"still be {found.gap:.2g} above its minimum. Raise max_iter or eta.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.weights_, self.matrix_ = found.weights.numpy(), (found.weights * K).numpy()
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.gap, found.n_iter
        return self

    def _start_kernel(self) -> Kernel:
        kernel = Gaussian("median") if self.kernel is None else copy.deepcopy(self.kernel)
        if not kernel.takes_vectors:
            raise ValueError(
                "The 'kernel' parameter of DataAdaptiveKernel must be a kernel on vectors, which have neighbours. "
                f"Got {self.kernel!r} instead."
            )
        return kernel
