"""Objectives that train on some rows and score others: a held-out part, or each fold in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.numerics.linalg import factorise
from kernelwright.objectives.base import Objective
from kernelwright.objectives.losses import BRIER, Loss
from kernelwright.objectives.primal import split_terms
from kernelwright.objectives.terms import DualTerms, PrimalTerms, RidgeSetting, Setting

__all__ = ["FoldsObjective", "HeldOutObjective", "LastRows", "RegularisedFoldsObjective", "ShareOfRows"]

Folding = int | tuple[int, ...] | Callable[[TrainingSet], np.ndarray]


@dataclass(frozen=True)
class LastRows:
    """The last rows, by a share of all, as fold 1; each fold has at least one row."""

    share: float

    def __call__(self, data: TrainingSet) -> np.ndarray:
        """Return a fold number for each row."""
        n = len(data)
        n_scored = min(max(round(self.share * n), 1), n - 1)
        return np.repeat([0, 1], [n - n_scored, n_scored])


@dataclass(frozen=True)
class ShareOfRows:
    """A share of the rows of every stratum (of whole groups, if there are any) as fold 1."""

    share: float

    def __call__(self, data: TrainingSet) -> np.ndarray:
        """Return a fold number for each row."""
        return data.part(self.share)


@dataclass(frozen=True)
class HeldOutObjective(Objective):
    """The loss on one part of the rows by the embedding of the other, plus tau r: Eq. (13) of [Hsu2018]_.

    ``folds`` is a number of folds, a fold index for each row, or a rule; fold 0 is the training part.
    """

    folds: Folding = 2

    def arranged(self, data: TrainingSet) -> TrainingSet:  # noqa: D102
        return data if isinstance(self.folds, LastRows) else _in_order_of_folds(data.unmerged(), self.folds)

    def dual(self, K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> DualTerms:  # noqa: D102
        train = torch.from_numpy(self._folds(data) == 0)
        noise = torch.zeros(len(data), dtype=torch.float64)
        noise[train] = data.subset(train).noise(at.ridge)  # n in Eq. (13) is the size of the training part
        return _dual(K, data, at, noise, [train])

    def primal(self, Z: Tensor, data: TrainingSet, at: Setting) -> PrimalTerms:  # noqa: D102
        n_trained = int((self._folds(data) == 0).sum())
        embedded, scored = slice(n_trained), slice(n_trained, None)  # the rows are sorted by fold
        noise = at.ridge * float(data.weights[embedded].sum())
        return split_terms(Z, data, at, noise=noise, embedded=embedded, scored=scored)

    def _folds(self, data: TrainingSet) -> np.ndarray:
        return np.sort(_checked_folds(data, self.folds, 0))


@dataclass(frozen=True)
class FoldsObjective(Objective):
    """The loss at each fold by the embedding of the others, plus tau r.

    ``folds`` is a number of folds, or a fold index for each row. Each row keeps the noise it has in the full embedding.
    """

    loss: Loss = BRIER
    folds: int | tuple[int, ...] = 2

    def arranged(self, data: TrainingSet) -> TrainingSet:  # noqa: D102
        return _in_order_of_folds(data.unmerged(), self.folds)

    def dual(self, K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> DualTerms:  # noqa: D102
        return _dual(K, data, at, data.noise(at.ridge), self._trains(data))

    def primal(self, Z: Tensor, data: TrainingSet, at: Setting) -> PrimalTerms:  # noqa: D102
        trains, noise = self._trains(data), at.ridge * data.total_weight
        tested = float(sum(data.weights[~train].sum() for train in trains))
        shares = [float(data.weights[~train].sum()) / tested for train in trains]
        return reduce(
            add,
            (
                split_terms(
                    Z,
                    data,
                    at,
                    noise=noise,
                    embedded=train.nonzero()[:, 0],
                    scored=(~train).nonzero()[:, 0],
                    loss_share=share,
                    complexity_share=1.0 / len(trains),
                )
                for train, share in zip(trains, shares, strict=True)
            ),
        )

    def _trains(self, data: TrainingSet) -> list[Tensor]:
        folds = np.sort(_checked_folds(data, self.folds))
        return [torch.from_numpy(folds != fold) for fold in np.unique(folds)]


@dataclass(frozen=True)
class RegularisedFoldsObjective(FoldsObjective):
    """The squared loss at each fold by the embedding of the others, plus ``tau * lambda |U|_HS^2``: [Song2013]_.

    Their p. 15, as [Hsu2018]_ cites it, adds the penalty of ridge regression, averaged over the folds, to the
    cross-validated ``|l(y, .) - U k(x, .)|^2`` of [Grunewalder2012]_. So lambda enters twice: as the ridge of each fold
    and as the weight of its norm. tau is one as published.
    """

    complexity_weight: float | str = 1.0

    def dual(self, K: Tensor, data: TrainingSet, at: Setting, memory: Tensor | None = None) -> DualTerms:  # noqa: D102
        terms = super().dual(K, data, RidgeSetting(**vars(at)), memory)
        return replace(terms, d_ridge=terms.d_ridge + at.tau * terms.complexity / at.ridge)

    def primal(self, Z: Tensor, data: TrainingSet, at: Setting) -> PrimalTerms:  # noqa: D102
        terms = super().primal(Z, data, RidgeSetting(**vars(at)))
        return replace(terms, d_ridge=terms.d_ridge + at.tau * terms.complexity / at.ridge)


def _checked_folds(data: TrainingSet, given: Folding, needed: int | None = None) -> np.ndarray:
    """Return a fold index for each row; fold ``needed`` must have rows."""
    folds = given(data) if callable(given) else data.folds(given) if isinstance(given, int) else np.array(given)
    if folds.shape != (len(data),) or len(np.unique(folds)) < 2 or (needed is not None and needed not in folds):
        raise ValueError(
            f"'folds' must be a number of at least 2, or a fold number for each of the {len(data)} rows, with two "
            f"different folds or more ('held-out' trains on fold 0). Got {given!r} instead."
        )
    return folds


def _in_order_of_folds(data: TrainingSet, given: Folding) -> TrainingSet:
    """Sort the rows by fold, so that most blocks of the kernel matrix are views, not copies."""
    return data.subset(torch.from_numpy(np.argsort(_checked_folds(data, given), kind="stable")))


def _dual(K: Tensor, data: TrainingSet, at: Setting, noise: Tensor, trains: list[Tensor]) -> DualTerms:
    """Train on T and score the other rows B, for each T of a list; losses are averaged over all scored rows.

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
        part, G = at.loss(F, testing)
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
    return DualTerms(loss, complexity, d_K, d_ridge, at.slope_in_sup(complexity))


def _block(K: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return ``K[rows, columns]`` for sorted indices; a view, not a copy, if they have no gaps."""

    def place(numbers: Tensor) -> slice | Tensor:
        first, last = int(numbers[0]), int(numbers[-1])
        return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers

    return K[place(rows)][:, place(columns)]
