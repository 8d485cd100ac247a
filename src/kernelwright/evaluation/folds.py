"""Divide rows into training and test rows: at random, by whole groups, or forward in time."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit

__all__ = ["Split", "forward_folds", "grouped_folds", "number_folds", "stratified_folds"]

FEWEST = 4  # rows from which on half of them can be left out

Split = tuple[np.ndarray, np.ndarray]  # indices of training rows and of test rows


def stratified_folds(labels: np.ndarray, folds: int = 5, *, seed: int = 0) -> list[Split]:
    """Return the indices of training and test rows of stratified folds; fewer folds if a class is smaller.

    A fold whose training rows would all be of one class is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import stratified_folds
    >>> len(stratified_folds(np.array([0, 0, 0, 1, 1, 1, 1]), 5))
    3
    """
    counts = np.bincount(labels)
    if counts.max() < 2:
        raise ValueError("Cross-validation needs a class with at least two rows. Got one row in each class.")
    smallest = counts[counts > 1].min()  # a class of one row cannot be in two folds anyway
    folds = max(2, min(folds, int(smallest)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of one row is tested without being in the training rows
        found = StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels[:, None], labels)
        return _of_two_classes(list(found), labels)


def number_folds(n: int, folds: int = 5, *, seed: int = 0) -> list[Split]:
    """Return the indices of training and test rows of random folds; fewer folds if there are few rows.

    Examples
    --------
    >>> from kernelwright.evaluation import number_folds
    >>> len(number_folds(100, 5)), len(number_folds(6, 5))
    (5, 3)
    """
    if n < FEWEST:
        raise ValueError(f"Cross-validation needs at least {FEWEST} rows. Got {n}. Use --no-cv, or more rows.")
    found = KFold(min(folds, n // 2), shuffle=True, random_state=seed).split(np.zeros(n))
    return list(found)


def grouped_folds(
    groups: np.ndarray, folds: int = 5, *, labels: np.ndarray | None = None, seed: int = 0
) -> list[Split]:
    """Return folds that keep the rows of a group together; with labels, of about the same share of each class.

    There are fewer folds if there are few groups, or few groups with rows of a class. A fold whose training rows would
    all be of one class is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import grouped_folds
    >>> groups = np.repeat(np.arange(6), 2)
    >>> all(not set(groups[train]) & set(groups[test]) for train, test in grouped_folds(groups, 3))
    True
    """
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)
    n_groups = int(number.max()) + 1
    if n_groups < 2:
        raise ValueError("Cross-validation by groups needs at least two groups. Got one. Use --no-cv, or more groups.")
    folds = min(folds, n_groups)
    if labels is None:
        return list(GroupKFold(folds).split(number[:, None], groups=number))
    with_class = np.array([len(np.unique(number[labels == k])) for k in np.unique(labels)])
    folds = min(folds, max(2, int(with_class[with_class > 1].min(initial=folds))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # as for a class of one row, one in a single group is tested too
        found = StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(number[:, None], labels, number)
        kept = _of_two_classes([(train, test) for train, test in found if len(test)], labels)
    if not kept:
        raise ValueError("Without any one of the folds of groups, one class is left to learn from. Use --no-cv.")
    return kept


def forward_folds(times: np.ndarray, folds: int = 5, *, labels: np.ndarray | None = None) -> list[Split]:
    """Return folds that go forward in time: every test row is later than all training rows, which become more.

    The rows of the first window are never tested. Equal times stay together. There are fewer folds if there are few
    different times; with labels, a fold whose training rows would all be of one class is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.evaluation import forward_folds
    >>> [(train.tolist(), test.tolist()) for train, test in forward_folds(np.array([3.0, 1.0, 1.0, 2.0, 4.0, 5.0]), 2)]
    [([1, 2], [0, 3]), ([0, 1, 2, 3], [4, 5])]
    """
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    if (n_times := len(np.unique(times))) < 3 or len(times) < FEWEST:
        raise ValueError(
            f"Validation in the order of time needs at least three different times and {FEWEST} rows. Got {n_times} "
            f"times in {len(times)} rows. Use --no-cv, or another column."
        )
    windows = [test[0] for _, test in TimeSeriesSplit(min(folds, n_times - 1)).split(ordered)]
    starts = np.unique(np.searchsorted(ordered, ordered[windows]))  # equal times are in the later window
    starts = starts[starts > 1]  # one row is too few to learn from
    ends = np.append(starts[1:], len(times))
    found = [(np.sort(order[:start]), np.sort(order[start:end])) for start, end in zip(starts, ends, strict=True)]
    if labels is not None:
        found = _of_two_classes(found, labels)
    if len(found) < (2 if labels is None else 1):
        raise ValueError(
            "Validation in the order of time has too few windows: most rows have the same time, or only one class "
            "comes before the last window. Use --no-cv, or another column."
        )
    return found


def _of_two_classes(splits: list[Split], labels: np.ndarray) -> list[Split]:
    """Return the folds whose training rows are of more than one class."""
    return [(train, test) for train, test in splits if len(np.unique(labels[train])) > 1]
