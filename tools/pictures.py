"""Plots of results: colours, critical-difference diagrams, and reproducible files."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def colours(names: Sequence[str], ours: str) -> dict[str, object]:
    """Assign black to ours, and colours from the colour map to the others, in order."""
    others = [name for name in names if name != ours]
    wheel = plt.get_cmap("turbo")(np.linspace(0.05, 0.95, len(others)))
    return dict(zip(others, wheel, strict=True)) | {ours: "black"}


def draw_ranks(
    axes: Axes,
    mean_ranks: dict[str, float],
    *,
    ours: str,
    critical_difference: float,
    groups: Sequence[tuple[float, float]],
    title: str,
) -> None:
    """Draw a critical-difference diagram: names at their mean ranks, bars over indistinguishable groups."""
    k = len(mean_ranks)
    axes.hlines(0.0, 1, k, color="black", linewidth=1)
    axes.plot(range(1, k + 1), np.zeros(k), "|", color="black", markersize=6)
    for rank in range(1, k + 1):
        axes.annotate(str(rank), (rank, 0.0), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=7)
    for level, (low, high) in enumerate(groups):
        axes.hlines(-0.4 - 0.3 * level, low - 0.05, high + 0.05, color="grey", linewidth=3)
    base = -0.7 - 0.3 * len(groups)
    _write_names(axes, mean_ranks, ours, base)
    # The critical difference itself.
    end = min(1 + critical_difference, k)
    axes.hlines(0.9, 1, end, color="black", linewidth=2)
    words = f"critical difference {critical_difference:.2f}"
    axes.text((1 + end) / 2, 1.0, words, ha="center", va="bottom", fontsize=7)
    axes.set_title(title, fontsize=9, pad=10)
    axes.set_xlim(0.5 - 0.35 * k, 1.35 * k + 0.5)
    axes.set_ylim(base - 0.5 * ((k + 1) // 2), 1.6)
    axes.axis("off")


def _write_names(axes: Axes, mean_ranks: dict[str, float], ours: str, base: float) -> None:
    """Write the better half of the names on the left, the rest on the right, each with a line to its rank."""
    k = len(mean_ranks)
    for i, (name, rank) in enumerate(sorted(mean_ranks.items(), key=lambda item: item[1])):
        first = i < (k + 1) // 2
        depth = base - 0.5 * (i if first else k - 1 - i)
        edge = 0.6 if first else k + 0.4
        axes.plot([rank, rank, edge], [0.0, depth, depth], color="black", linewidth=0.7)
        weight = "bold" if name == ours else "normal"
        label = f"{name} {rank:.2f}"
        axes.text(edge, depth, label, ha="right" if first else "left", va="center", fontsize=8, weight=weight)


def save(figure: Figure, path: Path) -> None:
    """Save a figure as PNG, without the software version, and close it."""
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
