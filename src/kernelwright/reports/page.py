"""A report page: one self-contained HTML file for light and dark screens of any size, and for print."""

from __future__ import annotations

import base64
import io
import pickle
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kernelwright.reports.drawing import recolour
from kernelwright.storage.files import write_whole

__all__ = [
    "Gallery",
    "Page",
    "PageTable",
    "Paragraph",
    "Picture",
    "Section",
    "Tile",
    "Tiles",
    "render_page",
    "write_whole",
]

DARK_INK, DARK_PAPER = "#d3d8df", "#16191e"  # as in templates/style.css


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
    def of(cls, figure: Any, caption: str, alternative: str, dpi: int = 170) -> Picture:
        """Draw a matplotlib figure for light and for dark pages; the figure itself is not changed."""
        with warnings.catch_warnings():  # characters that matplotlib's font lacks are shown in the page's tables
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            day = _png(figure, dpi)
            at_night = pickle.loads(pickle.dumps(figure))
            at_night.set_layout_engine("none")  # the layout is already computed
            recolour(at_night, DARK_INK, DARK_PAPER)
            return cls(day, caption, alternative, _png(at_night, dpi))

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


def _png(figure: Any, dpi: int) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


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


Block = Paragraph | PageTable | Gallery | Tiles


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
    """A title, blocks, and sections.

    Examples
    --------
    >>> from kernelwright.reports.page import Page, Paragraph
    >>> "<p>5 &lt; 6</p>" in Page("Numbers", [Paragraph("5 < 6")]).render()
    True
    """

    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence[Section] = field(default=())

    def render(self) -> str:
        """Return the page as HTML; every value is escaped."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("kernelwright.reports"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        return environment.get_template("page.html").render(page=self)


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
