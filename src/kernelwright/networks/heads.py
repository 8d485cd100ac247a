"""Embedding networks: a conditional embedding on top of features that a network learns, appendix C of [Hsu2018]_.

A head is what lies above the network. It is solved anew for every batch, so that only the network, the ridge and a
kernel's own numbers are learned by gradient: :class:`LinearHead` in p x p algebra (Algorithm 2), :class:`KernelHead`
with any kernel on the features (Algorithm 1). The objective of both is that of Eq. (12), mean loss + tau r, or with
a part of each batch left to be scored by the embedding of the rest, that of Eq. (13).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kernelwright.embedding.dual import embed
from kernelwright.embedding.primal import Moments, RidgeSystem
from kernelwright.embedding.support import FeatureSupport, KernelSupport, Support, nearest_other
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.kernels import Kernel
from kernelwright.numerics.products import Outer, thin_product
from kernelwright.objectives.losses import clipped_log_loss
from kernelwright.objectives.objective import Setting, held_out, in_sample
from kernelwright.parameters import Positive, raw_bounds
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.calibration import calibrated_log_loss

__all__ = ["Bound", "EmbeddingNetwork", "Head", "KernelHead", "LinearHead", "Parts", "Solution"]

BLOCK_ENTRIES = 2**20  # kernel values held at once while predicting: more would not stay in the cache
BLOCK_ROWS = 512  # rows that go through a network at once when nothing is learned


@dataclass(frozen=True)
class Bound:
    """What the objective of a batch is made of, besides the batch.

    ``sup`` is alpha^2 = sup k(x, x), the intercept included, or None for the largest value in the batch; ``scored``
    is the share of a batch whose loss is counted, by the embedding of the rest (Eq. 13); at 0 all rows are embedded
    and scored (Eq. 12).
    """

    tau: float
    epsilon: float
    sup: float | None = None
    scored: float = 0.0

    def n_scored(self, n: int) -> int:
        """How many of n rows, the last ones, are scored and not embedded."""
        return min(max(round(self.scored * n), 1), n - 1) if self.scored > 0 and n > 1 else 0


@dataclass(frozen=True)
class Parts:
    """The objective of a batch and its two parts."""

    value: float
    loss: float
    complexity: float


class Head(nn.Module):
    """An embedding on top of features. Subclasses say what its objective is.

    ``intercept`` puts a constant feature beside those of the network (adds one to a kernel).
    """

    ridge = Positive(1e-10, 1e4, vectors=False)
    log_ridge: nn.Parameter

    def __init__(self, ridge: float, *, intercept: bool = True) -> None:
        super().__init__()
        self.ridge, self.intercept = ridge, intercept

    def backward(self, Z: Tensor, data: TrainingSet, bound: Bound) -> Parts:
        """The objective at features Z of the rows of ``data``; its gradients go where autograd leaves them."""
        raise NotImplementedError

    def solve(self, network: EmbeddingNetwork, data: TrainingSet, judged: Tensor, *, choose_ridge: bool) -> Solution:
        """The embedding of all rows of ``data``, whose points are inputs of the network.

        With ``choose_ridge``, the ridge is the one among multiples of the learned one that does best, by the
        cross entropy of calibrated leave-one-out outputs, at the rows numbered by ``judged``.
        """
        raise NotImplementedError

    def apply_solution(
        self, new: Tensor, coefficients: Tensor, points: Tensor | None, support: Support
    ) -> tuple[Tensor, Tensor]:
        """Raw outputs and support of features ``new`` by parts of a :class:`Solution`."""
        raise NotImplementedError

    def keep_in_limits(self) -> None:
        """Bring the ridge and a kernel's numbers back to where a solve is possible."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.clamp_(*raw_bounds(self, name))


@saved("linear-head", fields="intercept", parameters="log_ridge")
class LinearHead(Head):
    """The linear kernel on the features: ``W = (Z^T Z + n ridge)^-1 Z^T Y``, ``r = alpha |W|``."""

    def backward(self, Z: Tensor, data: TrainingSet, bound: Bound) -> Parts:  # noqa: D102
        with torch.no_grad():
            parts, d_Z, d_log_ridge = self.value_and_slopes(Z.detach(), data, bound)
        slopes = {Z: d_Z, self.log_ridge: self.log_ridge.new_tensor(d_log_ridge)}
        learned = [each for each in slopes if each.requires_grad]
        torch.autograd.backward(learned, [slopes[each] for each in learned])
        return parts

    def value_and_slopes(self, Z: Tensor, data: TrainingSet, bound: Bound) -> tuple[Parts, Tensor, float]:
        """The objective and its slopes in the features and in the logarithm of the ridge, in closed form.

        With P = Z W at the scored rows, G = dloss/dP, ``H = S^-1 dq/dW`` and R = T - Z W at the embedded rows,
        ``dq/dZ = (w R) H^T + (G - w Z H) W^T`` and ``dq/dnoise = -<H, W>``.
        """
        wide, w = self.widen(Z.cpu()), data.weights
        embedded, scored = _parts(len(wide), bound)
        weighted = bool((w != w[0]).any())
        noise = float(self.ridge) * float(w[embedded].sum() if weighted else len(w[embedded]))
        system = RidgeSystem.of(wide[embedded], noise, w[embedded] if weighted else None)
        T, rows = data.targets.to(system.z), wide[scored].to(system.z)
        W = system.weights(T[embedded])
        ZW = thin_product(system.z, W.to(rows))
        P = ZW if scored is embedded else thin_product(rows, W.to(rows))
        loss, G = clipped_log_loss(P.double(), data.targets[scored], w[scored], bound.epsilon)
        G = G.to(rows)

        lengths = torch.linalg.vecdot(wide, wide)
        sup, squared_norm = float(lengths.max() if bound.sup is None else bound.sup), float(W.square().sum())
        complexity = math.sqrt(sup * squared_norm)
        steep = bound.tau / complexity if complexity > 0.0 else 0.0  # twice the slope in sup |W|^2

        H = system.solve((G.T @ rows).T.double() + steep * sup * W)
        ZH = thin_product(system.z, H.to(rows))
        in_H, in_W = torch.zeros_like(T), torch.zeros_like(T)
        in_H[embedded], in_W[embedded] = system.weighted(T[embedded] - ZW), -system.weighted(ZH)
        in_W[scored] += G
        d_Z = torch.cat([in_H, in_W], 1) @ torch.cat([H.T, W.T])[:, : Z.shape[1]].to(T)
        if bound.sup is None:
            longest = lengths.argmax()
            d_Z[longest] += steep * squared_norm * wide[longest, : Z.shape[1]]
        value = loss + bound.tau * complexity
        return Parts(value, loss, complexity), d_Z.to(Z), -noise * float((H * W).sum())

    def solve(self, network: EmbeddingNetwork, data: TrainingSet, judged: Tensor, *, choose_ridge: bool) -> Solution:
        """By a sum over blocks of rows: only one block's features are held at a time."""
        return self.solve_sums(self.sum_up(network, data), network, data.subset(judged), choose_ridge=choose_ridge)

    def sum_up(self, network: EmbeddingNetwork, data: TrainingSet) -> Moments:
        """The moments of the features of all rows."""
        blocks = (data.subset(rows) for rows in torch.arange(len(data)).split(BLOCK_ROWS))
        return reduce(
            operator.add,
            (Moments.of(self.widen(network.features(some.points)), some.targets, some.weights) for some in blocks),
        )

    def solve_sums(
        self, moments: Moments, network: EmbeddingNetwork, some: TrainingSet, *, choose_ridge: bool
    ) -> Solution:
        """The embedding of rows that have been summed up; ``some`` of them are judged."""
        ridge = float(self.ridge.detach())
        Z = self.widen(network.features(some.points))

        def left_out(ridge: float) -> Tensor:
            return moments.left_out(moments.factor(ridge), Z, some)

        ridge = best_ridge(ridge, left_out, some) if choose_ridge else ridge
        factor = moments.factor(ridge)
        W = moments.weights(factor)
        return Solution(
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
        """The features, with the constant one if there is an intercept."""
        return torch.cat([Z, Z.new_ones(len(Z), 1)], 1) if self.intercept else Z


def _parts(n: int, bound: Bound) -> tuple[Any, Any]:
    """Which of n rows are embedded and which are scored; for all of them an index that makes no copy."""
    n_embedded = n - bound.n_scored(n)
    return (..., ...) if n_embedded == n else (slice(n_embedded), slice(n_embedded, None))


@saved("kernel-head", fields="kernel intercept", parameters="log_ridge")
class KernelHead(Head):
    """Any kernel on the features, by n x n algebra in float64."""

    def __init__(self, kernel: Kernel, ridge: float, *, intercept: bool = True) -> None:
        super().__init__(ridge, intercept=intercept)
        self.kernel = kernel

    def backward(self, Z: Tensor, data: TrainingSet, bound: Bound) -> Parts:  # noqa: D102
        points = Z.to("cpu", torch.float64)
        K = self.matrix(points)
        sup = self.sup(points) if bound.sup is None else torch.tensor(bound.sup)
        ridge = float(self.ridge.detach())
        at = Setting(ridge, bound.tau, float(sup.detach()), "log", bound.epsilon)
        if n_scored := bound.n_scored(len(Z)):
            folds = np.repeat([0, 1], [len(Z) - n_scored, n_scored])
            terms = held_out(K.detach(), data, at, folds)
        else:
            terms = in_sample(K.detach(), data, at)
        d_kernel = terms.d_kernel.dense() if isinstance(terms.d_kernel, Outer) else terms.d_kernel
        slopes = {K: d_kernel, sup: torch.tensor(terms.d_sup), self.log_ridge: self.log_ridge.new_tensor(1.0)}
        slopes[self.log_ridge] *= terms.d_ridge * ridge
        learned = [each for each in slopes if each.requires_grad]
        torch.autograd.backward(learned, [slopes[each].to(each) for each in learned])
        return Parts(terms.loss + bound.tau * terms.complexity, terms.loss, terms.complexity)

    def solve(self, network: EmbeddingNetwork, data: TrainingSet, judged: Tensor, *, choose_ridge: bool) -> Solution:
        """By one dense solve; the ridge is chosen among the judged rows alone, where there are fewer of them."""
        points = network.features(data.points)
        with torch.no_grad():
            K, sup = self.matrix(points), float(self.sup(points))
        ridge, some = float(self.ridge.detach()), data.subset(judged)
        if choose_ridge:
            part = K[judged][:, judged]
            ridge = best_ridge(ridge, lambda ridge: embed(part, some, ridge).leave_one_out(), some)
        solved = embed(K, data, ridge)
        return Solution(
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
            for block in new.split(max(1, BLOCK_ENTRIES // len(points))):
                K = self.matrix(block, points)
                outputs.append(K @ coefficients)
                supports.append(support(K - float(self.intercept)))  # the constant says nothing of nearness
        return torch.cat(outputs), torch.cat(supports)

    def matrix(self, points: Tensor, others: Tensor | None = None) -> Tensor:
        """Kernel values of features, differentiable in them."""
        return self.kernel.forward(points, others) + float(self.intercept)

    def sup(self, points: Tensor) -> Tensor:
        """``sup k(x, x)``: the kernel's own where it is bounded, otherwise the largest value at these points."""
        return self.kernel.sup_diag(points) + float(self.intercept)


@saved("embedding-network", fields="module head", transient={"device": "cpu"})
class EmbeddingNetwork(nn.Module):
    """A network from inputs to features, and the head on top of it."""

    def __init__(self, module: nn.Module, head: Head, device: str = "cpu") -> None:
        super().__init__()
        self.module, self.head, self.device = module.to(device), head, device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the network's numbers (float32 if it has none)."""
        numbers = (p.dtype for p in self.module.parameters() if p.is_floating_point())
        return next(numbers, torch.float32)

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of some inputs, wherever these are."""
        Z = self.module(inputs.to(self.device, self.dtype))
        if Z.ndim != 2 or len(Z) != len(inputs):
            raise ValueError(
                f"The network must give a row of features for each input. Got shape {tuple(Z.shape)} for "
                f"{len(inputs)} inputs: end it with nn.Flatten(), say."
            )
        return Z

    def features(self, inputs: Tensor) -> Tensor:
        """Features in evaluation mode, without gradient, as float64 on the CPU."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                return torch.cat([self(block).to("cpu", torch.float64) for block in inputs.split(BLOCK_ROWS)])
        finally:
            self.train(was_training)


@dataclass(frozen=True)
class Solution:
    """The embedding of all rows on top of a trained network."""

    ridge: float
    coefficients: Tensor  # W (a row for each feature), or V (a row for each training row) under a kernel
    points: Tensor | None  # features of the training rows, where a kernel needs them
    fitted: Tensor  # outputs at the judged rows
    left_out: Tensor  # outputs at the judged rows, each by the embedding of all other rows
    support: Support
    squared_norm: float
    largest: float  # k(x, x) over the training rows
    jitter: float  # what was added to the diagonal of the system so that it could be factorised


RIDGE_STEPS = 10.0 ** (np.arange(-6, 7) / 2.0)


def best_ridge(learned: float, left_out: Callable[[float], Tensor], some: TrainingSet) -> float:
    """The multiple of the learned ridge whose left-out outputs at some rows have the least calibrated log loss."""
    losses = {}
    for ridge in np.clip(learned * RIDGE_STEPS, 1e-10, 1e4).tolist():
        losses[ridge], _ = calibrated_log_loss(left_out(ridge), some.targets, some.weights)
    return min(losses, key=losses.__getitem__)
