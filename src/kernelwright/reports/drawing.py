"""Shared by all plots: colours for light and dark backgrounds, and names shown literally."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["ACCENT", "CLASS_COLOURS", "GREEN", "GREY", "WARM", "legend", "new_axes", "numbered", "plain", "recolour"]

# Mid-tones: each has a contrast of at least 3 both with white and with the page's dark background.
ACCENT, WARM, GREEN, GREY = "#3a87b7", "#cf6f33", "#3f9463", "#868c96"
CLASS_COLOURS = (
    "#3a87b7",
    "#cf6f33",
    "#3f9463",
    "#b45aa3",
    "#a38622",
    "#7a6fd0",
    "#c9525b",
    "#2f9a9a",
    "#8b7355",
    "#868c96",
)
LONGEST = 28  # characters of a name in a plot; tables on the page show it in full


def new_axes(ax: Any, size: tuple[float, float] = (5.0, 3.8)) -> Any:
    """Return the given axes, or new ones on a figure outside of pyplot's global state."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").subplots()


def plain(name: Any, longest: int = LONGEST) -> str:
    r"""Return a user's name in a form that matplotlib shows literally: no formulas, one line, not too long.

    Examples
    --------
    >>> from kernelwright.reports.drawing import plain
    >>> print(plain("price in $ or $"))
    price in \$ or \$
    >>> plain("a name that goes on for longer than anybody reads")
    'a name that goes o…ody reads'
    """
    text = "".join(letter if letter.isprintable() else " " for letter in str(name))
    text = " ".join(text.split()) or "(blank)"
    if len(text) > longest:  # cut the middle: names of the categories of a column begin alike
        end = longest // 3
        text = f"{text[: longest - 1 - end]}…{text[-end:]}"
    return text.replace("$", r"\$")  # two bare dollar signs would begin and end a formula


def legend(ax: Any, handles: Sequence[Any], names: Sequence[str], **where: Any) -> Any:
    """Draw a legend with any names; matplotlib itself would leave out names that begin with an underscore."""
    numbers = [str(number) for number in range(len(names))]
    made = ax.legend(list(handles), numbers, fontsize="small", framealpha=0.8, **where)
    for text, name in zip(made.get_texts(), names, strict=True):
        text.set_text(plain(name))
    return made


def numbered(y: Any, classes: Any, n_columns: int) -> np.ndarray:
    """Return labels as column indices of the probabilities; without ``classes`` they must already be indices."""
    y = np.asarray(y)
    if classes is None:
        if y.dtype.kind not in "iub" or (len(y) and not 0 <= y.min() <= y.max() < n_columns):
            raise ValueError(
                f"Labels must be integers from 0 to {n_columns - 1}, which index the columns of the probabilities, "
                "or 'classes' must name the class of each column."
            )
        return y.astype(np.int64)
    place = {label: number for number, label in enumerate(np.asarray(classes).tolist())}
    unknown = [label for label in np.unique(y).tolist() if label not in place]
    if unknown:
        raise ValueError(f"The label {unknown[0]!r} is not among the classes of the probabilities.")
    return np.array([place[label] for label in y.tolist()], dtype=np.int64)


def recolour(figure: Any, ink: str, paper: str) -> None:
    """Change the colour of text, ticks and frames of a figure; the data keep their colours."""
    figure.patch.set_alpha(0.0)
    titles = list(figure.texts)
    for ax in figure.axes:
        titles += [ax.title, ax.xaxis.label, ax.yaxis.label, ax.xaxis.offsetText, ax.yaxis.offsetText]
        titles += [] if ax.images else ax.texts  # text on an image has a colour that suits the image
        ax.tick_params(which="both", color=ink, labelcolor=ink)
        ax.patch.set_alpha(0.0)
        for spine in ax.spines.values():
            spine.set_edgecolor(ink)
        made = ax.get_legend()
        if made is not None:
            made.get_frame().set(facecolor=paper, edgecolor=ink)
            titles += made.get_texts()
    for text in titles:
        text.set_color(ink)
