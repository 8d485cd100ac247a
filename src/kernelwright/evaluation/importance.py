"""What the models of a cross-validation look at: columns permuted within the test rows of each fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelwright.inputs.permuting import columns_of, rows_of_table, tabular
from kernelwright.uncertainty.importance import Importance, effects_of_columns, rank_columns

__all__ = ["FoldImportance", "permuted_rows"]

MOST_ROWS = 2000  # of all folds together
MOST_PREDICTIONS = 6000  # of permuted rows, in a fold
MOST_REPEATS = 3
FEWEST_ROWS = 20  # of a fold; with fewer, columns are not compared


def permuted_rows(n_test: int, n_columns: int, n_folds: int) -> tuple[int, int]:
    """Return how many test rows of a fold are permuted, and how often; no rows if there are too many columns.

    Many rows permuted once say more than a few rows permuted often.

    Examples
    --------
    >>> from kernelwright.evaluation.importance import permuted_rows
    >>> permuted_rows(600, 10, 5), permuted_rows(600, 100, 5), permuted_rows(600, 1000, 5)
    ((400, 1), (60, 1), (0, 0))
    """
    affordable = MOST_PREDICTIONS // max(n_columns, 1)
    rows = min(n_test, MOST_ROWS // n_folds, affordable)
    if n_columns == 0 or rows < min(FEWEST_ROWS, n_test) or rows < 2:
        return 0, 0
    return rows, max(1, min(MOST_REPEATS, affordable // rows))


@dataclass
class FoldImportance:
    """Collects the effects of rows, fold by fold; ``measure`` names the loss.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation.importance import FoldImportance
    >>> X, random = np.random.default_rng(0).normal(size=(200, 2)), np.random.default_rng(1)
    >>> found = FoldImportance("absolute error", n_folds=2, random=random)
    >>> for rows in (X[:100], X[100:]):  # a model that has learned that y is the second column
    ...     found.add(lambda new, places, rows=rows: abs(new[:, 1] - rows[places, 1]), rows)
    >>> [(row.name, row.clear) for row in found.result().rows]
    [('x1', True), ('x0', False)]
    """

    measure: str
    n_folds: int
    random: np.random.Generator
    names: Sequence[str] = ()
    n_repeats: int = MOST_REPEATS
    effects: list[np.ndarray] = field(default_factory=list)
    base: list[np.ndarray] = field(default_factory=list)

    def add(self, losses: Callable[[Any, np.ndarray], np.ndarray], test: Any) -> None:
        """Permute each column within the test rows of a fold; ``losses`` takes rows and the places of their targets."""
        test = tabular(test)
        self.names = columns_of(test)
        n, repeats = permuted_rows(test.shape[0], len(self.names), self.n_folds)
        if n == 0:
            return
        chosen = self.random.permutation(test.shape[0])[:n]
        rows = rows_of_table(test, chosen)

        def of_chosen(permuted: Any, places: np.ndarray) -> np.ndarray:
            return losses(permuted, chosen[places])

        base = of_chosen(rows, np.arange(n))
        permutations = np.stack([self.random.permutation(n) for _ in range(repeats)])
        columns = range(len(self.names))
        self.effects.append(effects_of_columns(of_chosen, rows, permutations, columns=columns, base=base))
        self.base.append(base)
        self.n_repeats = min(self.n_repeats, repeats)

    def result(self) -> Importance | None:
        """Return the columns ranked by all folds together; None if nothing was permuted."""
        if not self.effects:
            return None
        base, effects = np.concatenate(self.base), np.concatenate(self.effects)
        return rank_columns(
            self.names, effects, measure=self.measure, base=float(base.mean()), n_repeats=self.n_repeats
        )
