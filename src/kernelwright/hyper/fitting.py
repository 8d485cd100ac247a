"""The complete fit of a learned kernel, from points and targets to a kernel function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from kernelwright.hyper.bases import Basis
from kernelwright.hyper.kernels import HyperKernel, Sum
from kernelwright.hyper.learned import LearnedKernel
from kernelwright.hyper.learning import HeldOutMetric, as_learning, learned_hyperkernel
from kernelwright.hyper.partition import average_of_parts, random_parts
from kernelwright.hyper.refinement import refinement_of
from kernelwright.hyper.regression import Coefficients, PairPart, PairRegressor
from kernelwright.hyper.solvers import PairSolver, as_solver, divided
from kernelwright.hyper.targets import PairProblem, Target
from kernelwright.learning.loop import Step
from kernelwright.numerics.threads import threads_for

__all__ = ["BasisPlan", "PairFit", "fit_pairs"]


@dataclass(frozen=True)
class BasisPlan:
    """The functions of pairs that a kernel is made of.

    They are sections of the ``hyperkernel`` (by default eight Gaussians of different widths). The ``solver`` decides
    how many there are. With ``learn``, the parameters of the hyper-kernel are learned first.
    """

    hyperkernel: HyperKernel | None = None
    solver: str | PairSolver = "auto"
    learn: str | HeldOutMetric | None = None


@dataclass(frozen=True)
class PairFit:
    """A learned kernel, and how it was found."""

    kernel: LearnedKernel
    coefficients: Coefficients  # in units of the targets' spread; the mean over parts, with the ridge of the first
    solver: str  # "exact", "nystroem" or "midpoint"
    history: list[Step] = field(default_factory=list)  # steps of learning the hyper-kernel


def fit_pairs(
    problem: PairProblem,
    basis: BasisPlan,
    regressor: PairRegressor,
    *,
    bound: float | str | None = None,
    random: torch.Generator,
) -> PairFit:
    """Learn a kernel function: centre the targets, choose the hyper-kernel, solve the parts, refine, bound.

    Parameters
    ----------
    problem : PairProblem
        Points, and the target value of the kernel for each pair of them.
    basis : BasisPlan
        The functions that the kernel is made of.
    regressor : PairRidge or PairSVR
        The method that finds their weights.
    bound : float, "auto" or None, default=None
        Clip the kernel's values to [-bound, bound]; "auto" is the largest absolute target.
    random : torch.Generator
    """
    partition, solver = divided(as_solver(basis.solver))
    _check_parts(len(problem), partition.n)
    centre, scale = (problem.target.mean() if regressor.centred else 0.0), problem.target.spread()
    goal = problem.target.normalised(centre, scale)
    start = (Sum() if basis.hyperkernel is None else basis.hyperkernel).prepared(problem.points, problem.weights)
    settled = solver.settled(start, len(problem) // partition.n, exact_first=regressor.exact_first)
    with threads_for(0):
        hyper, history = _settled_numbers(start, problem.points, goal, basis.learn, settled.rule(), random)
        parts = _parts(problem.points, goal, partition.n, settled, hyper, scale, random)
        functions, found = average_of_parts(partial(_solve_part, regressor), parts, partition.n_jobs)
        weights, bias = scale * found.weights, centre + scale * found.bias
        kernel = LearnedKernel(functions, weights, bias)
        refine = False if regressor.refine == "auto" and not solver.refines else regressor.refine
        smoother = refinement_of(kernel, problem, refine=refine, definite=regressor.definite, random=random)
    limit = problem.target.largest() if isinstance(bound, str) else bound
    return PairFit(LearnedKernel(functions, weights, bias, limit, smoother), found, settled.word, history)


def _check_parts(n_points: int, n_parts: int) -> None:
    if n_points < 3 * n_parts:
        raise ValueError(f"{n_points} distinct points are too few for {n_parts} parts: each part needs at least 3.")


def _settled_numbers(
    start: HyperKernel,
    X: Tensor,
    goal: Target,
    learn: str | HeldOutMetric | None,
    rule: str,
    random: torch.Generator,
) -> tuple[HyperKernel, list[Step]]:
    """Learn the parameters of the hyper-kernel if ``learn`` asks for it, then fix them."""
    settings = as_learning(learn)
    if settings is None:
        return start.fixed(), []
    hyper, history = learned_hyperkernel(start, X, goal, settings, rule=rule, random=random)
    return hyper.fixed(), history


def _parts(
    X: Tensor,
    goal: Target,
    n_parts: int,
    solver: PairSolver,
    hyper: HyperKernel,
    scale: float,
    random: torch.Generator,
) -> Iterator[PairPart]:
    """Divide points and targets at random; each part holds only its own points."""
    parts = random_parts(len(X), n_parts, random)
    seed = int(torch.randint(2**31 - 1, (), generator=random))
    # Parts share their centres, so the mean of their kernels has no more terms than one of them.
    centres = solver.centres(X, seed)
    own = ((rows, goal if n_parts == 1 else goal.subset(rows)) for rows in parts)
    return (PairPart(X[rows], target, scale, hyper, solver, centres, seed, int(rows[0])) for rows, target in own)


def _solve_part(regressor: PairRegressor, part: PairPart) -> tuple[Basis, Coefficients]:
    with torch.no_grad():
        return regressor.solve(part, torch.Generator().manual_seed(part.seed + part.first_row))
