"""Coordinates of tables of codes, for the kernel that measures distances in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.inputs.coordinates import TableCoordinates
from kernelwright.inputs.layout import TableLayout
from kernelwright.kernels.base import Kernel
from kernelwright.kernels.tabular import Tabular

__all__ = ["coordinates_of"]


def coordinates_of(
    layout: TableLayout,
    codes: np.ndarray,
    kernel: Kernel | None = None,
    weights: np.ndarray | None = None,
    counts: np.ndarray | None = None,
) -> Any:
    """Return the fitted transform of codes; the default kernel is told which coordinates share a length scale.

    Any other kernel gets standardised numbers and a column for each category. ``counts`` are the numbers of equal rows
    that were merged into each.
    """
    table = TableCoordinates(layout, views=isinstance(kernel, Tabular), means=False)
    table.fit(codes, sample_weight=weights, counts=counts)
    if isinstance(kernel, Tabular):
        kernel.groups = table.groups_
    return table
