"""What an estimator looks at: the loss that is added when a column is permuted, and shares of the kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelwright.inputs.arrays import plain, random_numbers
from kernelwright.inputs.permuting import columns_of, rows_of_table, tabular
from kernelwright.uncertainty.importance import Importance, effects_of_columns, rank_columns

__all__ = ["MeasuresColumns", "importance_at", "kernel_shares", "places_of_columns", "rows_apart"]


class MeasuresColumns:
    """The method ``importance`` of estimators that predict whole distributions."""

    loss_measure: str  # "log loss" or "CRPS"
    losses_of_rows: Callable[[Any, np.ndarray], np.ndarray]
    _apart: tuple[Any, np.ndarray] | None = None  # rows that ``fit`` has held out, and their targets

    def importance(
        self,
        X: Any = None,
        y: Any = None,
        *,
        columns: Sequence[str | int] | None = None,
        n_repeats: int = 5,
        max_rows: int | None = 2000,
        random_state: Any = 0,
    ) -> Importance:
        """Measure how much worse new rows are predicted when a column is permuted; the record prints as a table.

        The loss is the log loss for classes, and the CRPS for numbers (several targets: the mean of their CRPS, each
        divided by the mean absolute deviation of the target). It is compared row by row, with the same permutations for
        all columns. An interval that covers zero says that the column does not help at new rows, however large its
        share of the kernel (:meth:`relevance`), which is shown beside it. If two columns carry the same information,
        each makes up for the other, and both have a small loss.

        Parameters
        ----------
        X, y : table and its targets, optional
            Rows that the model has not been fitted to; at rows of the fit, a column of noise would seem to help. By
            default, those that ``fit`` has held out for bounds (``holdout_share`` of the learning method).
        columns : sequence of str or int, optional
            Names or places of the columns to permute; by default, all.
        n_repeats : int, default=5
            Number of permutations.
        max_rows : int or None, default=2000
            Of more rows, a random sample is used.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        Importance
            With ``rows`` (``name``, ``loss``, ``low``, ``high`` and ``share``), sorted by the loss added.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kernelwright import EmbeddingClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = EmbeddingClassifier(random_state=0).fit(X[::2], y[::2])
        >>> found = model.importance(X[1::2], y[1::2])
        >>> found.measure, found.rows[0].name.startswith("petal"), found.rows[0].low > 0
        ('log loss', True, True)
        """
        check_is_fitted(self)
        X, y = self._unseen(X, y)
        found = importance_at(
            self.losses_of_rows,
            X,
            y,
            measure=self.loss_measure,
            columns=columns,
            n_repeats=n_repeats,
            max_rows=max_rows,
            random_state=random_state,
        )
        return found.with_shares(kernel_shares(self))

    def _unseen(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return given rows, or those that ``fit`` has held out."""
        if getattr(self, "kernel", None) == "precomputed":
            raise ValueError("A kernel matrix has no columns to permute. Fit a kernel on the table itself.")
        if (X is None) != (y is None):
            raise ValueError("The importance of columns needs both X and y.")
        if X is None:
            if self._apart is None:
                raise ValueError(
                    "The importance of columns needs rows that were not fitted: importance(X, y). Embeddings also use "
                    "rows that fit has held out, as with learn=learning.Auto(holdout_share=0.3). (A model file does "
                    "not keep them.)"
                )
            X, y = self._apart
        X, y = tabular(plain(X)), np.asarray(plain(y))
        if X.shape[0] != len(y):
            raise ValueError(f"X and y must have a row for each other. Got {X.shape[0]} and {len(y)} rows.")
        if len(y) < 2:
            raise ValueError("The importance of columns needs at least two rows: values are exchanged between them.")
        return X, y


def importance_at(
    losses_of_rows: Callable[[Any, np.ndarray], np.ndarray],
    X: Any,
    y: np.ndarray,
    *,
    measure: str,
    columns: Sequence[str | int] | None = None,
    n_repeats: int = 5,
    max_rows: int | None = 2000,
    random_state: Any = 0,
) -> Importance:
    """Permute columns among rows that the model has not been fitted to; ``losses_of_rows`` are those of X and y."""
    if n_repeats < 1 or (max_rows is not None and max_rows < 2):
        raise ValueError(f"The importance needs n_repeats >= 1 and max_rows >= 2. Got {n_repeats} and {max_rows}.")
    random = random_numbers(random_state)
    if max_rows is not None and len(y) > max_rows:
        some = np.sort(random.permutation(len(y))[:max_rows])
        X, y = rows_of_table(X, some), y[some]
    permutations = np.stack([random.permutation(len(y)) for _ in range(n_repeats)])
    names, places = columns_of(X), places_of_columns(X, columns)

    def losses(rows: Any, of: np.ndarray) -> np.ndarray:
        return losses_of_rows(rows, y[of])

    base = losses_of_rows(X, y)
    effects = effects_of_columns(losses, X, permutations, columns=places, base=base)
    chosen = [names[place] for place in places]
    return rank_columns(chosen, effects, measure=measure, base=float(base.mean()), n_repeats=n_repeats)


def rows_apart(X: Any, y: Any, kept: np.ndarray, held: np.ndarray) -> tuple[Any, np.ndarray] | None:
    """Return the rows that were held out, as they were given; ``held`` are indices of those that count."""
    if not len(held) or len(getattr(X, "shape", np.shape(X))) != 2:  # texts have no columns
        return None
    places = np.flatnonzero(kept)[held]
    return rows_of_table(tabular(plain(X)), places), np.asarray(plain(y))[places]


def places_of_columns(X: Any, columns: Sequence[str | int] | None) -> list[int]:
    """Return the places of columns, given by name or place; of all columns for None."""
    names = columns_of(X)
    if columns is None:
        return list(range(len(names)))
    known = {name: place for place, name in enumerate(names)} | {place: place for place in range(len(names))}
    if unknown := [column for column in columns if column not in known]:
        raise ValueError(f"There is no column {unknown[0]!r}. The columns are {names[:20]}.")
    return [known[column] for column in columns]


def kernel_shares(model: Any) -> dict[str, float]:
    """Return the share of the kernel of each column by name; empty if the kernel has no length scale for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # length scales at bounds are reported by ``relevance``
        try:
            return {row.name: float(row.share) for row in model.relevance().rows}
        except (AttributeError, ValueError):
            return {}
