"""Feature relevance of a learned kernel: its length scales as a ranked table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from kernelwright.kernels.vector import HasLengthScales
from kernelwright.storage.saved import saved

__all__ = ["FeatureRelevance", "Relevance", "rank_features", "warn_of_bounds"]

AT_BOUND = 1e-3  # on the log scale: an optimiser stops on a bound, or within rounding of it


@saved("feature-relevance")
@dataclass(frozen=True)
class FeatureRelevance:
    """One row of the table."""

    name: str
    lengthscale: float  # the shortest, in the units the kernel sees; infinite for a feature that never varied
    share: float  # share of (feature spread / length scale) among all features
    at_bound: str = ""  # "lower" or "upper" if learning stopped at a bound


@saved("relevance")
@dataclass(frozen=True)
class Relevance:
    """Features by decreasing relevance; prints as a table."""

    rows: list[FeatureRelevance]

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows] + [len("feature")])
        lines = [f"{'feature':<{width}}  {'share':>6}  {'length scale':>12}"]
        for row in self.rows:
            note = f"  at its {row.at_bound} bound" if row.at_bound else ""
            lines.append(f"{row.name:<{width}}  {row.share:6.1%}  {row.lengthscale:12.4g}{note}")
        return "\n".join(lines)


def rank_features(kernel: nn.Module, names: Sequence[str], columns: np.ndarray, spread: np.ndarray) -> Relevance:
    """Rank the features of a kernel with a length scale for each.

    Parameters
    ----------
    kernel : Module
        A kernel or feature map. Its parts with one length scale per feature count equally; a part with a common
        length scale says nothing about single features.
    names : list of str
        All features.
    columns : ndarray of int
        For each length scale of the kernel its feature. Shares of several length scales of a feature are summed.
    spread : ndarray
        Standard deviation of what each length scale divides.
    """
    parts = [part for part in kernel.modules() if isinstance(part, HasLengthScales)]
    parts = [part for part in parts if part.log_lengthscale.shape == (len(columns),)]
    if not parts:
        raise ValueError(
            "Relevance needs a kernel with a length scale for each feature: the default one, or Gaussian(ard=True) "
            f"and the like. Got {kernel!r} instead."
        )
    scales = np.stack([part.lengthscale.detach().numpy() for part in parts])
    pull = spread / scales
    pull = pull / np.maximum(pull.sum(1, keepdims=True), 1e-300)
    share, scale = np.zeros(len(names)), np.full(len(names), np.inf)
    np.add.at(share, columns, pull.mean(0))
    np.minimum.at(scale, columns, np.exp(np.log(scales).mean(0)))
    stuck = {column: word for column, word in zip(columns.tolist(), _at_bounds(parts), strict=True) if word}
    order = np.argsort(-share, kind="stable")
    return Relevance([FeatureRelevance(str(names[d]), scale[d], share[d], stuck.get(d, "")) for d in order.tolist()])


def _at_bounds(parts: Sequence[HasLengthScales]) -> list[str]:
    """Return, for each feature, the bound that one of its length scales has reached."""
    words = [""] * len(parts[0].log_lengthscale)
    for part in parts:
        lower, upper = type(part).lengthscale.raw_bounds()
        for d, value in enumerate(part.log_lengthscale.detach().tolist()):
            if value < lower + AT_BOUND:
                words[d] = "lower"
            elif value > upper - AT_BOUND:
                words[d] = "upper"
    return words


def warn_of_bounds(relevance: Relevance) -> None:
    """Warn about length scales that have reached a bound."""
    stuck = [row for row in relevance.rows if row.at_bound]
    if stuck:
        shown = ", ".join(f"{row.name!r} ({row.at_bound})" for row in stuck[:5]) + (", ..." if len(stuck) > 5 else "")
        warnings.warn(
            f"{len(stuck)} length scales have reached a learning bound: {shown}. At the upper bound a feature "
            "has no effect; at the lower bound it separates all rows, like an identifier.",
            stacklevel=3,
        )
