"""Test whether new rows are like the rows that a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import kolmogorov
from scipy.stats import betabinom, chi2_contingency

from kernelwright.inputs.frames.preparing import Finding
from kernelwright.inputs.frames.table import some_of
from kernelwright.tables.quantities import TrainingNumbers

__all__ = [
    "FREQUENCIES",
    "TARGETS",
    "Drift",
    "TargetDrift",
    "class_drift",
    "find_drift",
    "joined_drift",
    "number_drift",
]

USUAL = 0.01  # share of rows from the training distribution whose support is below 1
SURE = 0.01  # p-value below which more of them are called drift
NOWHERE = 0.1  # support below which a row is unlike all training rows, whatever the other rows are
FEWEST = 5  # rows of a class, in both tables together, below which it is tested together with other such classes
FREQUENCIES = "the predicted probabilities are little more than the class frequencies"
TARGETS = "the prediction is little more than the distribution of all training targets"


@dataclass(frozen=True)
class Drift:
    """How far new rows lie from the training rows.

    Parameters
    ----------
    rows : int
        Number of new rows.
    below : int
        Number of rows with less support than 99 % of the training rows had from the others.
    p_value : float
        Probability of so many if the new rows come from the training distribution. The threshold is a quantile of
        finitely many training rows, so the share below it is not exactly 1 %: the share has a beta distribution,
        and the count a beta-binomial one.
    nowhere : tuple of int
        Row numbers of the rows with almost no support (below 0.1).
    worst : tuple of (int, float)
        Row numbers and supports of the least supported rows below 1.
    findings : tuple of Finding
        New categories, missing values, numbers out of range.
    row_word : {"row", "line"}
    nowhere_known : str
        What is predicted where there is almost no support, in words.
    """

    rows: int
    below: int
    p_value: float
    worst: tuple[tuple[int, float], ...]
    findings: tuple[Finding, ...]
    row_word: str = "row"
    nowhere: tuple[int, ...] = ()
    nowhere_known: str = FREQUENCIES

    @property
    def found(self) -> bool:
        """Whether more rows have little support than chance explains."""
        return self.p_value < SURE

    def sentences(self) -> list[str]:
        """Explain the result in plain words."""
        percent = 100 * self.below / self.rows
        share = f"{self.below} of {self.rows} rows ({percent:.1f} %) lie where the model has little support"
        if self.found:
            places = some_of([row for row, _ in self.worst], 10)
            return [
                f"Drift: {share}; about 1 % is usual for rows like the training rows (p-value: {self.p_value:.1g}).",
                "These rows differ from the training rows, so the model can only guess there. Least "
                f"supported: {self.row_word}{'s' if len(self.worst) > 1 else ''} {places}.",
            ]
        if self.nowhere:
            many = len(self.nowhere) > 1
            return [
                f"{len(self.nowhere)} of {self.rows} rows {'are' if many else 'is'} unlike all training rows "
                f"({self.row_word}{'s' * many} {some_of(self.nowhere, 10)}): there {self.nowhere_known}."
            ]
        return [f"No drift: {share}, and about 1 % is usual."]

    def summary(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return asdict(self) | {"found": self.found, "share": self.below / self.rows}


def find_drift(
    support: np.ndarray,
    findings: Sequence[Finding],
    *,
    rows: np.ndarray,
    row_word: str = "row",
    n_support_rows: int = 10**6,
    nowhere_known: str = FREQUENCIES,
) -> Drift:
    """Count the rows with little support, and test whether there are more than chance explains.

    ``n_support_rows`` is the number of training rows that define the unit of the support.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.tables.drift import find_drift
    >>> drift = find_drift(np.array([3.0, 0.1, 2.0, 0.2, 0.0]), [], rows=np.arange(2, 7), row_word="line")
    >>> drift.found, [row for row, _ in drift.worst]
    (True, [6, 3, 5])
    """
    below = int((support < 1).sum())
    p_value = _chance_of(below, len(support), n_support_rows)
    nowhere = tuple(int(row) for row in rows[support < NOWHERE])
    order = np.argsort(support, kind="stable")[: min(below, 10)]
    worst = tuple((int(rows[k]), float(support[k])) for k in order)
    return Drift(len(support), below, p_value, worst, tuple(findings), row_word, nowhere, nowhere_known)


def _chance_of(below: int, n: int, n_support_rows: int) -> float:
    """Return the probability that so many of n rows have little support if they are like the training rows."""
    rank = max(1, int(np.ceil(USUAL * n_support_rows)))
    return float(betabinom.sf(below - 1, n, rank, n_support_rows + 1 - rank))


def joined_drift(parts: Sequence[Drift], n_support_rows: int = 10**6) -> Drift:
    """Return the drift of a table from that of its parts.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.tables.drift import find_drift, joined_drift
    >>> support, rows = np.array([3.0, 0.1, 2.0, 0.2, 0.0]), np.arange(5)
    >>> parts = [find_drift(support[:2], [], rows=rows[:2]), find_drift(support[2:], [], rows=rows[2:])]
    >>> joined_drift(parts) == find_drift(support, [], rows=rows)
    True
    """
    first = parts[0]
    n, below = sum(part.rows for part in parts), sum(part.below for part in parts)
    worst = sorted((each for part in parts for each in part.worst), key=lambda each: each[1])[:10]
    findings: dict[tuple[str, str], Finding] = {}
    for each in (each for part in parts for each in part.findings):
        before = findings.get((each.column, each.what))
        joined = each if before is None else replace(before, count=before.count + each.count)
        findings[each.column, each.what] = joined
    return replace(
        first,
        rows=n,
        below=below,
        p_value=_chance_of(below, n, n_support_rows),
        worst=tuple(worst),
        nowhere=tuple(row for part in parts for row in part.nowhere),
        findings=tuple(findings.values()),
    )


@dataclass(frozen=True)
class TargetDrift:
    """Whether the targets of new rows are distributed like the training targets.

    Parameters
    ----------
    p_value : float
        Probability of a difference at least as large if both tables come from the same distribution.
    change : str
        The largest difference, in words.
    beyond : int
        Number of targets outside the range of the training targets.
    """

    p_value: float
    change: str
    beyond: int = 0

    @property
    def found(self) -> bool:
        """Whether the difference is larger than chance explains."""
        return self.p_value < SURE

    def sentences(self) -> list[str]:
        """Explain the result in plain words."""
        outside = f"{self.beyond} target{'s' if self.beyond > 1 else ''} outside the range of the training targets."
        said = [outside] if self.beyond else []
        if self.found:
            return [f"Drift of the target (p-value: {self.p_value:.1g}): {self.change}.", *said]
        return [f"No drift of the target (p-value: {self.p_value:.2g}).", *said]

    def summary(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return asdict(self) | {"found": self.found}


def number_drift(trained: TrainingNumbers, y: np.ndarray) -> TargetDrift:
    """Compare the distribution of numbers with that of the training numbers by the test of Kolmogorov and Smirnov.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.tables import Notation, TrainingNumbers
    >>> from kernelwright.tables.drift import number_drift
    >>> trained = TrainingNumbers.of(np.arange(100.0), Notation())
    >>> number_drift(trained, np.arange(0.0, 100, 3)).found, number_drift(trained, np.arange(50.0, 99)).found
    (False, True)
    """
    kept, new = trained.values, np.sort(y)
    points = np.union1d(kept, new)
    shares = [np.searchsorted(values, points, side="right") / len(values) for values in (kept, new)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    rows = trained.rows * len(y) / (trained.rows + len(y))
    middles = [float(np.median(values)) for values in (kept, y)]
    change = f"the median is {middles[1]:.4g}, and was {middles[0]:.4g} in training"
    beyond = int(((y < trained.low) | (y > trained.high)).sum())
    return TargetDrift(float(kolmogorov(np.sqrt(rows) * distance)), change, beyond)


def class_drift(counts: Sequence[int], labels: np.ndarray, classes: Sequence[str]) -> TargetDrift:
    """Compare class frequencies with those of the training table by a chi-squared test; rare classes are joined."""
    both = np.array([counts, np.bincount(labels, minlength=len(counts))], dtype=np.float64)
    shares = both / both.sum(1, keepdims=True)
    k = int(np.abs(shares[1] - shares[0]).argmax())
    change = f"{classes[k]!r} is {100 * shares[1, k]:.1f} % of the rows, and was {100 * shares[0, k]:.1f} % in training"
    rare = both.sum(0) < FEWEST
    joined = np.column_stack([both[:, ~rare], both[:, rare].sum(1)])
    joined = joined[:, joined.sum(0) > 0]
    if joined.shape[1] < 2:
        return TargetDrift(1.0, change)
    return TargetDrift(float(chi2_contingency(joined).pvalue), change)
