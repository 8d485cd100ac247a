"""Learning a kernel function from labels or from any similarity matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, reduce
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from kernelwright.arrays import check_memory
from kernelwright.distances import euclidean, median_distance
from kernelwright.errors import NumericalError
from kernelwright.estimators.pairs import EXACT_UP_TO, SHARED_CONSTRAINTS, PairRegression, folds_of, power_of_m
from kernelwright.hyper.bases import Basis, MidpointBasis
from kernelwright.hyper.learned import LearnedKernel
from kernelwright.hyper.pairs import LabelTarget, MatrixTarget, Pairs, Target
from kernelwright.hyper.refinement import PairSmoother, smooth_residual
from kernelwright.hyper.regression import (
    RIDGES,
    Coefficients,
    Path,
    PrimalPath,
    all_pair_moments,
    exact_ridge,
    fold_moments,
    largest_good,
    leave_points_out,
    leave_points_out_dual,
    nonnegative,
    pair_values,
    point_splits,
    support_vector,
    support_vector_primal,
    whitening,
)
from kernelwright.hyperkernels import HyperKernel
from kernelwright.kernels.vector import spread_rows
from kernelwright.storage.saved import saved

__all__ = ["HyperKernelRidge", "HyperKernelSVR"]

REFINED = (20, 3000)  # points
REFINED_FROM = 0.02  # of the targets' deviation: a smaller residual is left alone
REFINED_TO = 0.9  # share of the residual's squares that may remain at left-out points

COSTS = tuple(10.0 ** np.arange(-3.0, 4.0))


@saved("hyper-kernel-ridge", fields="classes_ kernel_ solver_ ridge_ ridges_ errors_ history_ n_iter_")
class HyperKernelRidge(PairRegression):
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
    solver : {"auto", "exact", "nystroem", "midpoint", "partitioned"}, default="auto"
        "exact" is Eq. (6) on all pairs, to about 100 points. "midpoint" uses that Gaussian hyper-kernels separate:
        far faster, and the choice of "auto" for them. "nystroem" is Eq. (9), for all hyper-kernels. "partitioned" is
        Algorithm 1: "nystroem" with ``n_partitions``, which other solvers honour too.
    n_landmarks : int or None, default=None
        Centres of "midpoint" (20 if it is not given), points of "nystroem" (30, which make 465 pairs).
    landmarks : {"kmeans", "uniform", "leverage"}, default="kmeans"
        How they are chosen among the points.
    n_pairs : int, "all" or None, default=None
        Pairs to learn from; ``None`` is all or about 100,000, the diagonal and near neighbours always among them.
        "all" of labelled points in the midpoint form with wide hyper-kernels takes time linear in the points.
    n_partitions : int, default=1
        Learn on so many random parts of the points, and average. Landmarks are of each part, as in Algorithm 1;
        centres of "midpoint" are common to all, so that the mean is as fast to evaluate as one part's kernel.
    n_jobs : int or None, default=None
        Parts at the same time.
    coding : {"signed", "indicator"}, default="signed"
        Targets of labels: 1 and -1 (``y y^T`` for two classes) or 1 and 0 (delta).
    class_weight : dict, "balanced" or None, default=None
        With labels: the weight of a pair is the product of its classes'.
    learn : {"held-out", None}, default=None
        "held-out" learns the numbers of the hyper-kernel, with a length scale for each feature, by gradient on the
        error at points that are left out.
    max_iter : int, default=30
        Most steps of that.
    refine : bool or "auto", default="auto"
        Whether what the hyper-kernel leaves over of a given matrix is smoothed over pairs of the known points. A
        Gaussian hyper-kernel sees of a pair its length and midpoint only; this sees the rest, and keeps all points
        for it. "auto" does it with ``solver="auto"`` from 20 to 3000 points, where it explains a tenth of the rest at
        points that are left out.
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
    solver_ : str
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
        solver: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "kmeans",
        n_pairs: int | str | None = None,
        n_partitions: int = 1,
        n_jobs: int | None = None,
        coding: str = "signed",
        class_weight: Any = None,
        learn: str | None = None,
        max_iter: int = 30,
        refine: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.hyperkernel = hyperkernel
        self.ridge = ridge
        self.bias = bias
        self.nonnegative = nonnegative
        self.bound = bound
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.n_pairs = n_pairs
        self.n_partitions = n_partitions
        self.n_jobs = n_jobs
        self.coding = coding
        self.class_weight = class_weight
        self.learn = learn
        self.max_iter = max_iter
        self.refine = refine
        self.random_state = random_state

    def _report(self, found: Coefficients) -> None:
        self.ridge_ = found.ridge
        if found.errors is not None:
            self.ridges_, self.errors_ = np.array(RIDGES), np.sqrt(found.errors)

    def _is_centred(self) -> bool:
        return self.bias and not self.nonnegative  # a negative constant would not be positive definite

    def _exact_matrices(self) -> int:
        return 18 if self.nonnegative else super()._exact_matrices()  # with sums over pairs of each two folds

    def _refinement(
        self, kernel: LearnedKernel, X: Tensor, goal: Target, random: torch.Generator
    ) -> PairSmoother | None:
        possible = isinstance(goal, MatrixTarget) and REFINED[0] <= len(X) <= REFINED[1] and not self.nonnegative
        if self.refine is True and not possible:
            raise ValueError(
                f"refine=True is for matrices of {REFINED[0]} to {REFINED[1]} points, without nonnegative=True. "
                "Use 'auto' or False."
            )
        if not possible or not (self.refine is True or (self.refine == "auto" and self.solver == "auto")):
            return None
        assert isinstance(goal, MatrixTarget)
        residual, known = goal.values - kernel.matrix(X), ~goal.values.isnan()
        if residual[known].square().mean() < REFINED_FROM**2 * goal.values[known].var():
            return None  # it fits already; a smoother would keep all the points for nothing
        trust = known.double() if goal.weights is None else torch.where(known, goal.weights / goal.weights.max(), 0.0)
        spread = median_distance(euclidean(X[spread_rows(len(X))]))
        smoother, remaining = smooth_residual(X, residual.nan_to_num(0.0), trust, spread, random)
        return smoother if self.refine is True or remaining < REFINED_TO else None

    def _coefficients(
        self, basis: Basis, X: Tensor, pairs: Pairs, random: torch.Generator, scale: float
    ) -> Coefficients:
        folds = folds_of(len(X), random) if self.ridge == "auto" else torch.zeros(len(X), dtype=torch.int64)
        G = basis.gram()
        if self.solver_ == "exact" and not self.nonnegative:
            errors = leave_points_out_dual(G, pairs, folds, bias=self.bias) if self.ridge == "auto" else None
            ridge = self._chosen(errors, len(X))
            return replace(exact_ridge(G, pairs, ridge, bias=self.bias), ridge=ridge, errors=errors)
        solve: Callable[[Tensor], Path] = (
            partial(_Nonnegative, G=G, bias=self.bias)
            if self.nonnegative
            else partial(PrimalPath, T=whitening(G), bias=self.bias)
        )
        moments = fold_moments(basis, X, pairs, folds)
        everything = reduce(torch.add, moments.values())
        return self._solved(everything, partial(point_splits, moments, everything), solve, len(X))

    def _without_pairs(
        self, hyper: HyperKernel, centres: Tensor, X: Tensor, goal: Target, random: torch.Generator
    ) -> tuple[Basis, Coefficients] | None:
        """In O(m q^2 r), with wide falloffs and labels; where these are not of low rank, pairs have to be listed."""
        many = self.n_pairs == "all" and len(X) * (len(X) + 1) // 2 > self.USUAL_PAIRS and not self.nonnegative
        if not many or not isinstance(goal, LabelTarget) or goal.point_weights is not None:
            return None
        basis = self._basis("midpoint", hyper, centres)
        assert isinstance(basis, MidpointBasis)

        def sums(rows: Tensor) -> Tensor:
            return all_pair_moments(basis, X[rows], *goal.subset(rows).low_rank())

        try:
            everything = sums(torch.arange(len(X)))
        except NumericalError:
            return None
        folds = folds_of(len(X), random)

        def splits() -> list[tuple[Tensor, Tensor]]:
            fitted = [sums((folds != fold).nonzero()[:, 0]) for fold in folds.unique()]
            return [(part, everything - part) for part in fitted]

        return basis, self._solved(
            everything, splits, partial(PrimalPath, T=whitening(basis.gram()), bias=self.bias), len(X)
        )

    def _solved(
        self,
        moments: Tensor,
        splits: Callable[[], Iterable[tuple[Tensor, Tensor]]],
        solve: Callable[[Tensor], Path],
        n_points: int,
    ) -> Coefficients:
        errors = leave_points_out(splits(), solve) if self.ridge == "auto" else None
        ridge = self._chosen(errors, n_points)
        return replace(solve(moments).at(ridge), ridge=ridge, errors=errors)

    def _chosen(self, errors: np.ndarray | None, n_points: int) -> float:
        return power_of_m(self.ridge, n_points, "ridge") if errors is None else largest_good(RIDGES, errors)


class _Nonnegative:
    """Solutions with nonnegative weights, one by one."""

    def __init__(self, moments: Tensor, G: Tensor, bias: bool) -> None:
        self.moments, self.G, self.bias = moments, G, bias

    def at(self, ridge: float) -> Coefficients:
        return nonnegative(self.moments, self.G, ridge, bias=self.bias)


@saved("hyper-kernel-svr", fields="classes_ kernel_ solver_ C_ history_ n_iter_")
class HyperKernelSVR(PairRegression):
    """A kernel function learned by support vector regression over pairs of points, Eq. (8) of [Liu2021]_.

    The loss does not count errors below ``epsilon`` and grows linearly, so that outliers among the similarities
    matter less than in :class:`HyperKernelRidge`, whose parameters it shares. Exactly (to about 100 points) through
    scikit-learn's SVR on unique pairs; beyond, the squared loss above ``epsilon``, linear in the functions of
    "midpoint" or "nystroem".

    Parameters
    ----------
    hyperkernel : HyperKernel or None, default=None
    C : float or "auto", default="auto"
        Weight of the errors; "auto" is chosen by leaving out points.
    epsilon : float or str, default="auto"
        Errors up to it are free: "auto" is a tenth of the similarities' standard deviation (0.1 with labels), "m^-1" a
        schedule in the number of points.
    bound, solver, n_landmarks, landmarks, n_pairs, n_partitions, n_jobs, coding, class_weight, learn, max_iter,
    random_state
        As of :class:`HyperKernelRidge`; "auto" is exact to 60 points. ``n_pairs`` is 20,000 if it is not given.

    Attributes
    ----------
    kernel_ : LearnedKernel
    C_ : float
    solver_, classes_, history_, n_iter_, n_features_in_, feature_names_in_

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
    }
    USUAL_PAIRS = 20_000

    def __init__(
        self,
        hyperkernel: HyperKernel | None = None,
        *,
        C: float | str = "auto",
        epsilon: float | str = "auto",
        bound: float | str | None = None,
        solver: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str = "kmeans",
        n_pairs: int | str | None = None,
        n_partitions: int = 1,
        n_jobs: int | None = None,
        coding: str = "signed",
        class_weight: Any = None,
        learn: str | None = None,
        max_iter: int = 30,
        random_state: Any = None,
    ) -> None:
        self.hyperkernel = hyperkernel
        self.C = C
        self.epsilon = epsilon
        self.bound = bound
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.n_pairs = n_pairs
        self.n_partitions = n_partitions
        self.n_jobs = n_jobs
        self.coding = coding
        self.class_weight = class_weight
        self.learn = learn
        self.max_iter = max_iter
        self.random_state = random_state

    def _pick_solver(self, hyper: HyperKernel, n_points: int) -> str:
        if self.solver == "auto" and n_points <= EXACT_UP_TO:
            return "exact"
        return super()._pick_solver(hyper, n_points)

    def _report(self, found: Coefficients) -> None:
        self.C_ = found.ridge

    def _coefficients(
        self, basis: Basis, X: Tensor, pairs: Pairs, random: torch.Generator, scale: float
    ) -> Coefficients:
        # Targets are in units of `scale`, and so are errors; the penalty goes with the square of that.
        epsilon = 0.1 if self.epsilon == "auto" else power_of_m(self.epsilon, len(X), "epsilon") / scale
        G = basis.gram()
        if self.solver_ == "exact":  # errors count as they are, so C goes with their unit
            C = self._cost(G, support_vector, X, pairs, epsilon, random, scale)
            return replace(support_vector(G, pairs, C=C, epsilon=epsilon), ridge=C * scale)
        T = whitening(G)
        check_memory(
            3 * 8.0 * len(pairs) * T.shape[1],
            f"The features of {len(pairs)} pairs ({T.shape[1]} each)",
            "Learn from fewer pairs (n_pairs) or with fewer landmarks (n_landmarks).",
        )
        Z = pair_values(basis, X)(pairs) @ T
        C = self._cost(Z, support_vector_primal, X, pairs, epsilon, random, 1.0)  # errors count squared
        found = support_vector_primal(Z, pairs, C=C, epsilon=epsilon)
        return replace(found, weights=T @ found.weights, ridge=C)

    def _cost(
        self,
        features: Tensor,
        solve: Callable[..., Coefficients],
        X: Tensor,
        pairs: Pairs,
        epsilon: float,
        random: torch.Generator,
        unit: float,
    ) -> float:
        """The given cost, or the smallest that is as good as the best by the absolute error at left-out points."""
        if not isinstance(self.C, str):
            return float(self.C) / unit
        out = torch.zeros(len(X), dtype=torch.bool)
        out[torch.randperm(len(X), generator=random)[: max(1, len(X) // 3)]] = True
        judged = out[pairs.first] | out[pairs.second]
        fit, judge = (~judged).nonzero()[:, 0], judged.nonzero()[:, 0]
        if len(fit) == 0 or len(judge) == 0:
            return 1.0  # too few pairs are known to tell
        columns = fit if self.solver_ == "exact" else torch.arange(features.shape[1])
        rows, new = features[fit][:, columns], features[judge][:, columns]
        known, some = pairs.subset(fit), pairs.subset(judge)

        def error(C: float) -> float:
            found = solve(rows, known, C=C, epsilon=epsilon)
            return float((some.weights * (new @ found.weights + found.bias - some.targets).abs()).sum())

        errors = np.array([error(C) for C in COSTS])
        return COSTS[int(np.argmax(errors <= 1.025 * errors.min()))]
