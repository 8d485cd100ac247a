"""A report page: one self-contained HTML file for light and dark screens of any size, and for print."""

from __future__ import annotations

import base64
import hashlib
import io
import pickle
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, ClassVar

from kernelwright.reports.drawing import recolour
from kernelwright.storage.files import write_whole

__all__ = [
    "Bar",
    "Bars",
    "Gallery",
    "Page",
    "PageTable",
    "Panel",
    "Paragraph",
    "Picture",
    "Section",
    "Tile",
    "Tiles",
    "render_page",
    "write_whole",
]

DARK_INK, DARK_PAPER = "#d3d8df", "#16191e"  # as in templates/style.css
DPI = 110
COLOURS = 128
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Picture:
    """A figure as PNG bytes, for light and for dark pages, with alternative text.

    PNG and not SVG: names from a user's file are then only pixels, in every viewer.
    """

    png: bytes
    caption: str
    alternative: str
    dark: bytes = b""

    @classmethod
    def of(cls, figure: Any, caption: str, alternative: str, dpi: int = DPI) -> Picture:
        """Draw a matplotlib figure for light and for dark pages; the figure itself is not changed."""
        with warnings.catch_warnings():  # characters that matplotlib's font lacks are shown in the page's tables
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            day = _png(figure, dpi, "white")
            at_night = pickle.loads(pickle.dumps(figure))
            at_night.set_layout_engine("none")  # the layout is already computed
            recolour(at_night, DARK_INK, DARK_PAPER)
            return cls(day, caption, alternative, _png(at_night, dpi, DARK_PAPER))

    @property
    def base64(self) -> str:
        """The bytes in base64."""
        return base64.b64encode(self.png).decode()

    @property
    def dark_base64(self) -> str:
        """The bytes for dark pages in base64; empty if there are none."""
        return base64.b64encode(self.dark).decode()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, from the PNG header, so that a browser can reserve the space."""
        return int.from_bytes(self.png[16:20], "big"), int.from_bytes(self.png[20:24], "big")


def _png(figure: Any, dpi: int, paper: str) -> bytes:
    """Draw a figure on paper of a colour, in at most 256 colours, which take a third of the room."""
    from PIL import Image  # a dependency of matplotlib

    whole, small = io.BytesIO(), io.BytesIO()
    figure.savefig(whole, format="png", dpi=dpi)
    drawn = Image.open(whole).convert("RGBA")
    drawn = Image.alpha_composite(Image.new("RGBA", drawn.size, paper), drawn).convert("RGB")
    drawn.quantize(COLOURS, method=Image.Quantize.MEDIANCUT).save(small, format="png", optimize=True)
    return small.getvalue()


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; if ``quiet``, in smaller print."""

    text: str
    quiet: bool = False
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class PageTable:
    """Rows under a header. ``align`` has a letter for each column: "l", "r" or "w" (words); the last one repeats."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str = "lr"
    kind: ClassVar[str] = "table"

    def side(self, column: int) -> str:
        """Return the alignment letter of a column."""
        return self.align[min(column, len(self.align) - 1)]


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side if there is room."""

    pictures: Sequence[Picture]
    kind: ClassVar[str] = "gallery"


@dataclass(frozen=True)
class Tile:
    """A key figure."""

    value: str
    name: str
    detail: str = ""


@dataclass(frozen=True)
class Tiles:
    """Key figures in a row."""

    tiles: Sequence[Tile]
    kind: ClassVar[str] = "tiles"


@dataclass(frozen=True)
class Bar:
    """A value with its interval, as shares of the width of the plot from 0 to 1, and in words."""

    name: str
    value: float
    low: float
    high: float
    words: str
    ours: bool = False

    def mark(self, share: float) -> str:
        """Return a share as a coordinate of the plot."""
        return f"{100 * min(max(share, 0.0), 1.0):.2f}"


@dataclass(frozen=True)
class Bars:
    """Values side by side, the model's own in another colour; drawn by the browser, at any width."""

    caption: str
    bars: Sequence[Bar]
    kind: ClassVar[str] = "bars"

    @classmethod
    def of(
        cls,
        caption: str,
        scores: Mapping[str, tuple[float, float, float]],
        words: Mapping[str, str],
        *,
        ours: str = "",
        largest: float | None = None,
    ) -> Bars:
        """Scale values with intervals (value, low, high) to a plot from zero to the largest end, or to ``largest``.

        ``ours`` names the model's own value.
        """
        end = largest or max([high for _, _, high in scores.values() if 0 < high < float("inf")], default=1.0)
        return cls(
            caption,
            [
                Bar(name, value / end, low / end, high / end, words[name], name == ours)
                for name, (value, low, high) in scores.items()
            ],
        )


@dataclass(frozen=True)
class Panel:
    """A panel that a script builds from data in JSON; ``still`` is shown also where scripts do not run."""

    data: str
    still: PageTable
    kind: ClassVar[str] = "panel"


Block = Paragraph | PageTable | Gallery | Tiles | Bars | Panel


@dataclass(frozen=True)
class Section:
    """A heading and the blocks under it."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """The name of the section in links."""
        return "-".join("".join(letter if letter.isalnum() else " " for letter in self.title.lower()).split())


@dataclass(frozen=True)
class Page:
    """A title, blocks, sections, and sections behind a fold.

    Examples
    --------
    >>> from kernelwright.reports.page import Page, Paragraph
    >>> "<p>5 &lt; 6</p>" in Page("Numbers", [Paragraph("5 < 6")]).render()
    True
    """

    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence[Section] = field(default=())
    specialists: Sequence[Section] = field(default=())

    @property
    def script(self) -> str:
        """The script of the page; empty unless there is a panel."""
        panels = any(block.kind == "panel" for section in self.sections for block in section.blocks)
        return files("kernelwright.reports").joinpath("templates", "what_if.js").read_text("utf-8") if panels else ""

    @property
    def policy(self) -> str:
        """The content security policy: nothing is loaded, and no script runs but that of the page, by its hash."""
        if not self.script:
            return POLICY
        digest = base64.b64encode(hashlib.sha256(self.script.encode()).digest()).decode()
        return f"{POLICY}; script-src 'sha256-{digest}'"

    def render(self) -> str:
        """Return the page as HTML; every value is escaped."""
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup

        environment = Environment(
            loader=PackageLoader("kernelwright.reports"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        return environment.get_template("page.html").render(page=self, script=Markup(self.script))


def render_page(
    title: str, paragraphs: Sequence[str], rows: Sequence[Mapping[str, Any]], pictures: Sequence[Picture]
) -> str:
    """Render a page of paragraphs, one table and pictures as HTML.

    Examples
    --------
    >>> from kernelwright.reports import render_page
    >>> page = render_page("Scores", ["Higher is better."], [{"method": "ours", "data": "iris", "accuracy": 0.95}], [])
    >>> "<h1>Scores</h1>" in page
    True
    """
    header = list(rows[0]) if rows else []
    blocks: list[Block] = [Paragraph(text) for text in paragraphs]
    if rows:
        blocks.append(PageTable("", header, [[str(row[name]) for name in header] for row in rows], "llr"))
    if pictures:
        blocks.append(Gallery(list(pictures)))
    return Page(title, blocks).render()
