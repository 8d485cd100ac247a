"""Pictures of the suite and of its scaling, drawn from the CSV files into ``docs/benchmarks``."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks import ranks
from tools import tables
from tools.pictures import colours, draw_ranks, plt, save
from tools.tables import Cells

PICTURES = Path(__file__).parents[1] / "docs" / "benchmarks"
OURS = "kernelwright"
SHOWN = ("accuracy %", "log loss", "calibration error", "CPU seconds to fit")


def ranks_figure(rows: list[Cells]) -> Figure | None:
    """Draw critical-difference diagrams, one for each measure; None with too little to compare."""
    of = {measure: ranks.scores(rows, measure) for measure in SHOWN}
    first = of[SHOWN[0]]
    if len(first.data) < 2 or len(first.methods) < 3:
        return None
    figure, panels = plt.subplots(2, 2, figsize=(13, 1.6 + 0.5 * len(first.methods)), layout="constrained")
    for axes, (measure, scores) in zip(panels.flat, of.items(), strict=True):
        order = np.argsort(scores.mean_ranks)
        draw_ranks(
            axes,
            {scores.methods[i]: scores.mean_ranks[i] for i in order},
            ours=OURS,
            critical_difference=scores.critical_difference,
            groups=ranks.cliques(scores.mean_ranks, scores.critical_difference),
            title=f"Mean rank over {len(scores.data)} data sets: {measure} (Friedman: p = {scores.friedman:.2g})",
        )
    return figure


def scaling_figure(rows: list[Cells]) -> Figure | None:
    """Draw CPU seconds against the number of rows, on logarithmic axes."""
    finished = [row for row in rows if not row["note"]]
    methods = list(dict.fromkeys(row["method"] for row in finished))
    if not methods:
        return None
    colour = colours(methods, OURS)
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


def sizes_and_seconds(rows: list[Cells]) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of rows and CPU seconds, fewest rows first."""
    pairs = sorted((int(row["training rows"]), float(row["CPU seconds to fit"])) for row in rows)
    return np.array([n for n, _ in pairs]), np.array([seconds for _, seconds in pairs])


def for_exponent(sizes: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep sizes from 2000 rows on: below, fixed costs hide how a method grows."""
    return sizes[sizes >= 2000], seconds[sizes >= 2000]


def trade_figure(rows: list[Cells]) -> Figure | None:
    """Draw accuracy behind the best of each data set against time: means over the data sets a method finished."""
    accuracy, seconds = ranks.scores(rows, "accuracy %"), ranks.scores(rows, "CPU seconds to fit")
    if not accuracy.data or OURS not in accuracy.methods:
        return None
    colour = colours(accuracy.methods, OURS)
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
    """Draw every picture that has numbers; those of a quick run stay with its results."""
    end, folder = ("-quick", ranks.RESULTS) if quick else ("", folder)
    suite, scaling = (tables.read(ranks.RESULTS / f"{name}{end}.csv", missing_ok=True) for name in ("suite", "scaling"))
    drawn = []
    found = {"ranks": ranks_figure(suite), "accuracy-time": trade_figure(suite), "time-rows": scaling_figure(scaling)}
    for name, figure in found.items():
        if figure is not None:
            drawn.append(folder / f"{name}{end}.png")
            save(figure, drawn[-1])
    return drawn
