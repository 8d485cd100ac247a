"""What the columns of a matrix of codes stand for."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.storage.saved import saved

__all__ = ["CodedColumn", "TableLayout"]


@saved("coded-column")
@dataclass(frozen=True)
class CodedColumn:
    """One column of a matrix of codes, in which NaN is a gap.

    Parameters
    ----------
    source : str
        The column of the user's table that it comes from.
    kind : {"number", "category", "date"}
        "number": the code is the number itself. "category": the code is an index into ``words``; any other code is a
        category that was never seen. "date": the code is the number of days since 1970, with the time as a fraction.
    words : tuple of str
        The categories; in order, if ``ordered``.
    ordered : bool
        Whether the categories have an order that matters.
    """

    source: str
    kind: str = "number"
    words: tuple[str, ...] = ()
    ordered: bool = False


@saved("table-layout")
@dataclass(frozen=True)
class TableLayout:
    """The columns of a matrix of codes, in order."""

    columns: tuple[CodedColumn, ...]

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def of_numbers(cls, n_columns: int) -> TableLayout:
        """Return the layout of a plain array."""
        return cls(tuple(CodedColumn(f"x{d}") for d in range(n_columns)))

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the user's table, in order, each once."""
        return tuple(dict.fromkeys(column.source for column in self.columns))
