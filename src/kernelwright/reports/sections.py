"""Sections that all reports have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.errors import NumericalError
from kernelwright.reports.formatting import column_range, record_rows
from kernelwright.reports.page import Block, Gallery, PageTable, Paragraph, Picture, Section
from kernelwright.tables import Column
from kernelwright.tables.leaks import LEAK

__all__ = ["SectionLeftOut", "columns_section", "note_blocks", "one_picture", "section_or_sentence", "settings_section"]

MOST_COLUMNS = 200


class SectionLeftOut(Exception):
    """A section cannot be made; the sentence says why."""


def section_or_sentence(title: str, make: Callable[[], Sequence[Block]]) -> Section:
    """A section, or in its place a sentence: a page with a gap is better than none."""
    try:
        return Section(title, make())
    except SectionLeftOut as reason:
        return Section(title, [Paragraph(str(reason))])
    except (ValueError, NumericalError, MemoryError) as error:  # sentences about what a model of this kind has not
        return Section(title, [Paragraph(f"This section cannot be made for this model. {error}")])


def one_picture(figure: Any, caption: str, alternative: str) -> Gallery:
    """A matplotlib figure by itself."""
    return Gallery([Picture.of(figure, caption, alternative)])


def note_blocks(notes: Sequence[str]) -> list[Block]:
    """What was noticed about the training table."""
    return [Paragraph(f"Note: {text}", quiet=not text.startswith(LEAK)) for text in notes]


def columns_section(columns: Sequence[Column]) -> list[Block]:
    """What each column is, and what was done to it."""
    used = sum(column.used for column in columns)
    rows = [
        (
            column.name,
            column.kind,
            column.treatment,
            f"{column.missing:,}",
            f"{column.distinct:,}" if column.distinct else "",
            column_range(column),
        )
        for column in columns[:MOST_COLUMNS]
    ]
    text = f"{used} of {len(columns)} columns are used."
    if len(columns) > MOST_COLUMNS:
        text += f" The first {MOST_COLUMNS} are listed."
    header = ("column", "kind", "what is done to it", "missing", "different values", "range")
    return [Paragraph(text), PageTable("Columns of the training table", header, rows, "lllrrl")]


def settings_section(settings: Mapping[str, Any], versions: Mapping[str, str]) -> list[Block]:
    """How to make the same model again."""
    blocks: list[Block] = [
        PageTable("Settings, and numbers that were learned", ("setting", "value"), record_rows(settings), "ll")
    ]
    if versions:
        blocks.append(PageTable("Versions", ("library", "version"), list(versions.items()), "ll"))
    return blocks
