"""Sections that all reports share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.errors import NumericalError
from kernelwright.inputs.frames.columns import columns_summary
from kernelwright.reports.formatting import column_range, record_rows
from kernelwright.reports.page import Block, Gallery, PageTable, Paragraph, Picture, Section
from kernelwright.tables import Column
from kernelwright.tables.leaks import LEAK

__all__ = [
    "SectionLeftOut",
    "columns_section",
    "note_blocks",
    "one_picture",
    "section_or_sentence",
    "sections_of",
    "settings_section",
]

MOST_COLUMNS = 200


class SectionLeftOut(Exception):
    """Raised if a section cannot be made; the message says why."""


def section_or_sentence(title: str, make: Callable[[], Sequence[Block]]) -> Section:
    """Make a section, or a sentence in its place: an incomplete page is better than none."""
    try:
        return Section(title, make())
    except SectionLeftOut as reason:
        return Section(title, [Paragraph(str(reason))])
    except (ValueError, NumericalError, MemoryError) as error:  # the message says what this kind of model lacks
        return Section(title, [Paragraph(f"This section cannot be made for this model. {error}")])


def sections_of(makers: Mapping[str, Callable[[], Sequence[Block]]]) -> list[Section]:
    """Make sections by title, each with a sentence in its place if it cannot be made."""
    return [section_or_sentence(title, make) for title, make in makers.items()]


def one_picture(figure: Any, caption: str, alternative: str) -> Gallery:
    """Show a single matplotlib figure."""
    return Gallery([Picture.of(figure, caption, alternative)])


def note_blocks(notes: Sequence[str]) -> list[Block]:
    """Show the notes about the training table."""
    return [Paragraph(f"Note: {text}", quiet=not text.startswith(LEAK)) for text in notes]


def columns_section(columns: Sequence[Column]) -> list[Block]:
    """Show the kind and the treatment of each column."""
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
    text = f"{used} of {len(columns)} columns are used: {columns_summary(columns)}."
    if len(columns) > MOST_COLUMNS:
        text += f" The first {MOST_COLUMNS} are listed."
    header = ("column", "kind", "treatment", "missing", "different values", "range")
    return [Paragraph(text), PageTable("Columns of the training table", header, rows, "lllrrl")]


def settings_section(settings: Mapping[str, Any], versions: Mapping[str, str]) -> list[Block]:
    """Show the settings and versions that reproduce the model."""
    blocks: list[Block] = [PageTable("Settings and learned values", ("setting", "value"), record_rows(settings), "ll")]
    if versions:
        blocks.append(PageTable("Versions", ("library", "version"), list(versions.items()), "ll"))
    return blocks
