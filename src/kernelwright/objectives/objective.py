"""Objectives of learning: closed-form values and gradients."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor, nn

from kernelwright.embedding.dual import leave_one_out_divisor, rows_by_group, without_groups
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError, PrecisionWarning
from kernelwright.inputs.arrays import plain
from kernelwright.inputs.labels import one_hot
from kernelwright.inputs.weights import group_numbers
from kernelwright.kernels import FeatureKernel, Kernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.numerics.linalg import Workspace, factorise, factorise_in_single, refined_solution
from kernelwright.numerics.products import Outer, symmetric_outer, symmetric_product
from kernelwright.objectives.losses import EPSILON, brier_loss, clipped_log_loss, complexity_multiplier
from kernelwright.objectives.primal import explicit_terms
from kernelwright.parameters import Positive, plain_gradients
from kernelwright.uncertainty.calibration import calibrated_log_loss

__all__ = ["Evaluation", "Hyperparameters", "Objective", "value_and_gradient"]


LOSSES = ("log", "brier", "calibrated")
NAMES = ("rademacher", "empirical-risk", "held-out", "leave-one-out", "folds")


DOUBLE = 1e-12  # relative residuals that a factor in double precision leaves
INVERSE_ERROR = 1e-5  # of an inverse in single precision, relative to its diagonal: what learning does not notice
USUAL_NOISE = 0.1  # n lambda where learning starts
# And where the prior on it lies, with its scale on a log scale. A handful of rows can look learnable by luck; far from
# the prior the pull fades, so that clean data, which want a hundredth or less, are not held back.
CAUTIOUS_NOISE, CAUTION_SCALE = 5.0, 2.0


class Hyperparameters(nn.Module):
    """All that is learned: a kernel's numbers and the ridge."""

    ridge = Positive(1e-10, 1e4, vectors=False, firm=True)  # a smaller one cannot be told from rounding
    log_ridge: nn.Parameter

    def __init__(self, kernel: Kernel, ridge: float) -> None:
        super().__init__()
        self.kernel, self.ridge = kernel, ridge

    def penalty(self, n: float) -> Tensor:
        """A shrinkage term: the kernel's own, and minus the log density of a Cauchy-like prior on ``n lambda``."""
        away = (self.log_ridge + math.log(n / CAUTIOUS_NOISE)) / CAUTION_SCALE
        return self.kernel.penalty() + torch.log1p(0.5 * away**2)


def loss_and_slope(loss: str, outputs: Tensor, data: TrainingSet, epsilon: float) -> tuple[float, Tensor]:
    """A loss of outputs at the rows of ``data``, and its gradient in the outputs."""
    if loss == "brier":
        return brier_loss(outputs, data.targets, data.weights)
    if loss == "log":
        return clipped_log_loss(outputs, data.targets, data.weights, epsilon)
    return calibrated_log_loss(outputs, data.targets, data.weights, data.prior if bool(data.prior.any()) else None)


@dataclass(frozen=True)
class Setting:
    """The numbers at which an objective is evaluated, besides the kernel matrix."""

    ridge: float
    tau: float
    sup: float  # alpha^2 = sup k(x, x)
    loss: str
    epsilon: float
    precision: str = "double"  # "single", or "auto": single without a word where it does not do

    def loss_and_slope(self, outputs: Tensor, data: TrainingSet) -> tuple[float, Tensor]:
        """The loss of outputs at the rows of ``data``, and its gradient G in the outputs."""
        return loss_and_slope(self.loss, outputs, data, self.epsilon)

    def complexity_and_slope(self, squared_norm: float) -> tuple[float, float]:
        """``r = sqrt(sup * t)`` and ``c = tau * dr/dt``, for the squared norm t of an embedding."""
        r = math.sqrt(self.sup * max(squared_norm, 0.0))
        return r, self.tau * self.sup / (2.0 * r) if r > 0 else 0.0

    def slope_in_sup(self, complexity: float) -> float:
        """``tau * dr/dsup``."""
        return self.tau * complexity / (2.0 * self.sup) if self.sup > 0 else 0.0


@dataclass(frozen=True)
class Terms:
    """Loss and complexity at a kernel matrix, with the gradient of ``loss + tau * complexity``."""

    loss: float
    complexity: float
    d_kernel: Tensor | Outer
    d_ridge: float
    d_sup: float  # in alpha^2 = sup k(x, x)


@dataclass(frozen=True)
class Evaluation:
    """An objective at one setting of the hyperparameters; gradients are in the raw parameters."""

    value: float
    loss: float
    complexity: float
    gradients: dict[str, Tensor]


@dataclass(frozen=True)
class Objective:
    """An objective by name, with its settings.

    ``complexity_weight`` is tau; ``shrinkage / n`` weighs the kernel's own penalty; ``folds`` is a number of
    folds, or a fold number for each row (of two folds, "held-out" trains on the first). ``precision`` is that of the
    factor of all but "held-out" and "folds": with "single", solutions are refined until their residuals are those of
    double precision ("leave-one-out" has an inverse besides, which is checked and not refined), and where that fails it
    is done in double, with a warning; "auto" is the same without the warning. Features in p x p algebra are always in
    double.
    """

    name: str
    complexity_weight: float | str = 0.0
    loss: str = "log"
    epsilon: float = EPSILON
    folds: int | tuple[int, ...] = 2
    shrinkage: float = 0.0
    precision: str = "double"

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(f"The 'name' parameter must be one of {list(NAMES)}. Got {self.name!r} instead.")
        if self.loss not in LOSSES:
            raise ValueError(f"The 'loss' of an objective must be one of {LOSSES}. Got {self.loss!r} instead.")
        if not 0 < self.epsilon < 1 / math.e:
            raise ValueError(f"The 'epsilon' of an objective must lie between 0 and 1/e. Got {self.epsilon!r} instead.")

    def __call__(self, hyper: Hyperparameters, data: TrainingSet, workspace: Workspace | None = None) -> Evaluation:
        """Value and gradient; a ``workspace`` saves asking for memory at each step."""
        kernel = hyper.kernel
        if isinstance(kernel, FeatureKernel) and kernel.features.n_features < len(data):
            return self._explicit(hyper, kernel.features, data)
        if self.name in ("held-out", "folds"):
            data = self._in_order_of_folds(data.unmerged())
        ridge = float(hyper.ridge.detach())
        memory = None if workspace is None else workspace.matrix("factor", len(data))
        K, pullback = kernel.vjp_in(workspace, data.points)
        with torch.enable_grad():
            sup = kernel.sup_diag(data.points)
        tau = self._tau(data)
        at = Setting(ridge, tau, float(sup.detach()), self.loss, self.epsilon, self.precision)
        terms = self._terms(K, data, at, memory)
        d_kernel = terms.d_kernel
        if isinstance(d_kernel, Outer) and not kernel.takes_outer:
            d_kernel = d_kernel.dense(memory)
        gradients = {f"kernel.{name}": g for name, g in pullback(d_kernel).items()}
        gradients["log_ridge"] = torch.tensor(ridge * terms.d_ridge, dtype=torch.float64)
        extra, extra_gradients = self._cheap_terms(hyper, sup, terms.d_sup, data.total_weight)
        for name, g in extra_gradients.items():
            gradients[name] = gradients[name] + g
        value = terms.loss + tau * terms.complexity + extra
        return Evaluation(value, terms.loss, terms.complexity, gradients)

    def _tau(self, data: TrainingSet) -> float:
        weight = 0.0 if self.name == "empirical-risk" else self.complexity_weight
        return complexity_multiplier(weight, data.total_weight)

    def _explicit(self, hyper: Hyperparameters, features: FeatureMap, data: TrainingSet) -> Evaluation:
        """The same in p x p algebra, for fewer features than rows."""
        data = data.unmerged() if self.name in ("held-out", "folds") else data
        tau = self._tau(data)
        parameters = {name: p for name, p in hyper.named_parameters() if p.requires_grad}
        with torch.enable_grad():
            Z = features(data.points)
            sup = (Z * Z).sum(1).max() if features.bound is None else Z.new_tensor(features.bound)
            terms = explicit_terms(
                self.name,
                Z,
                data,
                ridge=hyper.ridge,
                sup=sup,
                tau=tau,
                score=lambda F, rows: loss_and_slope(self.loss, F, rows, self.epsilon),
                folds=self._folds(data) if self.name in ("held-out", "folds") else np.zeros(0),
            )
            penalty = self.shrinkage / data.total_weight * hyper.penalty(data.total_weight)
        grads = torch.autograd.grad(terms.slope + penalty, list(parameters.values()), allow_unused=True)
        gradients = {
            name: torch.zeros_like(p) if g is None else g
            for (name, p), g in zip(parameters.items(), grads, strict=True)
        }
        value = terms.loss + tau * terms.complexity + float(penalty.detach())
        return Evaluation(value, terms.loss, terms.complexity, gradients)

    def _terms(self, K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None) -> Terms:
        if self.name in ("rademacher", "empirical-risk"):
            return in_sample(K, data, at, memory)
        if self.name == "leave-one-out":
            return leave_one_out(K, data, at, memory)
        folds = np.sort(self._folds(data))
        return held_out(K, data, at, folds) if self.name == "held-out" else fixed_folds(K, data, at, folds)

    def _folds(self, data: TrainingSet) -> np.ndarray:
        folds = data.folds(self.folds) if isinstance(self.folds, int) else np.array(self.folds)
        if folds.shape != (len(data),) or len(np.unique(folds)) < 2 or (self.name == "held-out" and 0 not in folds):
            raise ValueError(
                f"'folds' must be a number of at least 2, or a fold number for each of the {len(data)} rows, with two "
                f"different folds or more ('held-out' trains on fold 0). Got {self.folds!r} instead."
            )
        return folds

    def _in_order_of_folds(self, data: TrainingSet) -> TrainingSet:
        """Rows sorted by fold, so that most blocks of the kernel matrix are views and need no copy."""
        return data.subset(torch.from_numpy(np.argsort(self._folds(data), kind="stable")))

    def _cheap_terms(
        self, hyper: Hyperparameters, sup: Tensor, d_sup: float, n: float
    ) -> tuple[float, dict[str, Tensor]]:
        """The penalty, and the gradients that autograd may do: no matrix is involved."""
        with torch.enable_grad():
            penalty = self.shrinkage / n * hyper.penalty(n)
            scalar = penalty + d_sup * sup
        parameters = {name: p for name, p in hyper.named_parameters() if p.requires_grad}
        if not scalar.requires_grad:
            return float(penalty.detach()), {}
        grads = torch.autograd.grad(scalar, list(parameters.values()), allow_unused=True)
        return float(penalty.detach()), {name: g for name, g in zip(parameters, grads, strict=True) if g is not None}


Solve = Callable[[Tensor], Tensor]  # multiplies by A^-1


def in_sample(K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> Terms:
    """Eq. (12), with a factor in double precision, or in single where residuals in double can be made small."""
    noise = data.noise(at.ridge)
    if at.precision != "double":
        try:
            return _in_sample(_refined(factorise_in_single(K, noise, memory).solve, K, noise), data, at)
        except NumericalError as error:
            _go_on_in_double(error, at)
    return _in_sample(factorise(K, noise, memory).solve, data, at)


def _refined(solve: Solve, K: Tensor, noise: Tensor) -> Solve:
    """Solutions in single precision made such that their residuals are those of double."""

    def apply(V: Tensor) -> Tensor:
        return symmetric_product(K, V).add_(noise[:, None] * V)

    return partial(refined_solution, solve, apply, residual_below=DOUBLE)


def _go_on_in_double(error: NumericalError, at: Setting) -> None:
    """Say so to whoever asked for single precision."""
    if at.precision == "single":
        message = f"{error} Learning goes on in double precision where this happens."
        warnings.warn(message, PrecisionWarning, stacklevel=4)


def _in_sample(solve: Solve, data: TrainingSet, at: Setting) -> Terms:
    """With G = dloss/dP, ``B = A^-1 noise (G + 2cV) - cV`` and ``dq/dA = B V^T``; ``solve`` is ``A^-1``."""
    noise = data.noise(at.ridge)[:, None]
    V = solve(data.centred)
    P = data.targets - noise * V
    loss, G = at.loss_and_slope(P, data)
    complexity, c = at.complexity_and_slope(float((V * (P - data.prior)).sum()))
    B = solve(noise * (G + 2.0 * c * V)) - c * V
    d_noise = (V * (B - G - c * V)).sum(1)
    return Terms(loss, complexity, Outer(B, V), float(d_noise @ noise[:, 0]) / at.ridge, at.slope_in_sup(complexity))


def leave_one_out(K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> Terms:
    """Leave-one-out outputs ``F = Y - R``, ``R = V / b`` with b from the diagonal of ``A^-1``.

    With G = dloss/dF and ``H = G / b``: ``dq/dA = A^-1 H V^T - A^-1 D A^-1``, D the diagonal of ``H R^T`` (times the
    share of a point that one row has). Where whole groups are left out, b stands for the blocks of ``A^-1`` and D
    for the blocks of ``H R^T``.

    In single precision the solutions are refined, the inverse is not: some entries of it are checked.
    """
    noise = data.noise(at.ridge)
    if at.precision != "double":
        try:
            inverse = factorise_in_single(K, noise, memory).into_inverse()
            solve = _refined(lambda B: (inverse @ B.float()).double(), K, noise)
            _check_inverse(inverse, solve)
            return _leave_one_out(inverse, solve, data, at)
        except NumericalError as error:
            _go_on_in_double(error, at)
    inverse = factorise(K, noise, memory).into_inverse()
    return _leave_one_out(inverse, inverse.matmul, data, at)


def _check_inverse(inverse: Tensor, solve: Solve) -> None:
    """Refuse an inverse in single precision if columns of it are wrong: the extreme ones, and the first and last."""
    diagonal = inverse.diagonal()
    some = torch.tensor([0, len(inverse) - 1, int(diagonal.argmin()), int(diagonal.argmax())])
    units = torch.zeros(len(inverse), len(some), dtype=torch.float64)
    units[some, torch.arange(len(some))] = 1.0
    error = float(((inverse[:, some] - solve(units)) / diagonal[some]).abs().max())
    if not error <= INVERSE_ERROR:
        raise NumericalError(f"An inverse in single precision has entries that are wrong by {error:.0e}.")


def _leave_one_out(inverse: Tensor, solve: Solve, data: TrainingSet, at: Setting) -> Terms:
    """By ``A^-1``, which is overwritten, and a way to multiply by it."""
    noise = data.noise(at.ridge)
    V = solve(data.centred)
    left_out = _Groups(inverse, data.groups) if data.groups is not None else _Rows(inverse, data.one_of_equals, noise)
    R = left_out.solve(V)
    loss, G = at.loss_and_slope(data.targets - R, data)
    H = left_out.solve(G)
    complexity, c = at.complexity_and_slope(float((V * (data.centred - noise[:, None] * V)).sum()))
    B = solve(H + 2.0 * c * noise[:, None] * V) - c * V
    d_noise = -c * (V * V).sum(1) + left_out.slope_in_noise(H, R)
    d_K = left_out.sandwich_(H, R).double().addmm_(B, V.T)
    d_noise += d_K.diagonal()
    return Terms(loss, complexity, d_K, float(d_noise @ noise) / at.ridge, at.slope_in_sup(complexity))


@dataclass(frozen=True)
class _Rows:
    """Rows that are left out one at a time: ``R = V / b``."""

    inverse: Tensor
    share: Tensor
    noise: Tensor

    def solve(self, B: Tensor) -> Tensor:
        divisor = leave_one_out_divisor(self.inverse.diagonal().double(), self.share, self.noise)
        return B / divisor[:, None]

    def slope_in_noise(self, H: Tensor, R: Tensor) -> Tensor:
        """What the noise changes in b itself, where only a share of a point goes."""
        return -(H * R).sum(1) * (1.0 - self.share) / self.noise**2

    def sandwich_(self, H: Tensor, R: Tensor) -> Tensor:
        """``-A^-1 diag(g) A^-1`` with ``g = share sum_k H_ik R_ik``; the inverse is overwritten."""
        return _sandwich(self.inverse, self.share * (H * R).sum(1))


@dataclass(frozen=True)
class _Groups:
    """Groups that are left out as a whole: ``R_g = (A^-1)_gg^-1 V_g``."""

    inverse: Tensor
    groups: Tensor

    def solve(self, B: Tensor) -> Tensor:
        return without_groups(lambda rows: self.inverse[rows[:, :, None], rows[:, None, :]], B, self.groups)

    def slope_in_noise(self, H: Tensor, R: Tensor) -> Tensor:
        """Nothing but what A itself changes."""
        return torch.zeros(len(H), dtype=torch.float64)

    def sandwich_(self, H: Tensor, R: Tensor) -> Tensor:
        """``-A^-1 D A^-1`` with blocks ``D_g = H_g R_g^T``."""
        middle = torch.empty_like(self.inverse)
        for rows in rows_by_group(self.groups):
            columns = torch.einsum("gsm,gsn->gmn", R[rows].to(self.inverse.dtype), self.inverse[rows])
            middle[rows] = H[rows].to(self.inverse.dtype) @ columns
        return -(self.inverse @ middle)


def _sandwich(inverse: Tensor, g: Tensor) -> Tensor:
    """``-A^-1 diag(g) A^-1`` by half a product, one triangle counted twice (see ``symmetric_outer``).

    The columns of the two signs of g are done apart (for the Brier loss there is but one). The inverse is overwritten.
    """
    g = g.to(inverse.dtype)
    falling = g <= 0
    if bool(falling.all()):
        return symmetric_outer(inverse.mul_((-g).sqrt()))
    parts = (symmetric_outer(inverse[:, side] * g[side].abs().sqrt()) for side in (falling, ~falling))
    return next(parts).sub_(next(parts))


def held_out(K: Tensor, data: TrainingSet, at: Setting, folds: np.ndarray) -> Terms:
    """Eq. (13): the rows of fold 0 make the embedding and its complexity, the others the loss."""
    train = torch.from_numpy(folds == 0)
    noise = torch.zeros(len(data), dtype=torch.float64)
    noise[train] = data.subset(train).noise(at.ridge)  # n in Eq. (13) is the size of the training part
    return _splits(K, data, at, noise, [train])


def fixed_folds(K: Tensor, data: TrainingSet, at: Setting, folds: np.ndarray) -> Terms:
    """Each fold by the embedding of the others, with the noise the rows have in the embedding of all."""
    trains = [torch.from_numpy(folds != fold) for fold in np.unique(folds)]
    return _splits(K, data, at, data.noise(at.ridge), trains)


def _splits(K: Tensor, data: TrainingSet, at: Setting, noise: Tensor, trains: list[Tensor]) -> Terms:
    """Train on T and test on the rest B, for each T of a list; losses are averaged over all rows tested.

    With ``F_B = prior + K_BT V``, G = dloss/dF: ``dq/dK_BT = G V^T``, ``dq/dA_TT = (cA^-1(2 noise V) - A^-1 K_TB G
    - cV) V^T``. So all of dq/dK is one product of stacked factors.
    """
    tested = float(sum(data.weights[~train].sum() for train in trains))
    loss = complexity = d_ridge = 0.0
    left, right = [], []
    for train in trains:
        T, B = train.nonzero()[:, 0], (~train).nonzero()[:, 0]
        fitting, testing, noise_T = data.subset(T), data.subset(B), noise[T][:, None]
        K_TB = _block(K, T, B)
        factor = factorise(_block(K, T, T), noise_T[:, 0])
        V = factor.solve(fitting.centred)
        F = data.prior + K_TB.T @ V
        part, G = at.loss_and_slope(F, testing)
        share = testing.total_weight / tested
        r, c = at.complexity_and_slope(float((V * (fitting.centred - noise_T * V)).sum()))
        c /= len(trains)
        S = factor.solve(2.0 * c * noise_T * V - share * (K_TB @ G)) - c * V
        d_noise = (V * (S - c * V)).sum(1)
        loss, complexity = loss + share * part, complexity + r / len(trains)
        d_ridge += float(d_noise @ noise_T[:, 0]) / at.ridge
        u, v = torch.zeros_like(data.targets), torch.zeros_like(data.targets)
        u[T], u[B], v[T] = S, share * G, V
        left.append(u)
        right.append(v)
    d_K = torch.cat(left, 1) @ torch.cat(right, 1).T
    return Terms(loss, complexity, d_K, d_ridge, at.slope_in_sup(complexity))


def _block(K: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """``K[rows, columns]`` for sorted numbers; a view, not a copy, where they have no gaps."""

    def place(numbers: Tensor) -> slice | Tensor:
        first, last = int(numbers[0]), int(numbers[-1])
        return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers

    return K[place(rows)][:, place(columns)]


def value_and_gradient(
    name: str,
    kernel: Kernel,
    X: Any,
    y: Any,
    *,
    ridge: float,
    complexity_weight: float | str = "auto",
    folds: Any = 2,
    loss: str | None = None,
    epsilon: float = EPSILON,
    sample_weight: Any = None,
    groups: Any = None,
) -> tuple[float, dict[str, np.ndarray]]:
    """Value and gradient of an objective in the plain (not log) hyperparameters.

    Parameters
    ----------
    name : {"rademacher", "empirical-risk", "held-out", "leave-one-out", "folds"}
        The objective.
    kernel : Kernel
        It is copied, not changed.
    X, y : array-like
        Points and labels.
    ridge : float
        lambda.
    complexity_weight : float, "4e", "4e/n", "4e/sqrt(n)" or "auto"
        tau; "auto" is "4e/n" for "rademacher" and 0 for the others.
    folds : int or array-like of int, default=2
        Number of folds, or a fold number for each row; "held-out" trains on fold 0 and tests on the others.
    loss : {"log", "brier", "calibrated"}, optional
        Defaults to the clipped cross entropy of Eq. (7) where [Hsu2018]_ uses it ("rademacher", "empirical-risk",
        "held-out"), to the Brier loss otherwise.
    epsilon : float
        The clip of the cross entropy.
    sample_weight : array-like, optional
        How much each row counts, relative to the others.
    groups : array-like, optional
        Names of groups of rows that are left out together, and in one fold; n is then the number of groups.

    Returns
    -------
    value : float
    gradient : dict
        ``{"ridge": ..., "kernel.lengthscale": ...}``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelwright.kernels import Gaussian
    >>> from kernelwright.objectives import value_and_gradient
    >>> X, y = load_iris(return_X_y=True)
    >>> value, gradient = value_and_gradient("leave-one-out", Gaussian(), X, y, ridge=0.01)
    >>> round(value, 3), sorted(gradient)
    (0.069, ['kernel.lengthscale', 'ridge'])
    """
    in_paper = name in ("rademacher", "empirical-risk", "held-out")
    objective = Objective(
        name,
        complexity_weight=("4e/n" if name == "rademacher" else 0.0)
        if complexity_weight == "auto"
        else complexity_weight,
        loss=loss or ("log" if in_paper else "brier"),
        epsilon=epsilon,
        folds=int(folds) if np.ndim(folds) == 0 else tuple(int(fold) for fold in folds),
    )
    kernel = copy.deepcopy(kernel)
    points = kernel.encode_training(X)
    weights = torch.from_numpy(
        _check_sample_weight(plain(sample_weight), points, dtype=np.float64, ensure_non_negative=True)
    )
    counted = weights > 0  # rows of weight zero are as if they were not there
    if not isinstance(objective.folds, int):
        if len(objective.folds) != len(points):
            raise ValueError(f"'folds' has {len(objective.folds)} fold numbers for {len(points)} rows.")
        objective = replace(objective, folds=tuple(np.array(objective.folds)[counted.numpy()].tolist()))
    classes, labels = np.unique(column_or_1d(y), return_inverse=True)
    check_consistent_length(points, labels)
    names = None if groups is None else torch.from_numpy(group_numbers(groups, len(points)))
    data = TrainingSet.of(points, one_hot(labels, len(classes)), weights=weights, groups=names).subset(counted)
    data = replace(data, weights=data.weights * (data.n_units / data.total_weight))
    kernel.prepare(data.points, data.weights)
    hyper = Hyperparameters(kernel, ridge)
    evaluation = objective(hyper, data)
    return evaluation.value, plain_gradients(hyper, evaluation.gradients)
