"""Divide and conquer: Algorithm 1 of [Liu2021]_."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from joblib import Parallel, delayed
from torch import Tensor

from kernelwright.hyper.bases import Basis, joined
from kernelwright.hyper.regression import Coefficients, PairPart
from kernelwright.numerics.threads import on_one_thread

__all__ = ["average_of_parts", "random_parts"]


def random_parts(n_points: int, n_parts: int, generator: torch.Generator) -> list[Tensor]:
    """Draw disjoint parts of equal size; a single part has all points in their order."""
    if n_parts == 1:
        return [torch.arange(n_points)]
    order = torch.randperm(n_points, generator=generator)
    return [part.sort().values for part in order.tensor_split(n_parts)]


def average_of_parts(
    solve: Callable[[PairPart], tuple[Basis, Coefficients]], parts: Iterable[PairPart], n_jobs: int | None = None
) -> tuple[Basis, Coefficients]:
    """Average the kernels of the parts, solved in parallel by joblib; the ridge is that of the first part."""
    found = Parallel(n_jobs=n_jobs)(delayed(on_one_thread)(solve, part) for part in parts)
    share = 1.0 / len(found)
    basis, weights = joined([(basis, share * c.weights) for basis, c in found])
    return basis, replace(found[0][1], weights=weights, bias=share * sum(c.bias for _, c in found))
