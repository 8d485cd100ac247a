"""The input and the result of a regression over pairs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from kernelwright.hyper.bases import Basis
from kernelwright.hyper.kernels import HyperKernel
from kernelwright.hyper.pairs import Pairs
from kernelwright.hyper.solvers import PairSolver
from kernelwright.hyper.targets import Target

__all__ = ["Coefficients", "PairPart", "PairRegressor", "folds_of", "listed", "power_of_m"]

FOLDS = 4


@dataclass(frozen=True)
class Coefficients:
    """Weights of the basis functions, a constant, and the errors by which the ridge was chosen, if it was."""

    weights: Tensor
    bias: float = 0.0
    ridge: float = np.nan
    errors: np.ndarray | None = None  # one for each of RIDGES


@dataclass(frozen=True)
class PairPart:
    """Some of the points with their targets, and the functions that their kernel is made of."""

    points: Tensor
    target: Target  # centred, and in units of ``scale``
    scale: float
    hyperkernel: HyperKernel
    solver: PairSolver
    centres: Tensor | None  # None: choose landmarks among the points
    seed: int
    first_row: int = 0  # its number among all points, so that each part has its own random draws


class PairRegressor(Protocol):
    """A regression over pairs."""

    @property
    def centred(self) -> bool:
        """Whether the mean of the targets is subtracted first, and added back as a constant."""

    @property
    def exact_first(self) -> bool:
        """Whether a problem with few points is solved exactly, even with Gaussian hyper-kernels."""

    @property
    def refine(self) -> bool | str:
        """Whether the residual of a given matrix is smoothed over pairs of known points."""

    @property
    def definite(self) -> bool:
        """Whether the kernel must be positive definite."""

    def solve(self, part: PairPart, random: torch.Generator) -> tuple[Basis, Coefficients]:
        """Find the kernel of a part whose targets have been divided by ``part.scale``."""


def listed(part: PairPart, usual: int, random: torch.Generator, *, matrices: int) -> tuple[Pairs, Basis]:
    """Return the pairs of a part, and the basis functions that are fitted to them."""
    pairs = part.solver.pairs(part.target, part.points, usual, random, matrices=matrices)
    return pairs, part.solver.basis(part.hyperkernel, part.points, pairs, part.centres, part.seed)


def folds_of(n_points: int, random: torch.Generator, n_folds: int = FOLDS) -> Tensor:
    """Draw a fold for each point."""
    return torch.randperm(n_points, generator=random) % min(n_folds, n_points)


def power_of_m(value: float | str, n_points: int, name: str) -> float:
    """Return a given number, or the value of a power such as "m^-0.5" for m points."""
    if not isinstance(value, str):
        return float(value)
    found = re.fullmatch(r"m\^(-?\d*\.?\d+)", value.replace(" ", ""))
    if found is None:
        raise ValueError(
            f"The {name!r} parameter must be a positive number, or a power of the number of points such as "
            f"'m^-0.5'. Got {value!r} instead."
        )
    return float(n_points) ** float(found[1])
