"""Batches of rows for a regressor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from kernelwright.distributions.number_targets import NumberTargets
from kernelwright.distributions.options import Distribution
from kernelwright.distributions.target import TargetScale, describe, learned_by
from kernelwright.embedding.training_set import TrainingSet
from kernelwright.estimators.batches import joined_rows
from kernelwright.estimators.streaming import RunningEmbedding
from kernelwright.inputs.arrays import plain
from kernelwright.inputs.blocks import Block
from kernelwright.inputs.frames.given_rows import check_more_rows
from kernelwright.inputs.numbers import check_numbers, without_gaps
from kernelwright.solvers.solution import LEFT_OUT_ROWS

__all__ = ["add_numbers", "checked_numbers", "described_again", "first_numbers"]


def first_numbers(batches: Iterator[tuple[Any, Any]]) -> tuple[Any, np.ndarray]:
    """Collect batches until there are enough rows to learn the hyperparameters."""
    first: list[tuple[Any, np.ndarray]] = []
    for X, y in batches:
        first.append((X, np.asarray(plain(y))))
        if sum(len(part) for _, part in first) >= LEFT_OUT_ROWS:
            break
    if not first:
        raise ValueError("There are no batches to fit.")
    return joined_rows([part for part, _ in first]), np.concatenate([part for _, part in first])


def add_numbers(model: Any, running: RunningEmbedding, X: Any, y: Any, sample_weight: Any = None) -> RunningEmbedding:
    """Check rows and add them to the sums; rows without a target are left out with a warning."""
    if running.sums.sample.groups is not None:
        raise ValueError("Rows cannot be added to a fit with 'groups'. Fit all rows at once, with their groups.")
    block = checked_numbers(model, running.targets, X, y, sample_weight)
    return running if block is None else running.add(block, weighted=sample_weight is not None)


def checked_numbers(model: Any, targets: Any, X: Any, y: Any, sample_weight: Any, **options: Any) -> Block | None:
    """Check rows that are added to those of the first fit; return those with a target and of positive weight."""
    numbers, _ = check_numbers(y)
    if numbers.shape[1] != model._info.n_targets:
        raise ValueError(f"The first rows had {model._info.n_targets} targets. Got {numbers.shape[1]} now.")
    if np.isnan(numbers).any(1).all():  # an empty batch among others is no reason to stop
        return None
    X, numbers, sample_weight, _ = without_gaps(X, numbers, sample_weight)
    X, numbers = check_more_rows(model, X, numbers, multi_output=True, y_numeric=True, **options)
    weights = _check_sample_weight(plain(sample_weight), numbers, dtype=np.float64, ensure_non_negative=True)
    counted = weights > 0
    _refuse_unmapped(targets, numbers[counted])
    return Block(X[counted], numbers[counted], weights[counted] * model._info.unit)


def _refuse_unmapped(targets: Any, y: np.ndarray) -> None:
    """Raise an error if a target is outside the domain of the map that the first rows have chosen."""
    with np.errstate(all="ignore"):
        bad = ~np.isfinite(targets.encode(y).numpy())
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"The target {y[row, column]:g} is outside the range of the first rows, from which the target was found to "
            f"be learned best by its {targets.scales[column].target_map.word}. Begin with rows that cover the range, "
            "or set distribution=distributions.Stacked(transform='identity')."
        )


def described_again(targets: NumberTargets, sample: TrainingSet, how: Distribution) -> NumberTargets:
    """Return the targets with the values, range and thresholds of a sample of all rows so far.

    The map, the mean and the unit stay, because sums over rows are on that scale.
    """
    weights, scales = sample.weights.numpy(), []
    for scale, column in zip(targets.scales, sample.targets.numpy().T, strict=True):
        y = _exact(scale, column)
        found = learned_by(scale.target_map, describe(y, weights, how)[0], y, weights, how)
        scales.append(replace(found, centre=scale.centre, unit=scale.unit))
    return replace(targets, scales=tuple(scales))


def _exact(scale: TargetScale, standardised: np.ndarray) -> np.ndarray:
    """Return targets without the rounding of the scale: of short numbers, such as whole ones, the short form."""
    y, place = np.unique(scale.target_map.inverse(standardised * scale.unit + scale.centre), return_inverse=True)
    rounding = 1e-14 * max(float(np.abs(y).max()), abs(scale.centre), scale.unit)
    short = np.array([0.0 if abs(value) <= rounding else float(f"{value:.12g}") for value in y])
    return np.where(np.abs(short - y) <= rounding, short, y)[place.reshape(-1)]
