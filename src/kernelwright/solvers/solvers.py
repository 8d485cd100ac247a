"""Ways to hold the final embedding of a learned kernel.

========================  ===============================  ==============================================
``"exact"``               n^3 once, n^2 memory             the dual form, for up to some thousand rows
``"nystroem"``            n M a step, few steps            the span of M landmarks, conjugate gradients
``"fourier"``             n p^2 once, p^2 memory           random Fourier features of the kernel
``"herding"``             M^3 once                         a weighted subset of M rows
========================  ===============================  ==============================================
"""

from __future__ import annotations

import copy
import math
import operator
import warnings
from dataclasses import dataclass, replace
from functools import reduce

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from kernelwright.embedding.dual import DualEmbedding, embed, embed_in_single
from kernelwright.embedding.herding import herd
from kernelwright.embedding.landmarks import (
    BLOCK_ENTRIES,
    DOUBLE_UP_TO,
    RESIDUAL,
    KernelRows,
    NystroemEmbedding,
    embed_by_landmarks,
)
from kernelwright.embedding.primal import Moments
from kernelwright.embedding.support import FeatureSupport, KernelSupport, Support, nearest_other
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.errors import NumericalError, PrecisionWarning
from kernelwright.kernels import Kernel
from kernelwright.kernels.feature import FeatureMap
from kernelwright.kernels.vector import spread_rows
from kernelwright.numerics.memory import check_memory, free_memory

__all__ = [
    "LeftOut",
    "Solution",
    "choose_solver",
    "estimated_bytes",
    "exact",
    "explicit",
    "herding",
    "nystroem",
    "refuse_too_many_features",
    "sum_up",
    "usual_landmarks",
]


LEARNED_FROM = 2000  # rows at most whose matrices the default recipe holds
EXACT_UP_TO = 8000  # rows; beyond, landmarks are as good and far cheaper
FEATURE_ROWS = 4096  # rows whose features are held at once
LEFT_OUT_ROWS = 5000  # rows whose leave-one-out outputs are enough to calibrate on
SINGLE_RESIDUAL = 1e-4  # by which outputs at training rows may miss, with kernel values of single precision
VALUE_ERROR = 1e-4  # of kernel values, relative to the largest
LANDMARK_ERROR = 1e-3  # in the mean square, by which outputs may miss with landmarks, an approximation anyhow
LANDMARK_CANDIDATES = 5  # rows that are looked at for each landmark
HERDING_CANDIDATES = 5000  # of each class: their kernel matrix must fit


@dataclass(frozen=True)
class LeftOut:
    """Some rows as new ones: what an embedding says of them that has not seen them."""

    outputs: Tensor
    rows: TrainingSet
    support: Tensor  # of each row, without it


@dataclass(frozen=True)
class Solution:
    """An embedding, what it says of rows it was solved on, and what it says of rows left out."""

    points: Tensor | None  # those the coefficients belong to; None where they belong to features
    coefficients: Tensor
    squared_norm: float
    fitted: Tensor  # outputs at ``fitted_rows``
    fitted_rows: TrainingSet
    left_out: LeftOut  # probabilities are calibrated on these
    support: Support
    jitter: float = 0.0  # what was added to the diagonal of the system so that it could be factorised
    precision: str = "double"  # or "single": of the kernel values that the system is made of


def estimated_bytes(solver: str, n_rows: int, size: int = 0, learned_from: int = LEARNED_FROM) -> float:
    """Memory that the matrices of a fit take at its peak: measured, and checked by the robustness tests.

    Parameters
    ----------
    solver : {"exact", "nystroem", "fourier", "herding"}
    n_rows : int
        Rows that are different.
    size : int
        Landmarks, features or rows of the subset; not used by "exact".
    learned_from : int
        Rows at most whose matrices are held at once while hyperparameters are learned.

    Examples
    --------
    >>> from kernelwright.solvers import estimated_bytes
    >>> f"{estimated_bytes('exact', 8000) / 2**30:.1f} GiB"
    '1.9 GiB'
    """
    learning = 7 * 8.0 * min(n_rows, learned_from) ** 2  # three kernels, their sum, its inverse, the slope in it
    if solver == "exact":  # the matrix, its factor, and two temporary copies
        return max(learning, 4 * 8.0 * n_rows**2)
    if solver == "nystroem":
        kept = (4.0 if n_rows * size > DOUBLE_UP_TO else 8.0) * n_rows * size
        blocks = 4 * 8.0 * min(n_rows * size, BLOCK_ENTRIES)
        return max(learning, (kept if kept < 0.5 * free_memory() else 0.0) + blocks + 6 * 8.0 * size**2)
    if solver == "fourier":
        held = min(n_rows, FEATURE_ROWS + LEFT_OUT_ROWS)
        return max(learning, 8.0 * (6 * size**2 + 4 * held * size))
    candidates = min(n_rows, max(HERDING_CANDIDATES, size))
    left_out = 4 * 8.0 * min(n_rows, LEFT_OUT_ROWS) * size
    return max(learning, 3 * 8.0 * candidates**2, 4 * 8.0 * size**2 + left_out)


def choose_solver(n: int, n_landmarks: int | None) -> tuple[str, int]:
    """The solver for n rows and its number of landmarks, by cost and by the memory there is."""
    if n <= EXACT_UP_TO and estimated_bytes("exact", n) < 0.9 * free_memory():
        return "exact", n
    return "nystroem", min(n_landmarks or usual_landmarks(n), n)


def usual_landmarks(n: int) -> int:
    """Half of the rows up to 4000, then one in twenty; from 1000 to 7500, if a few matrices of that size fit."""
    fits = int(math.sqrt(0.2 * free_memory() / 8.0))
    return max(1, min(max(1000, min(n // 2, 4000), n // 20), 7500, fits))


def exact(kernel: Kernel, data: TrainingSet, ridge: float, *, precision: str = "auto") -> Solution:
    """The dual form on all rows, in double precision unless "single"; leave-one-out outputs in closed form."""
    if precision == "single" and (found := _exact_in_single(kernel, data, ridge)) is not None:
        return found
    K = kernel.matrix(data.points)
    return _dual_solution(embed(K, data, ridge), nearest_other(K, data), "double")


def _exact_in_single(kernel: Kernel, data: TrainingSet, ridge: float) -> Solution | None:
    """With matrix and factor in single precision; None, with a warning, where that cannot be made accurate."""
    K = copy.deepcopy(kernel).to(torch.float32).matrix(data.points.to(torch.float32)).to(torch.float32)
    try:
        embedding = embed_in_single(K, data, ridge)
    except NumericalError as error:
        _warn_of_fallback(str(error))
        return None
    some = spread_rows(len(data))
    with torch.no_grad():
        fitted = data.prior + kernel.forward(data.points[some], data.points) @ embedding.coefficients
    residual = float((fitted - embedding.fitted[some]).abs().max())
    if not residual <= SINGLE_RESIDUAL:  # also where it is not a number
        _warn_of_fallback(f"A kernel matrix of single precision leaves a residual of {residual:.1e}.")
        return None
    return _dual_solution(embedding, nearest_other(K, data).double(), "single")


def _dual_solution(embedding: DualEmbedding, nearest: Tensor, precision: str) -> Solution:
    data = embedding.data
    support = KernelSupport.of(nearest, data.weights)
    return Solution(
        data.points,
        embedding.coefficients,
        embedding.squared_norm,
        embedding.fitted,
        data,
        LeftOut(embedding.leave_one_out(), data, support.relative(nearest)),
        support,
        embedding.factor.jitter,
        precision,
    )


def _warn_of_fallback(reason: str) -> None:
    warnings.warn(
        f"{reason} The system was solved in double precision instead. A very small ridge, or inputs of a size that "
        "single precision does not hold, are the usual reasons.",
        PrecisionWarning,
        stacklevel=5,
    )


def nystroem(
    kernel: Kernel,
    data: TrainingSet,
    ridge: float,
    n_landmarks: int,
    generator: torch.Generator,
    *,
    precision: str = "auto",
) -> Solution:
    """The span of landmarks; one row in twenty, at most 5000, is held out for the calibration."""
    if n_landmarks >= len(data):  # all rows are landmarks
        return exact(kernel, data, ridge, precision=precision)
    rest, held = hold_out(data, min(len(data) // 20, 5000), generator)
    noise = ridge * data.total_weight  # what stays the same for some of the rows
    landmarks = _landmarks(kernel, rest, noise, n_landmarks, generator)
    rows, embedding = _by_landmarks(kernel, rest, noise / rest.total_weight, landmarks, precision)
    if not embedding.residual <= 10.0 * RESIDUAL[rows.dtype]:
        warnings.warn(
            f"Conjugate gradients stopped after {embedding.n_iter} steps at a relative residual of "
            f"{embedding.residual:.1e}. Likely causes: (a) a very small ridge: raise it; (b) weights of rows that "
            "differ by orders of magnitude. Or use solver='exact'.",
            ConvergenceWarning,
            stacklevel=4,
        )
    alpha = embedding.coefficients
    fitted = torch.cat([block.double() @ alpha for _, block in rows]) + rest.prior
    left_out, support = _new_rows(kernel, held, landmarks, alpha)
    of_rows = "single" if rows.dtype == torch.float32 else "double"
    return Solution(landmarks, alpha, embedding.squared_norm, fitted, rest, left_out, support, precision=of_rows)


def _landmarks(kernel: Kernel, data: TrainingSet, noise: float, size: int, generator: torch.Generator) -> Tensor:
    """A third spread over all rows, the others drawn by the squared loss of an embedding by that third.

    What lies between classes needs more landmarks than what lies within one.
    """
    size = min(size, len(data))
    first = data.spread(-(-size // 3), generator)
    if size == len(first):
        return data.points[first]
    others = torch.ones(len(data), dtype=torch.bool)
    others[first] = False
    candidates = others.nonzero()[:, 0]
    candidates = candidates[torch.randperm(len(candidates), generator=generator)[: LANDMARK_CANDIDATES * size]]
    some = data.subset(candidates)
    rows, embedding = _by_landmarks(kernel, some, noise / some.total_weight, data.points[first], "auto")
    outputs = torch.cat([block.double() @ embedding.coefficients for _, block in rows])
    loss = some.weights * (some.centred - outputs).square().sum(1)
    loss = loss.nan_to_num(nan=1.0, posinf=1.0).clamp(min=1e-12)  # a poor start must not stop the solve itself
    drawn = candidates[torch.multinomial(loss, size - len(first), generator=generator)]
    return data.points[torch.cat([first, drawn])]


def _by_landmarks(
    kernel: Kernel, data: TrainingSet, ridge: float, landmarks: Tensor, precision: str
) -> tuple[KernelRows, NystroemEmbedding]:
    """Kernel values of the precision that is asked for, and the embedding; of double if single does not do.

    That is said where single was asked for.
    """
    dtype = {"auto": None, "single": torch.float32, "double": torch.float64}[precision]
    rows = KernelRows(kernel, data.points, landmarks, dtype=dtype)
    embedding = embed_by_landmarks(kernel, data, ridge, landmarks, rows=rows)
    if rows.dtype == torch.float64:
        return rows, embedding
    if not embedding.residual <= 10.0 * RESIDUAL[torch.float32]:
        trouble = f"Conjugate gradients in single precision left a relative residual of {embedding.residual:.1e}."
    else:
        trouble = _trouble_with_single(kernel, rows, landmarks, embedding.coefficients)
    if not trouble:
        return rows, embedding
    if precision == "single":
        _warn_of_fallback(trouble)
    del rows, embedding  # both matrices at once may not fit
    return _by_landmarks(kernel, data, ridge, landmarks, "double")


def _trouble_with_single(kernel: Kernel, rows: KernelRows, landmarks: Tensor, coefficients: Tensor) -> str:
    """What is wrong with kernel values of single precision at some of the rows, if anything is."""
    some = rows.points[spread_rows(len(rows.points))]
    with torch.no_grad():
        exact_values = kernel.forward(some, landmarks)
        error = rows.kernel.forward(some.to(rows.dtype), rows.landmarks).double() - exact_values
    of_values = float(error.abs().max() / exact_values.abs().max())
    of_outputs = float((error @ coefficients).square().mean().sqrt())
    if not of_values <= VALUE_ERROR:  # so the coefficients are those of another kernel
        return f"Kernel values of single precision are off by {of_values:.1e}."
    if not of_outputs <= LANDMARK_ERROR:
        return f"Kernel values of single precision change outputs by {of_outputs:.1e}."
    return ""


def herding(kernel: Kernel, data: TrainingSet, ridge: float, size: int, generator: torch.Generator) -> Solution:
    """A subset that stands for each class: picked by kernel herding, weighted by how often each was picked.

    A row of great weight (one that many others equal) is picked again and again.
    """
    if size >= len(data):  # all rows are picked
        return exact(kernel, data, ridge)
    chosen, weights = [], []
    for stratum in data.strata.unique():
        own = (data.strata == stratum).nonzero()[:, 0]
        total = float(data.weights[own].sum())
        picks = max(1, round(size * len(own) / len(data)))
        candidates = own[torch.randperm(len(own), generator=generator)[: max(HERDING_CANDIDATES, picks)]]
        share = data.weights[candidates] / data.weights[candidates].sum()
        picked, times = herd(kernel.matrix(data.points[candidates]), share, picks).unique(return_counts=True)
        chosen.append(candidates[picked])
        weights.append(total / picks * times.double())
    picked = torch.cat(chosen)
    found = exact(kernel, replace(data.subset(picked), weights=torch.cat(weights), counts=None), ridge)
    others = torch.ones(len(data), dtype=torch.bool)
    others[picked] = False
    if data.groups is not None:
        others &= ~torch.isin(data.groups, data.groups[picked])
    if not bool(others.any()):
        return found
    # A picked row stands for many: to leave it out says little. Rows that were not picked are new.
    rows = data.subset(others).sample(LEFT_OUT_ROWS, generator)
    left_out, support = _new_rows(kernel, rows, data.points[picked], found.coefficients)
    return replace(found, left_out=left_out, support=support)


def _new_rows(kernel: Kernel, rows: TrainingSet, points: Tensor, coefficients: Tensor) -> tuple[LeftOut, Support]:
    with torch.no_grad():
        K = kernel.forward(rows.points, points)
    support = KernelSupport.of(K.max(1).values, rows.weights)
    return LeftOut(K @ coefficients + rows.prior, rows, support(K)), support


def hold_out(data: TrainingSet, size: int, generator: torch.Generator) -> tuple[TrainingSet, TrainingSet]:
    """Split off about ``size`` random rows, at least one: of every stratum its share, never all of it.

    Groups go or stay as a whole. Of equal rows that were merged some may go: their point keeps the others' weight.
    """
    rows = data.unmerged()
    held = _held_groups(rows, size, generator) if rows.groups is not None else _held_rows(rows, size, generator)
    if data.counts is None:
        return data.subset(~held), data.subset(held)
    place = torch.arange(len(data)).repeat_interleave(data.counts.long())
    left = data.counts - torch.bincount(place[held], minlength=len(data))
    rest = replace(data, weights=data.weights * left / data.counts, counts=left)
    return rest.subset(left > 0), rows.subset(held)


def _held_rows(data: TrainingSet, size: int, generator: torch.Generator) -> Tensor:
    """Which rows are held out; where there are not too many strata, each that has two rows gives one."""
    order = torch.randperm(len(data), generator=generator)
    held = torch.zeros(len(data), dtype=torch.bool)
    stays = torch.zeros(len(data), dtype=torch.bool)
    strata = data.strata.unique()
    for stratum in strata:
        own = order[data.strata[order] == stratum]
        least = min(1, len(own) - 1) if len(strata) <= size else 0
        held[own[: max(int(len(own) * size / len(data)), least)]] = True
        stays[own[-1]] = True
    # Strata that are too small for a share of their own have one together.
    others = order[~(held | stays)[order]]
    held[others[: max(size - int(held.sum()), 0)]] = True
    if not bool(held.any()):  # one row of the largest
        held[(data.strata == data.strata.bincount().argmax()).nonzero()[0]] = True
    return held


def _held_groups(data: TrainingSet, size: int, generator: torch.Generator) -> Tensor:
    """Whole groups in random order until there are enough rows; one that has the last row of a stratum stays."""
    assert data.groups is not None
    held = torch.zeros(len(data), dtype=torch.bool)
    names = data.groups.unique()
    left = torch.bincount(data.strata)
    for name in names[torch.randperm(len(names), generator=generator)]:
        own = data.groups == name
        after = left - torch.bincount(data.strata[own], minlength=len(left))
        if bool(((after == 0) & (left > 0)).any()) or bool((held | own).all()):
            continue
        held, left = held | own, after
        if int(held.sum()) >= size:
            break
    if not bool(held.any()):
        raise ValueError(
            "No group can be held out for the calibration: each has the last rows of a class. Use more groups, or "
            "solver='exact', which leaves each out in turn."
        )
    return held


def refuse_too_many_features(features: FeatureMap) -> None:
    """Raise :class:`MemoryBudgetError` where the sums, their factor and a copy would not fit."""
    p = features.n_features
    check_memory(4 * 8.0 * p**2, f"An embedding of {p} features", "Use fewer of them (n_features).")


def sum_up(features: FeatureMap, data: TrainingSet) -> Moments:
    """The moments of all rows, made of some rows at a time."""
    refuse_too_many_features(features)
    blocks = (data.subset(rows) for rows in torch.arange(len(data)).split(FEATURE_ROWS))
    with torch.no_grad():
        return reduce(operator.add, (Moments.of(features(b.points), b.targets, b.weights) for b in blocks))


def explicit(moments: Moments, features: FeatureMap, sample: TrainingSet, ridge: float) -> Solution:
    """The primal form of rows that have been summed up, with leave-one-out outputs at a sample of them."""
    with torch.no_grad():
        Z = features(sample.points).double()
    factor = moments.factor(ridge)
    W, support = moments.weights(factor, sample.prior), FeatureSupport.of(factor, Z, sample)
    left_out = LeftOut(moments.left_out(factor, Z, sample), sample, support(Z))
    squared_norm, fitted = float(W.square().sum()), sample.prior + Z @ W
    return Solution(None, W, squared_norm, fitted, sample, left_out, support, factor.jitter)
