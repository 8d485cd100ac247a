"""Sentences of the papers that a number could refute, each with a judge that reads the results of its experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kernelwright.research.experiments.runner import Result

__all__ = [
    "CONTRADICTED",
    "GOAL",
    "HOLDS",
    "HSU",
    "LIU",
    "NOT_RUN",
    "NOT_TESTED",
    "Claim",
    "Verdict",
    "claims_sentence",
    "mean_of",
    "means_together",
    "not_tested",
]

HOLDS, CONTRADICTED, NOT_TESTED = "holds", "contradicted", "not tested"
GOAL = "goal of this library"  # where a sentence stands that no paper has
HSU, LIU = "Hsu and others (2018)", "Liu and others (2021)"


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds (None: not tested), and the numbers or the reason."""

    holds: bool | None
    found: str

    @property
    def word(self) -> str:
        """The verdict as on the page."""
        return NOT_TESTED if self.holds is None else (HOLDS if self.holds else CONTRADICTED)


NOT_RUN = Verdict(None, "not in these results")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper. ``judge`` reads the results of the experiment that has the claim."""

    where: str  # paper (HSU or LIU) and section, or GOAL
    sentence: str
    judge: Callable[[Sequence[Result]], Verdict]
    command: str = ""  # what gave the number, if it is not the experiment

    @property
    def of_paper(self) -> bool:
        """Whether a paper has it."""
        return self.where != GOAL


def not_tested(why: str) -> Callable[[Sequence[Result]], Verdict]:
    """Return a judge for a claim that nothing here tests."""
    return lambda results: Verdict(None, why)


def mean_of(results: Iterable[Result], row: str, column: str, measure: str = "accuracy") -> float | None:
    """Return the mean over trials of one cell, or None if there is no result."""
    found = [r.value for r in results if (r.row, r.column, r.measure) == (row, column, measure)]
    return float(np.mean(found)) if found else None


def means_together(
    results: Iterable[Result], row: str, columns: Sequence[str], measure: str = "accuracy"
) -> dict[str, float]:
    """Return the mean of each column over the trials that all columns have; nothing if there is no such trial."""
    found: dict[str, dict[int, float]] = {column: {} for column in columns}
    for r in results:
        if r.row == row and r.measure == measure and r.column in found:
            found[r.column][r.trial] = r.value
    common = set.intersection(*(set(trials) for trials in found.values()))
    return {column: float(np.mean([trials[t] for t in common])) for column, trials in found.items()} if common else {}


def claims_sentence(verdicts: Sequence[Verdict]) -> str:
    """Count the verdicts in words."""
    counts = [sum(verdict.word == word for verdict in verdicts) for word in (HOLDS, CONTRADICTED, NOT_TESTED)]
    holds, contradicted, untested = counts
    return (
        f"of {len(verdicts)} claims in words, {holds} hold, {contradicted} are contradicted and {untested} not tested"
    )
