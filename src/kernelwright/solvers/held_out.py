"""Rows that are held out of an embedding for calibration."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from kernelwright.embedding.training_set import TrainingSet

__all__ = ["hold_out"]


def hold_out(data: TrainingSet, size: int, generator: torch.Generator) -> tuple[TrainingSet, TrainingSet]:
    """Split off a stratified random part of about ``size`` rows, at least one; no stratum is taken completely.

    Groups stay together. If only some of the rows merged into a point are taken, it keeps the weight of the others.
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
    """Return which rows are held out; if there are not too many strata, each with two rows gives one."""
    order = torch.randperm(len(data), generator=generator)
    held = torch.zeros(len(data), dtype=torch.bool)
    stays = torch.zeros(len(data), dtype=torch.bool)
    strata = data.strata.unique()
    for stratum in strata:
        own = order[data.strata[order] == stratum]
        least = min(1, len(own) - 1) if len(strata) <= size else 0
        held[own[: max(int(len(own) * size / len(data)), least)]] = True
        stays[own[-1]] = True
    # Strata that are too small for a share of their own are pooled.
    others = order[~(held | stays)[order]]
    held[others[: max(size - int(held.sum()), 0)]] = True
    if not bool(held.any()):  # take one row of the largest stratum
        held[(data.strata == data.strata.bincount().argmax()).nonzero()[0]] = True
    return held


def _held_groups(data: TrainingSet, size: int, generator: torch.Generator) -> Tensor:
    """Draw whole groups in random order until there are enough rows; skip one that has the last row of a stratum."""
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
            "No group can be held out for the calibration: each holds the last rows of some class. Use more groups, or "
            "solver='exact', which leaves out each group in turn."
        )
    return held
