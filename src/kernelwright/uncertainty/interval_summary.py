"""How often intervals hold the targets of new rows, and how wide they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta as binomial_tail

__all__ = ["IntervalSummary"]


@dataclass(frozen=True)
class IntervalSummary:
    """Coverage and width of intervals: over all rows first, then for each group.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelwright.uncertainty.interval_summary import IntervalSummary
    >>> limits = np.array([[0.0, 2.0]] * 4)
    >>> print(IntervalSummary.of(limits, np.array([1.0, 1.0, 1.0, 3.0]), np.array([0, 0, 1, 1]), ["a", "b"]))
    rows                    number  coverage   95 % interval   mean width
    all rows                     4     0.750  0.194 to 0.994            2
    a                            2     1.000  0.158 to 1.000            2
    b                            2     0.500  0.013 to 0.987            2
    """

    names: tuple[str, ...]
    n_rows: np.ndarray
    coverage: np.ndarray
    limits: np.ndarray  # of the coverage: exact binomial 95 % intervals
    width: np.ndarray  # mean

    @classmethod
    def of(cls, limits: np.ndarray, y: np.ndarray, groups: np.ndarray, names: list[str]) -> IntervalSummary:
        """Count targets inside their intervals; the group of a row is its index in ``names``."""
        inside, width = (limits[:, 0] <= y) & (y <= limits[:, 1]), limits[:, 1] - limits[:, 0]
        chosen = [np.ones(len(y), dtype=bool)]
        if len(names) > 1:
            chosen += [groups == group for group in range(len(names))]
        n, k = (np.array([int(each[rows].sum()) for rows in chosen]) for each in (np.ones(len(y)), inside))
        lower = np.where(k > 0, binomial_tail.ppf(0.025, np.maximum(k, 1), n - k + 1), 0.0)
        upper = np.where(k < n, binomial_tail.ppf(0.975, k + 1, np.maximum(n - k, 1)), 1.0)
        shares = np.array([inside[rows].mean() if rows.any() else np.nan for rows in chosen])
        widths = np.array([width[rows].mean() if rows.any() else np.nan for rows in chosen])
        every = ("all rows", *names) if len(names) > 1 else ("all rows",)
        return cls(every, n, shares, np.column_stack([lower, upper]), widths)

    def __str__(self) -> str:
        lines = ["rows                    number  coverage   95 % interval   mean width"]
        for name, n, share, (low, high), width in zip(
            self.names, self.n_rows, self.coverage, self.limits, self.width, strict=True
        ):
            lines.append(f"{name[:22]:<22} {n:>7} {share:>9.3f}  {low:.3f} to {high:.3f} {width:>12.4g}")
        return "\n".join(lines)
