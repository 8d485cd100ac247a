"""How good a classifier is class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelwright.evaluation.scores import Score, wilson

__all__ = ["ClassQuality", "class_quality", "never_right"]


@dataclass(frozen=True)
class ClassQuality:
    """How often one class is named, and how often rightly.

    Parameters
    ----------
    name : str
    rows : int
        Rows whose true class this is.
    named : int
        Rows for which it was predicted.
    right : int
        Rows for which it was predicted and true.
    """

    name: str
    rows: int
    named: int
    right: int

    @property
    def precision(self) -> Score | None:
        """Share of rows with this prediction that are of this class; None if it was never predicted."""
        return wilson(self.right, self.named) if self.named else None

    @property
    def recall(self) -> Score | None:
        """Share of rows of this class that were predicted; None if there are no such rows."""
        return wilson(self.right, self.rows) if self.rows else None


def class_quality(confusion: np.ndarray, classes: Sequence[str]) -> list[ClassQuality]:
    """Return how good each class is, from a confusion matrix with true classes down and predicted ones across.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import class_quality
    >>> yes = class_quality(np.array([[8, 2], [3, 1]]), ["no", "yes"])[1]
    >>> yes.rows, yes.named, yes.right, round(yes.precision.value, 3), yes.recall.value
    (4, 3, 1, 0.333, 0.25)
    """
    counts = zip(classes, confusion.sum(1), confusion.sum(0), np.diag(confusion), strict=True)
    return [ClassQuality(str(name), int(rows), int(named), int(right)) for name, rows, named, right in counts]


def never_right(found: Sequence[ClassQuality]) -> list[str]:
    """Say in a sentence for each class that has rows, but none that was predicted correctly.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import class_quality, never_right
    >>> never_right(class_quality(np.array([[8, 0], [4, 0]]), ["no", "yes"]))
    ['yes is never right: it was never predicted, although 4 of 12 rows are of this class.']
    """
    total = sum(each.rows for each in found)
    sentences = []
    for each in found:
        if each.rows == 0 or each.right:
            continue
        of = f"{each.rows:,} of {total:,} rows {'is' if each.rows == 1 else 'are'} of this class"
        how = f"predicted {each.named:,} times, each time wrongly" if each.named > 1 else "predicted once, and wrongly"
        sentences.append(
            f"{each.name} is never right: it was {how if each.named else 'never predicted'}, although {of}."
        )
    return sentences
