"""An embedding by a kernel that can take more rows, and forget old ones: the tree solver, leaf by leaf."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelwright.embedding.fitted import EmbeddedRows, FittedEmbedding
from kernelwright.embedding.growing import GrowingTrees
from kernelwright.embedding.partition import all_axes, divisible, grow
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.arrows import refuse_if_too_large
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.dask_rows import is_dask
from kernelwright.inputs.sparse_tables import is_sparse
from kernelwright.learning import learning_method
from kernelwright.solvers import Exact, Solution, Tree, solver_of
from kernelwright.solvers.growing import GrowingSolver
from kernelwright.solvers.solution import LEFT_OUT_ROWS
from kernelwright.storage.saved import saved

__all__ = [
    "GrowingRows",
    "Growth",
    "NewRows",
    "prior_is_fixed",
    "refuse_growth",
    "refuse_streams",
    "tree_of",
]

LARGER_LEAF = 2000  # of a model that was exact: one leaf, and so exact, up to this number of rows
FADED = 2.0**-10  # rows whose weight has decayed to this part are dropped


@saved("growing-rows")
@dataclass(frozen=True)
class GrowingRows:
    """What is kept of the rows of a model, besides its embedding, so that more can be added."""

    given: Tensor  # the weight with which each row came
    arrived: Tensor  # the number of rows that came before it
    n_seen: int  # the number of all rows that have come
    noise: float  # n lambda
    since: int  # n_seen when weights and ridges were last set for all rows
    n_then: int  # the number of rows at that time
    leaf: int  # the most rows of a leaf
    targets: Tensor | None = None  # standardised numbers; classes are the strata of the embedding
    log_scales: Tensor | None = None  # the targets of the scale of a distribution
    spread_noises: tuple[float, ...] = ()  # n lambda of the scale and of direct estimates

    def weights(self, half_life: float | None) -> Tensor:
        """Return the weights, decayed. Only their ratios matter much, so a new row may have up to two."""
        if half_life is None:
            return self.given
        return self.given * torch.exp2((self.arrived - self.since).double() / half_life)


@dataclass(frozen=True)
class NewRows:
    """Rows to add, as the embedding sees them."""

    points: Tensor
    targets: Tensor
    weights: Tensor
    strata: Tensor


@dataclass(frozen=True)
class Growth:
    """An embedding with rows that come and go."""

    solver: GrowingSolver
    rows: GrowingRows
    settings: Tree
    due: bool = False  # whether everything is solved anew

    @classmethod
    def resumed(cls, model: Any, targets: Tensor) -> Growth:
        """Return the growth of a fitted model, none of whose leaves is solved, from the targets of its points."""
        embedding, settings, rows = model.embedding_, tree_of(model), vars(model).get("_growing_rows")
        refuse_growth(model)
        prior = torch.zeros(targets.shape[1], dtype=torch.float64)
        data = embedding.rows.training_set(embedding.points.double(), targets, prior)
        if rows is None:
            arrived = _order_of_arrival(embedding.rows, len(data))
            n, noise = int(arrived.max()) + 1, embedding.ridge * data.total_weight
            rows = GrowingRows(data.weights, arrived, n, noise, n, len(data), settings.leaf)
        partitions = (
            (grow(data.points, all_axes(embedding.kernel, data.points), settings.leaf),)
            if embedding.trees is None
            else embedding.trees.partitions
        )
        trees = GrowingTrees.of(embedding.kernel, data, partitions, settings.leaf)
        solver = GrowingSolver(trees, rows.noise, rows.log_scales, exact=embedding.trees is None)
        return cls(solver, rows, settings)

    def doubled(self, n_new: int) -> bool:
        """Return whether, with new rows, there have come as many as there were when all was set."""
        return self.rows.n_seen + n_new - self.rows.since >= self.rows.n_then

    def under(self, settings: Tree) -> Growth:
        """Return the growth with other settings."""
        trees = replace(self.solver.trees, size=settings.leaf)
        return replace(self, solver=replace(self.solver, trees=trees), settings=settings)

    @property
    def data(self) -> TrainingSet:
        """The rows, with zero as their prior."""
        return self.solver.trees.data

    def advanced(self, new: NewRows, *, due: bool = False) -> Growth:
        """Return the growth with more rows, and without those that are too old.

        Weights decay exactly against each other. All leaves are solved again if that is ``due``, and once in each
        half-life, when weights get their absolute size.
        """
        rows, settings, n_new = self.rows, self.settings, len(new.points)
        n_seen, half_life, max_age = rows.n_seen + n_new, settings.half_life, settings.max_age
        due = due or (half_life is not None and n_seen - rows.since >= half_life)
        age = n_seen - rows.arrived
        stays = age <= max_age if max_age is not None else torch.ones(len(age), dtype=torch.bool)
        if half_life is not None:
            stays &= torch.exp2(-age.double() / half_life) > FADED
        kept, arrived = stays.nonzero()[:, 0], torch.arange(rows.n_seen, n_seen)
        if max_age is not None and n_new > max_age:
            some = slice(n_new - int(max_age), None)
            new = NewRows(new.points[some], new.targets[some], new.weights[some], new.strata[some])
            arrived = arrived[some]
        n = len(kept) + len(arrived)
        refuse_if_too_large(Exact() if n <= settings.leaf else settings, n)
        rows = replace(
            rows,
            given=torch.cat([rows.given[kept], new.weights]),
            arrived=torch.cat([rows.arrived[kept], arrived]),
            n_seen=n_seen,
            log_scales=None if due or rows.log_scales is None else rows.log_scales[kept],
            since=n_seen if due else rows.since,
            n_then=n if due else rows.n_then,
        )
        weights = rows.weights(half_life)
        more = TrainingSet.of(new.points, new.targets, weights=weights[len(kept) :], strata=new.strata)
        trees = self.solver.trees.with_rows(more, kept, settings.trees, generator(n_seen))
        if due:
            trees = trees.weighted(weights)
        return Growth(replace(self.solver, trees=trees, pinned=rows.log_scales), rows, settings, due)

    def judged(self) -> Tensor | None:
        """Return which rows are enough for the calibration; None for all of them."""
        data = self.data
        if len(data) <= LEFT_OUT_ROWS:
            return None
        numbered = replace(data, points=torch.arange(len(data)), counts=None)
        return numbered.sample(LEFT_OUT_ROWS, generator(self.rows.n_seen)).points

    def solution(self, prior: Tensor, judged: Tensor | None = None) -> Solution:
        """Solve the leaves that have changed."""
        return self.solver.solve(prior, judged)

    def embedding(self, before: FittedEmbedding, solution: Solution) -> FittedEmbedding:
        """Return a fitted embedding with the solution."""
        data, trees = self.data, solution.trees
        assert solution.points is not None
        n, counts = len(data), None if data.counts is None else data.counts.numpy()
        every = np.ones(n, dtype=bool)
        return replace(
            before,
            points=solution.points,
            coefficients=solution.coefficients,
            prior=solution.left_out.rows.prior,
            ridge=self.rows.noise / data.total_weight,
            support=solution.support,
            rows=EmbeddedRows(every, np.arange(n), np.ones(n), data.weights.numpy(), data.strata.numpy(), counts, None),
            solver="exact" if trees is None else "tree",
            precision="double",
            predicts_in_single=False,
            jitter=solution.jitter,
            trees=trees,
        )

    def settled(self, spread_noises: tuple[float, ...] = ()) -> Growth:
        """Return the growth with all leaves solved."""
        solver = replace(self.solver, trees=self.solver.trees.settled())
        targets = self.data.targets if spread_noises else None
        rows = replace(self.rows, targets=targets, log_scales=solver.pinned, spread_noises=spread_noises)
        return Growth(solver, rows, self.settings)

    def widened(self, places: np.ndarray, n_outputs: int) -> Growth:
        """Return the growth with targets for more classes; ``places`` are the new indices of the present ones."""
        where, data = torch.from_numpy(places), self.data
        targets = data.targets.new_zeros(len(data), n_outputs)
        targets[:, where] = data.targets
        prior = torch.zeros(n_outputs, dtype=torch.float64)
        data = replace(data, targets=targets, prior=prior, strata=where[data.strata])
        return replace(self, solver=replace(self.solver, trees=replace(self.solver.trees, data=data)))


def prior_is_fixed(model: Any) -> bool:
    """Return whether the prior comes from other rows than those of the embedding, and so does not follow them."""
    return learning_method(model.learn, type(model).__name__).kernel_share is not None


def _order_of_arrival(rows: EmbeddedRows, n_points: int) -> Tensor:
    """Return the order in which points were given; a point that stands for several rows came with the last."""
    if not len(rows.place) or int(rows.place.max()) >= n_points:
        return torch.arange(n_points)
    last = np.zeros(n_points, dtype=np.int64)
    np.maximum.at(last, rows.place, np.arange(len(rows.place)))
    return torch.from_numpy(last)


def tree_of(model: Any) -> Tree:
    """Return the tree in which a model grows: one leaf if an exact solution was asked for."""
    solver = solver_of(model.solver, type(model).__name__)
    if isinstance(solver, Exact):
        return Tree(sys.maxsize, trees=1)
    if isinstance(solver, Tree):
        return solver
    rows = vars(model).get("_growing_rows")
    if rows is not None:
        return Tree(rows.leaf)
    fitted = vars(model).get("embedding_")
    return Tree() if fitted is not None and fitted.solver == "tree" else Tree(LARGER_LEAF)


def refuse_streams(model: Any, X: Any) -> None:
    """Raise an error if a stream cannot begin with these rows."""
    if model.kernel == "precomputed" or is_sparse(X) or is_dask(X):
        what = "a matrix of kernel values" if model.kernel == "precomputed" else f"a {type(X).__name__}"
        raise ValueError(
            f"partial_fit by a kernel takes dense rows of numbers, or data frames, in memory. Got {what}. Use explicit "
            "features for Dask collections, and fit for all others."
        )


def refuse_growth(model: Any) -> None:
    """Raise an error if rows cannot be added to a fitted model, and say what to do."""
    embedding, settings = model.embedding_, tree_of(model)
    if embedding.solver not in ("exact", "tree"):
        raise ValueError(
            f"Rows cannot be added: this model was solved with solver_={embedding.solver!r}, which does not keep all "
            "rows. Use solver='tree' to begin with, or explicit features such as features.RandomFourier(1000)."
        )
    if model.kernel == "precomputed" or not divisible(embedding.kernel, embedding.points):
        raise ValueError(
            "Rows can be added to kernels on dense rows of numbers only, which a tree can split. "
            f"Got kernel_={embedding.kernel!r} on {'sparse rows' if embedding.sparse else 'other objects'}. Fit all "
            "rows at once."
        )
    if len(embedding.rows.weights) != len(embedding.points):
        raise ValueError(
            "Rows cannot be added: this model was fitted to a Dask collection, and keeps the targets of a sample only. "
            "Fit rows in memory, or all rows at once."
        )
    if embedding.rows.groups is not None:
        raise ValueError("Rows cannot be added to a fit with 'groups'. Fit all rows at once, with their groups.")
    if settings.landmarks or (embedding.trees is not None and len(embedding.trees.landmarks)):
        raise ValueError(
            "Rows cannot be added to a tree with landmarks: these connect all leaves, so all would have to be solved "
            "again. Use solver=Tree(landmarks=0), the default, or fit all rows at once."
        )
