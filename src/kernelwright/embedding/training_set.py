"""Points with targets and weights, on which an embedding is solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from kernelwright.storage.saved import saved

__all__ = ["TrainingSet"]

LEAST_OF_A_CLASS = 2  # rows in a sample: one to leave out, and one that still represents the class
ENOUGH_OF_A_CLASS = 5  # rows; if a sample has no room for so many of each class, it has fewer classes


@saved("training-set")
@dataclass(frozen=True)
class TrainingSet:
    """Points with targets, weights, and the prior of the targets."""

    points: Tensor
    targets: Tensor  # one-hot rows for labels; any features of the targets otherwise
    weights: Tensor
    prior: Tensor
    strata: Tensor  # a stratum index for each row; samples and folds are stratified by it
    counts: Tensor | None = None  # number of equal rows merged into each point; None: one
    groups: Tensor | None = None  # a group index for each row: rows of a group are left out together

    @classmethod
    def of(
        cls,
        points: Tensor,
        targets: Tensor,
        *,
        weights: Tensor | None = None,
        prior: Tensor | None = None,
        strata: Tensor | None = None,
        counts: Tensor | None = None,
        groups: Tensor | None = None,
    ) -> TrainingSet:
        """Make a training set; default weights are one, the prior zero, the strata the classes of one-hot targets."""
        return cls(
            points,
            targets,
            torch.ones(len(points), dtype=torch.float64) if weights is None else weights,
            torch.zeros(targets.shape[1], dtype=torch.float64) if prior is None else prior,
            targets.argmax(1) if strata is None else strata,
            counts,
            groups,
        )

    def __len__(self) -> int:
        return len(self.points)

    @property
    def total_weight(self) -> float:
        """The n of the formulas: the mean weight of given rows (or groups) is scaled to one."""
        return float(self.weights.sum())

    @property
    def n_units(self) -> int:
        """The number of units that can be left out one at a time: rows, or groups if there are any."""
        if self.groups is not None:
            return len(self.groups.unique())
        return len(self) if self.counts is None else int(self.counts.sum())

    @property
    def one_of_equals(self) -> Tensor:
        """The share of a point's weight that belongs to one of the equal rows merged into it."""
        return torch.ones_like(self.weights) if self.counts is None else 1.0 / self.counts

    @property
    def centred(self) -> Tensor:
        """Targets minus the prior."""
        return self.targets - self.prior

    def noise(self, ridge: float) -> Tensor:
        """Return the diagonal that ``ridge`` adds to the kernel matrix."""
        return ridge * self.total_weight / self.weights

    def subset(self, index: Tensor) -> TrainingSet:
        """Return some of the rows; the prior stays."""
        return replace(
            self,
            points=self.points[index],
            targets=self.targets[index],
            weights=self.weights[index],
            strata=self.strata[index],
            counts=None if self.counts is None else self.counts[index],
            groups=None if self.groups is None else self.groups[index],
        )

    def joined(self, other: TrainingSet) -> TrainingSet:
        """Return these rows and those of ``other``, none of which is merged or grouped; the prior stays."""
        columns = ("points", "targets", "weights", "strata")
        joined = {name: torch.cat([getattr(self, name), getattr(other, name)]) for name in columns}
        return replace(self, **joined, counts=None, groups=None)

    def unmerged(self) -> TrainingSet:
        """Return each merged row on its own again, so that equal rows may fall into different parts of a split."""
        if self.counts is None:
            return self
        place = torch.arange(len(self)).repeat_interleave(self.counts.long())
        return replace(self.subset(place), weights=(self.weights / self.counts)[place], counts=None)

    def sample(self, size: int, generator: torch.Generator) -> TrainingSet:
        """Return a stratified random sample of at most ``size`` rows, with at least two rows of each stratum.

        If there are too many strata for that, only some are included: a row can be left out and predicted by the rest
        only if the rest has rows of its stratum.
        """
        n = len(self)
        if n <= size:
            return self
        order = torch.randperm(n, generator=generator)
        turn, counts = _turns(self.strata[order]), torch.bincount(self.strata)
        if int(counts.clamp(max=ENOUGH_OF_A_CLASS).sum()) > size:
            return self.subset(self._some_strata(order, turn, size))
        share = (turn + 0.5) / counts.double()[self.strata[order]]
        share[turn < LEAST_OF_A_CLASS] = 0.0
        return self.subset(order[share.argsort(stable=True)[:size]].sort().values)

    def _some_strata(self, order: Tensor, turn: Tensor, size: int) -> Tensor:
        """Return the first rows, in the given order, of as many strata as fit; strata with two rows come first.

        A stratum is ranked by its second row: so strata come in random order, and those with one row come last.
        """
        few = order[turn < ENOUGH_OF_A_CLASS]
        second = torch.full((int(self.strata.max()) + 1,), len(order))  # strata with one row: at the end
        second[self.strata[order[turn == 1]]] = (turn == 1).nonzero()[:, 0]
        return few[second[self.strata[few]].argsort(stable=True)[:size]].sort().values

    def whole_groups(self, size: int, generator: torch.Generator) -> TrainingSet:
        """Return about ``size`` random rows with complete groups; without groups, a sample of that size."""
        if self.groups is None or len(self) <= size:
            return self.sample(size, generator)
        _, number, sizes = self.groups.unique(return_inverse=True, return_counts=True)
        order = torch.randperm(len(sizes), generator=generator)
        chosen = torch.zeros(len(sizes), dtype=torch.bool)
        chosen[order[: 1 + int((sizes[order].cumsum(0) < size).sum())]] = True
        return self.subset(chosen[number])

    def spread(self, size: int, generator: torch.Generator) -> Tensor:
        """Return indices of at most ``size`` random rows: half by the size of strata, half equal for all strata."""
        order = torch.randperm(len(self), generator=generator)
        counts = torch.bincount(self.strata).double()
        share = 0.5 * counts / counts.sum() + 0.5 * (counts > 0) / (counts > 0).sum()
        quota = (size * share).floor().clamp(min=1).long().minimum(counts.long())
        early = _turns(self.strata[order]) < quota[self.strata[order]]
        return torch.cat([order[early], order[~early]])[:size].sort().values

    def spread_sample(self, size: int, generator: torch.Generator) -> TrainingSet:
        """Return such rows, weighted so that every stratum counts as much as it does among all rows.

        The heaviest rows keep the weight, and hence the noise, that they have among all rows.
        """
        if len(self) <= size:
            return self
        if int(torch.bincount(self.strata).clamp(max=ENOUGH_OF_A_CLASS).sum()) > size:
            return self.sample(size, generator)
        some = self.subset(self.spread(size, generator))
        whole, part = (torch.bincount(rows.strata, rows.weights, int(self.strata.max()) + 1) for rows in (self, some))
        factor = (whole / part.clamp(min=1e-300))[some.strata]
        return replace(some, weights=some.weights * factor / factor.max())

    def folds(self, n_folds: int) -> np.ndarray:
        """Return a fold index for each row: rows are dealt in the order of their strata, so that no fold is empty.

        Groups are dealt in the same way, each with the stratum of its first row.
        """
        return self._deal(lambda n: torch.arange(n) % n_folds)

    def part(self, share: float) -> np.ndarray:
        """Return 1 for this share of the rows (or groups) of every stratum and 0 for the others; neither is empty."""

        def in_turn(n: int) -> Tensor:
            taken = (share * torch.arange(n + 1, dtype=torch.float64)).floor().long().diff()
            if not taken.any():
                taken[-1] = 1
            elif taken.all():
                taken[0] = 0
            return taken

        return self._deal(in_turn)

    def _deal(self, numbers: Callable[[int], Tensor]) -> np.ndarray:
        """Deal that many numbers to rows, or to groups, in the order of their strata.

        Groups are ordered by name, not by row: the order stays when rows are sorted by fold.
        """
        if self.groups is None:
            return _dealt(self.strata, numbers(len(self.strata))).numpy()
        number, first = _groups_and_first_rows(self.groups)
        return _dealt(self.strata[first], numbers(len(first)))[number].numpy()

    def with_groups_in_order(self) -> TrainingSet:
        """Return the rows with groups numbered by their first rows: folds then do not depend on group names."""
        if self.groups is None:
            return self
        number, first = _groups_and_first_rows(self.groups)
        return replace(self, groups=first.argsort().argsort()[number])

    def random_parts(self, n_parts: int, generator: torch.Generator) -> Tensor:
        """Return a part index for each row, purely at random; groups stay together.

        Stratified parts would bias the score of a model that predicts the most frequent class: they fix its frequency
        in each part, but among new rows it varies.
        """
        unit = torch.arange(len(self)) if self.groups is None else self.groups.unique(return_inverse=True)[1]
        n_units = int(unit.max()) + 1
        return (torch.randperm(n_units, generator=generator) % min(n_parts, n_units))[unit]


def _groups_and_first_rows(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Return the place of each row's group among the sorted names, and the first row of each group."""
    _, number = groups.unique(return_inverse=True)
    rows = torch.arange(len(number))
    return number, torch.full((int(number.max()) + 1,), len(number)).scatter_reduce(0, number, rows, "amin")


def _dealt(strata: Tensor, numbers: Tensor) -> Tensor:
    """Deal one of the numbers to each row, in the order of the strata."""
    dealt = torch.empty_like(numbers)
    dealt[strata.argsort(stable=True)] = numbers
    return dealt


def _turns(strata: Tensor) -> Tensor:
    """Return, for each row, the number of earlier rows of its stratum."""
    counts = torch.bincount(strata)
    order = strata.argsort(stable=True)
    turns = torch.empty(len(strata), dtype=torch.int64)
    turns[order] = torch.arange(len(strata)) - (counts.cumsum(0) - counts)[strata[order]]
    return turns
