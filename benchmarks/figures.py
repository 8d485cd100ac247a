"""Pictures of the suite and of its scaling, from the CSV files, into ``docs/benchmarks``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import ranks
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PICTURES = Path(__file__).parents[1] / "docs" / "benchmarks"
OURS = "kernelwright"
SHOWN = ("accuracy %", "log loss", "calibration error", "CPU seconds to fit")


def colours(methods: list[str]) -> dict[str, object]:
    """Ours in black, the others around the colour circle, in the order of the file."""
    others = [method for method in methods if method != OURS]
    wheel = plt.get_cmap("turbo")(np.linspace(0.05, 0.95, len(others)))
    return dict(zip(others, wheel, strict=True)) | {OURS: "black"}


def draw_ranks(axes: Axes, scores: ranks.Scores, title: str) -> None:
    """A critical-difference diagram: methods on a line of mean ranks, bars over those that are not told apart."""
    order = np.argsort(scores.mean_ranks)
    found, names = scores.mean_ranks[order], [scores.methods[i] for i in order]
    k, left = len(names), (len(names) + 1) // 2
    bars = ranks.cliques(found, scores.critical_difference)
    axes.hlines(0.0, 1, k, color="black", linewidth=1)
    axes.plot(range(1, k + 1), np.zeros(k), "|", color="black", markersize=6)
    for rank in range(1, k + 1):
        axes.annotate(str(rank), (rank, 0.0), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=7)
    for level, (low, high) in enumerate(bars):
        axes.hlines(-0.4 - 0.3 * level, low - 0.05, high + 0.05, color="grey", linewidth=3)
    base = -0.7 - 0.3 * len(bars)
    for i, (rank, name) in enumerate(zip(found, names, strict=True)):
        first = i < left  # the better half is named on the left, the rest on the right
        depth = base - 0.5 * (i if first else k - 1 - i)
        edge = 0.6 if first else k + 0.4
        axes.plot([rank, rank, edge], [0.0, depth, depth], color="black", linewidth=0.7)
        weight = "bold" if name == OURS else "normal"
        label = f"{name} {rank:.2f}"
        axes.text(edge, depth, label, ha="right" if first else "left", va="center", fontsize=8, weight=weight)
    # How far apart is apart.
    end = min(1 + scores.critical_difference, k)
    axes.hlines(0.9, 1, end, color="black", linewidth=2)
    words = f"critical difference {scores.critical_difference:.2f}"
    axes.text((1 + end) / 2, 1.0, words, ha="center", va="bottom", fontsize=7)
    axes.set_title(f"{title} (Friedman: p = {scores.friedman:.2g})", fontsize=9, pad=10)
    axes.set_xlim(0.5 - 0.35 * k, 1.35 * k + 0.5)
    axes.set_ylim(base - 0.5 * left, 1.6)
    axes.axis("off")


def ranks_figure(rows: list[ranks.Row]) -> Figure | None:
    of = {measure: ranks.scores(rows, measure) for measure in SHOWN}
    first = of[SHOWN[0]]
    if len(first.data) < 2 or len(first.methods) < 3:
        return None  # nothing to compare
    figure, panels = plt.subplots(2, 2, figsize=(13, 1.6 + 0.5 * len(first.methods)), layout="constrained")
    for axes, (measure, scores) in zip(panels.flat, of.items(), strict=True):
        draw_ranks(axes, scores, f"Mean rank over {len(scores.data)} data sets: {measure}")
    return figure


def scaling_figure(rows: list[ranks.Row]) -> Figure | None:
    finished = [row for row in rows if not row["note"]]
    methods = list(dict.fromkeys(row["method"] for row in finished))
    if not methods:
        return None
    colour = colours(methods)
    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    for method in methods:
        sizes, seconds = sizes_and_seconds([row for row in finished if row["method"] == method])
        ours = method == OURS
        p = ranks.exponent(*for_exponent(sizes, seconds))
        label = method if np.isnan(p) else f"{method}: $n^{{{p:.1f}}}$"
        axes.loglog(sizes, seconds, "o-", label=label, color=colour[method], linewidth=3 if ours else 1.2, markersize=4)
    axes.set(xlabel="training rows of covtype", ylabel="CPU seconds to fit, one thread")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def sizes_and_seconds(rows: list[ranks.Row]) -> tuple[np.ndarray, np.ndarray]:
    pairs = sorted((int(row["training rows"]), float(row["CPU seconds to fit"])) for row in rows)
    return np.array([n for n, _ in pairs]), np.array([seconds for _, seconds in pairs])


def for_exponent(sizes: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From 2000 rows on: below, fixed costs hide how a method grows."""
    return sizes[sizes >= 2000], seconds[sizes >= 2000]


def trade_figure(rows: list[ranks.Row]) -> Figure | None:
    """Accuracy below the best of each data set against time, both as means over the data sets a method finished."""
    accuracy, seconds = ranks.scores(rows, "accuracy %"), ranks.scores(rows, "CPU seconds to fit")
    if not accuracy.data or OURS not in accuracy.methods:
        return None
    colour = colours(accuracy.methods)
    behind = accuracy.values - np.nanmax(accuracy.values, axis=1, keepdims=True)
    times = np.log(seconds.values / seconds.values[:, [accuracy.methods.index(OURS)]])
    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for i, method in enumerate(accuracy.methods):
        both = ~np.isnan(behind[:, i]) & ~np.isnan(times[:, i])
        if not both.any():
            continue
        x, y = np.exp(times[both, i].mean()), behind[both, i].mean()
        face = colour[method] if both.all() else "none"
        axes.plot(x, y, "o", color=colour[method], markerfacecolor=face, markersize=9)
        weight = "bold" if method == OURS else "normal"
        axes.annotate(method, (x, y), xytext=(7, 4), textcoords="offset points", fontsize=8, weight=weight)
    axes.set_xscale("log")
    axes.set(
        xlabel=f"CPU seconds to fit, times those of {OURS} (geometric mean)",
        ylabel="accuracy behind the best method of each set, points (mean)",
        title="Hollow: not all data sets were finished, and the means are of those that were",
    )
    axes.title.set_fontsize(9)
    axes.grid(alpha=0.3)
    axes.margins(x=0.25)
    return figure


def draw_all(quick: bool = False, folder: Path = PICTURES) -> list[Path]:
    """Draw what there are numbers for; a quick run's pictures stay with its results."""
    end, folder = ("-quick", ranks.RESULTS) if quick else ("", folder)
    folder.mkdir(exist_ok=True)
    suite, scaling = (ranks.read(ranks.RESULTS / f"{name}{end}.csv") for name in ("suite", "scaling"))
    drawn = []
    found = {"ranks": ranks_figure(suite), "accuracy-time": trade_figure(suite), "time-rows": scaling_figure(scaling)}
    for name, figure in found.items():
        if figure is not None:
            drawn.append(folder / f"{name}{end}.png")
            figure.savefig(drawn[-1], dpi=110, metadata={"Software": None})
    plt.close("all")
    return drawn
