"""Some rows of a table, kept for reports: telling ones by name, and a random sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.evaluation.cross_validation import Evaluation
from kernelwright.evaluation.numbers import NumberEvaluation
from kernelwright.storage.saved import saved

__all__ = ["TELLING", "ExampleRows", "telling_rows"]

TELLING = ("wrong", "uncertain", "typical")
EACH = 4  # rows of each of these
MOST = 300  # rows that are kept


@saved("example-rows")
@dataclass(frozen=True)
class ExampleRows:
    """Rows of a table in the form in which a model takes them.

    Parameters
    ----------
    columns : dict of str to ndarray or tuple
        Cells by column: numbers, with NaN for a gap, or words, with None.
    rows : ndarray of int
        Row numbers in the table.
    row_word : {"row", "line"}
        The unit of ``rows``.
    targets : ndarray
        Indices of classes, or numbers.
    why : tuple of str
        What is telling about a row: "wrong", "uncertain", "typical", or "" for one of the random sample. Telling rows
        come first.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kernelwright.tables import ExampleRows
    >>> frame = pd.DataFrame({"size": [1.0, 2.0], "town": ["Ulm", None]})
    >>> found = ExampleRows.of(frame, np.array([0, 1]), np.array([2, 3]), "line")
    >>> found.frame().sort_values("size")["town"].tolist()
    ['Ulm', nan]
    """

    columns: Mapping[str, Any]
    rows: np.ndarray
    row_word: str
    targets: np.ndarray
    why: tuple[str, ...]

    @classmethod
    def of(
        cls, frame: Any, targets: np.ndarray, rows: np.ndarray, row_word: str = "row", evaluation: Any = None
    ) -> ExampleRows:
        """Choose rows of a prepared frame: telling ones if there is an evaluation of them, then random ones.

        ``rows`` are the row numbers, by which the rows of the evaluation are found.
        """
        random = np.random.default_rng(0)
        place = {number: k for k, number in enumerate(np.asarray(rows).tolist())}
        chosen: dict[int, str] = {}
        if evaluation is not None:
            for word, which in telling_rows(evaluation).items():
                chosen |= {place[number]: word for number in evaluation.rows[which].tolist() if number in place}
        for k in random.permutation(len(frame)).tolist():
            if len(chosen) >= min(MOST, len(frame)):
                break
            chosen.setdefault(k, "")
        places = np.array(list(chosen), dtype=np.int64)
        cells = {str(name): _cells(frame[name].iloc[places]) for name in frame.columns}
        return cls(cells, np.asarray(rows)[places], row_word, np.asarray(targets)[places], tuple(chosen.values()))

    def __len__(self) -> int:
        return len(self.rows)

    def frame(self) -> Any:
        """Return the rows as a data frame."""
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Series([np.nan if word is None else word for word in cells], dtype=object)
                if isinstance(cells, tuple)
                else cells
                for name, cells in self.columns.items()
            }
        )


def _cells(column: Any) -> np.ndarray | tuple[str | None, ...]:
    if column.dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64)
    return tuple(None if gap else str(word) for word, gap in zip(column, column.isna(), strict=True))


def telling_rows(evaluation: Evaluation | NumberEvaluation) -> dict[str, np.ndarray]:
    """Return places of rows with a large loss, of uncertain rows, and of typical ones, by these words.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import Evaluation
    >>> from kernelwright.tables import telling_rows
    >>> p = np.array([[0.99, 0.01]] * 9 + [[0.6, 0.4]] * 4 + [[0.98, 0.02]] * 4)
    >>> labels = np.r_[np.zeros(13, dtype=int), np.ones(4, dtype=int)]
    >>> found = telling_rows(Evaluation.of(p, labels, classes=("no", "yes"), protocol="by hand"))
    >>> found["wrong"].tolist(), found["uncertain"].tolist(), found["typical"].tolist()
    ([13, 14, 15, 16], [9, 10, 11, 12], [8, 7, 5, 4])
    """
    if isinstance(evaluation, Evaluation):
        p = evaluation.probabilities
        uncertainty, loss = 1.0 - p.max(1), -p[np.arange(len(p)), evaluation.labels]
        wrong = np.flatnonzero(p.argmax(1) != evaluation.labels)
    else:
        found = evaluation.predictions
        uncertainty, loss = found.high - found.low, found.crps
        wrong = np.arange(len(loss))
    worst = wrong[np.argsort(-loss[wrong], kind="stable")[:EACH]]
    order = np.argsort(-uncertainty, kind="stable")
    left = order[~np.isin(order, worst)]
    unsure, rest = left[:EACH], left[EACH:][::-1]
    typical = rest[np.unique(np.linspace(0, 0.6 * max(len(rest) - 1, 0), EACH).astype(int))] if len(rest) else rest
    return dict(zip(TELLING, (worst, unsure, typical), strict=True))
