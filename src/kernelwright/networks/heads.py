"""Embedding networks: a conditional embedding on top of features that a network learns, appendix C of [Hsu2018]_.

A head is the last layer, on top of the network. It is solved again for every mini-batch, so only the network, the ridge
and the parameters of a kernel are learned by gradient. :class:`LinearHead` uses p x p algebra (Algorithm 2),
:class:`KernelHead` any kernel on the features (Algorithm 1). The objective of both is Eq. (12), mean loss + tau r, or
Eq. (13), where a part of each batch is held out and scored by the embedding of the rest.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from torch import Tensor, nn

from kernelwright.embedding.dual import embed
from kernelwright.embedding.primal import Moments
from kernelwright.embedding.support import FeatureSupport, KernelSupport, Support, nearest_other
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.numerics.products import Outer
from kernelwright.objectives import Objective
from kernelwright.objectives.losses import clip_of_loss, unit_of
from kernelwright.objectives.terms import PrimalTerms, Setting
from kernelwright.parameters import Positive, raw_bounds
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.calibration import calibrated_log_loss

__all__ = ["BatchObjective", "EmbeddingNetwork", "Head", "HeadSolution", "KernelHead", "LinearHead", "Parts"]

HEAD_KERNEL_VALUES = 2**20  # kernel values held at once during prediction: more would not fit in the cache
BLOCK_ROWS = 512  # rows that pass through a network at once outside training


@dataclass(frozen=True)
class BatchObjective:
    """The objective of a mini-batch: Eq. (12), or Eq. (13) with a part of each batch held out.

    ``tau`` is the weight of the complexity, for the number of all training rows. ``sup`` is alpha^2 = sup k(x, x), with
    the intercept, or None for the largest value in the batch.
    """

    objective: Objective
    tau: float
    sup: float | None = None

    def setting(self, ridge: float, sup: float) -> Setting:
        """Return the setting at which the objective is evaluated."""
        return Setting(ridge, self.tau, sup, self.objective.loss)

    @property
    def epsilon(self) -> float:
        """The clip of the cross entropy."""
        return clip_of_loss(self.objective.loss)

    @property
    def tau_of_log_loss(self) -> float:
        """The weight of the complexity beside the loss of Eq. (7), which is not divided by its largest value."""
        return self.tau * unit_of(self.objective.loss)


@dataclass(frozen=True)
class Parts:
    """The objective of a mini-batch and its two parts."""

    value: float
    loss: float
    complexity: float


class Head(nn.Module):
    """An embedding on top of features. Subclasses define its objective.

    ``intercept`` adds a constant feature to those of the network (or adds one to a kernel).
    """

    ridge = Positive(1e-10, 1e4, vectors=False)
    log_ridge: nn.Parameter

    def __init__(self, ridge: float, *, intercept: bool = True) -> None:
        super().__init__()
        self.ridge, self.intercept = ridge, intercept

    def backward(self, Z: Tensor, data: TrainingSet, goal: BatchObjective) -> Parts:
        """Compute the objective at features Z of the rows of ``data``, and backpropagate its gradients."""
        raise NotImplementedError

    def solve(
        self, network: EmbeddingNetwork, data: TrainingSet, judged: Tensor, *, choose_ridge: bool
    ) -> HeadSolution:
        """Solve the embedding of all rows of ``data``, whose points are inputs of the network.

        With ``choose_ridge``, the ridge is the best of some multiples of the learned one, by the cross entropy of
        calibrated leave-one-out outputs at the rows with indices ``judged``.
        """
        raise NotImplementedError

    def apply_solution(
        self, new: Tensor, coefficients: Tensor, points: Tensor | None, support: Support
    ) -> tuple[Tensor, Tensor]:
        """Return the raw outputs and the support of features ``new``, from parts of a :class:`HeadSolution`."""
        raise NotImplementedError

    def keep_in_limits(self) -> None:
        """Clip the ridge and the kernel's parameters to values for which the system can be solved."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.clamp_(*raw_bounds(self, name))


@saved("linear-head", fields="intercept", parameters="log_ridge")
class LinearHead(Head):
    """The linear kernel on the features: ``W = (Z^T Z + n ridge)^-1 Z^T Y``, ``r = alpha |W|``."""

    def backward(self, Z: Tensor, data: TrainingSet, goal: BatchObjective) -> Parts:  # noqa: D102
        with torch.no_grad():
            terms, d_Z = self.terms(Z.detach(), data, goal)
        d_log_ridge = self.log_ridge.new_tensor(float(self.ridge.detach()) * terms.d_ridge)
        _backward({Z: d_Z, self.log_ridge: d_log_ridge})
        return Parts(terms.loss + goal.tau * terms.complexity, terms.loss, terms.complexity)

    def terms(self, Z: Tensor, data: TrainingSet, goal: BatchObjective) -> tuple[PrimalTerms, Tensor]:
        """Return the objective in closed form, and its gradient with respect to the features, without the intercept."""
        wide = self.widen(Z.cpu())
        lengths = torch.linalg.vecdot(wide, wide)
        sup = float(lengths.max() if goal.sup is None else goal.sup)
        terms = goal.objective.primal(wide, data, goal.setting(float(self.ridge.detach()), sup))
        d_Z = terms.d_features[:, : Z.shape[1]]
        if goal.sup is None:
            longest = lengths.argmax()
            d_Z[longest] += 2.0 * terms.d_sup * wide[longest, : Z.shape[1]]
        return terms, d_Z.to(Z)

    def solve(
        self, network: EmbeddingNetwork, data: TrainingSet, judged: Tensor, *, choose_ridge: bool
    ) -> HeadSolution:
        """Solve by a sum over blocks of rows, so that only one block of features is held at a time."""
        return self.solve_sums(self.sum_up(network, data), network, data.subset(judged), choose_ridge=choose_ridge)

    def sum_up(self, network: EmbeddingNetwork, data: TrainingSet) -> Moments:
        """Compute the moments of the features of all rows."""
        blocks = (data.subset(rows) for rows in torch.arange(len(data)).split(BLOCK_ROWS))
        return reduce(
            operator.add,
            (Moments.of(self.widen(network.features(some.points)), some.targets, some.weights) for some in blocks),
        )

    def solve_sums(
        self, moments: Moments, network: EmbeddingNetwork, some: TrainingSet, *, choose_ridge: bool
    ) -> HeadSolution:
        """Solve the embedding from the moments of its rows; ``some`` are the evaluated rows."""
        ridge = float(self.ridge.detach())
        Z = self.widen(network.features(some.points))

        def left_out(ridge: float) -> Tensor:
            return moments.left_out(moments.factor(ridge), Z, some)

        ridge = best_ridge(ridge, left_out, some) if choose_ridge else ridge
        factor = moments.factor(ridge)
        W = moments.weights(factor)
        return HeadSolution(
            ridge,
            W,
            points=None,
            fitted=Z @ W,
            left_out=moments.left_out(factor, Z, some),
            support=FeatureSupport.of(factor, Z, some),
            squared_norm=float(W.square().sum()),
            largest=moments.largest,
            jitter=factor.jitter,
        )

    def apply_solution(  # noqa: D102
        self, new: Tensor, coefficients: Tensor, points: Tensor | None, support: Support
    ) -> tuple[Tensor, Tensor]:
        Z = self.widen(new)
        return Z @ coefficients, support(Z)

    def widen(self, Z: Tensor) -> Tensor:
        """Return the features, with a column of ones if there is an intercept."""
        return torch.cat([Z, Z.new_ones(len(Z), 1)], 1) if self.intercept else Z


def _backward(slopes: dict[Tensor, Tensor]) -> None:
    """Pass gradients in closed form to autograd, if anything is learned."""
    learned = [each for each in slopes if each.requires_grad]
    torch.autograd.backward(learned, [slopes[each].to(each) for each in learned])


@saved("kernel-head", fields="kernel intercept", parameters="log_ridge")
class KernelHead(Head):
    """Any kernel on the features, by n x n algebra in float64."""

    def __init__(self, kernel: Kernel, ridge: float, *, intercept: bool = True) -> None:
        super().__init__(ridge, intercept=intercept)
        self.kernel = kernel

    def backward(self, Z: Tensor, data: TrainingSet, goal: BatchObjective) -> Parts:  # noqa: D102
        points, ridge = Z.to("cpu", torch.float64), float(self.ridge.detach())
        K = self.matrix(points)
        sup = self.sup(points) if goal.sup is None else torch.tensor(goal.sup)
        terms = goal.objective.dual(K.detach(), data, goal.setting(ridge, float(sup.detach())))
        d_kernel = terms.d_kernel.dense() if isinstance(terms.d_kernel, Outer) else terms.d_kernel
        d_log_ridge = self.log_ridge.new_tensor(terms.d_ridge * ridge)
        _backward({K: d_kernel, sup: torch.tensor(terms.d_sup), self.log_ridge: d_log_ridge})
        return Parts(terms.loss + goal.tau * terms.complexity, terms.loss, terms.complexity)

    def solve(
        self, network: EmbeddingNetwork, data: TrainingSet, judged: Tensor, *, choose_ridge: bool
    ) -> HeadSolution:
        """Solve one dense system; the ridge is chosen on the evaluated rows only, if they are fewer than all rows."""
        points = network.features(data.points)
        with torch.no_grad():
            K, sup = self.matrix(points), float(self.sup(points))
        ridge, some = float(self.ridge.detach()), data.subset(judged)
        if choose_ridge:
            part = K[judged][:, judged]
            ridge = best_ridge(ridge, lambda ridge: embed(part, some, ridge).leave_one_out(), some)
        solved = embed(K, data, ridge)
        return HeadSolution(
            ridge,
            solved.coefficients,
            points=points,
            fitted=solved.fitted[judged],
            left_out=solved.leave_one_out()[judged],
            support=KernelSupport.of(nearest_other(K, data) - float(self.intercept), data.weights),
            squared_norm=solved.squared_norm,
            largest=sup,
            jitter=solved.factor.jitter,
        )

    def apply_solution(  # noqa: D102
        self, new: Tensor, coefficients: Tensor, points: Tensor | None, support: Support
    ) -> tuple[Tensor, Tensor]:
        assert points is not None
        outputs, supports = [], []
        with torch.no_grad():
            for block in new.split(max(1, HEAD_KERNEL_VALUES // len(points))):
                K = self.matrix(block, points)
                outputs.append(K @ coefficients)
                supports.append(support(K - float(self.intercept)))  # the intercept says nothing about nearness
        return torch.cat(outputs), torch.cat(supports)

    def matrix(self, points: Tensor, others: Tensor | None = None) -> Tensor:
        """Return the kernel values of features, differentiable with respect to them."""
        return self.kernel.forward(points, others) + float(self.intercept)

    def sup(self, points: Tensor) -> Tensor:
        """Return ``sup k(x, x)``: the kernel's bound if it has one, otherwise the largest value at these points."""
        return self.kernel.sup_diag(points) + float(self.intercept)


@saved("embedding-network", fields="module head", transient={"device": "cpu"})
class EmbeddingNetwork(nn.Module):
    """A network from inputs to features, and the head on top of it."""

    def __init__(self, module: nn.Module, head: Head, device: str = "cpu") -> None:
        super().__init__()
        self.module, self.head, self.device = module.to(device), head, device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the network's parameters (float32 if it has none)."""
        numbers = (p.dtype for p in self.module.parameters() if p.is_floating_point())
        return next(numbers, torch.float32)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the features of some inputs, which may be on any device."""
        Z = self.module(inputs.to(self.device, self.dtype))
        if Z.ndim != 2 or len(Z) != len(inputs):
            raise ValueError(
                f"The network must return one row of features for each input. Got shape {tuple(Z.shape)} for "
                f"{len(inputs)} inputs. Try nn.Flatten() as the last layer."
            )
        return Z

    def features(self, inputs: Tensor) -> Tensor:
        """Return the features in evaluation mode, without gradient, as float64 on the CPU."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                return torch.cat([self(block).to("cpu", torch.float64) for block in inputs.split(BLOCK_ROWS)])
        finally:
            self.train(was_training)


@dataclass(frozen=True)
class HeadSolution:
    """The embedding of all rows on top of a trained network."""

    ridge: float
    coefficients: Tensor  # W (one row for each feature), or with a kernel V (one row for each training row)
    points: Tensor | None  # features of the training rows, if a kernel needs them
    fitted: Tensor  # outputs at the evaluated rows
    left_out: Tensor  # leave-one-out outputs at the evaluated rows
    support: Support
    squared_norm: float
    largest: float  # largest k(x, x) over the training rows
    jitter: float  # number added to the diagonal of the system so that it could be factorised


RIDGE_STEPS = 10.0 ** (np.arange(-6, 7) / 2.0)


def best_ridge(learned: float, left_out: Callable[[float], Tensor], some: TrainingSet) -> float:
    """Return the multiple of the learned ridge with the least calibrated log loss of leave-one-out outputs."""
    losses = {}
    for ridge in np.clip(learned * RIDGE_STEPS, 1e-10, 1e4).tolist():
        losses[ridge], _ = calibrated_log_loss(left_out(ridge), some.targets, some.weights)
    return min(losses, key=losses.__getitem__)
