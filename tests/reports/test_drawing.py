import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from kernelwright.reports.drawing import ACCENT, CLASS_COLOURS, GREEN, GREY, WARM, legend, plain, recolour
from tests.reports.models import LONG, NASTY


def luminance(colour):
    """Compute the relative luminance as in the accessibility guidelines of the W3C."""
    c = np.array(to_rgb(colour))
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", [ACCENT, WARM, GREEN, GREY, *CLASS_COLOURS])
@pytest.mark.parametrize("paper", ["#ffffff", "#16191e"])
def test_lines_can_be_seen_on_light_and_dark_pages(colour, paper):
    assert contrast(colour, paper) >= 3.0


@pytest.mark.parametrize("name", [*NASTY, "$\\undefined$", "$", "$$", "a $b$ c $d", "\\$5", "\x00\x1b[0m", ""])
def test_any_name_can_be_drawn_and_is_no_formula(name):
    figure = Figure(figsize=(3, 2), layout="constrained")
    ax = figure.subplots()
    ax.set_title(plain(name, 60))
    ax.set_yticks([0], [plain(name)])
    figure.canvas.draw()
    text, is_formula = ax.title._preprocess_math(ax.title.get_text())
    assert not is_formula
    visible = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    assert text == (visible or "(blank)")


def test_a_long_name_is_cut():
    assert len(plain(LONG)) == 28
    assert plain(LONG).startswith(LONG[:18])
    assert plain(LONG + "_end").endswith("_end")


def test_a_legend_shows_names_that_begin_with_an_underscore():
    ax = Figure().subplots()
    lines = [ax.plot([0, 1])[0] for _ in range(2)]
    made = legend(ax, lines, ["_a", "$b$"])
    assert [text.get_text() for text in made.get_texts()] == ["_a", r"\$b\$"]


def test_recolouring_leaves_the_data_alone():
    figure = Figure()
    plot, image = figure.subplots(1, 2)
    (line,) = plot.plot([0, 1], color=ACCENT)
    plot.set_title("title")
    plot.text(0, 0, "beside")
    image.imshow(np.eye(2))
    image.text(0, 0, "on top", color="white")
    recolour(figure, "#abcdef", "#000000")
    assert line.get_color() == ACCENT
    assert image.texts[0].get_color() == "white"
    assert plot.texts[0].get_color() == plot.title.get_color() == "#abcdef"
    assert plot.get_xticklabels()[0].get_color() == "#abcdef"
