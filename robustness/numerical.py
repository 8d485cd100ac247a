"""Thousands of numbered problems: each fit must end in a finite model or a documented error.

``python -m robustness.numerical [--quick] [--only NUMBER] [--seed SEED]``; ``--only`` repeats one problem and prints
its full traceback.
"""

from __future__ import annotations

import argparse
import linecache
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kernelwright
from kernelwright import MemoryBudgetError, NumericalError, NumericalRepairWarning
from kernelwright.errors import PrecisionWarning
from robustness.models import TrainingLoop
from robustness.problems import NUMBERS_FROM, SEED, Problem, problem

__all__ = ["figures"]

PROBLEMS = NUMBERS_FROM + 300
QUICK_STEP, QUICK_UP_TO = 37, 150  # quick: one problem in so many, of fewer rows and columns
LARGE = 1000  # rows, columns or classes: larger problems are solved only once

DOCUMENTED = (NumericalError, MemoryBudgetError, ValueError, TypeError)


@dataclass(frozen=True)
class Outcome:
    """How one problem ended."""

    problem: Problem
    end: str  # "model", "error" (a documented one) or "failure"
    message: str
    seconds: float
    repaired: bool
    fell_back: bool


def figures(*, quick: bool) -> list[dict[str, object]]:
    """Make a row for all problems, for each kind of data, and for each family of models."""
    if quick:
        return table(run([n for n in range(0, PROBLEMS, QUICK_STEP) if max(problem(n).shape) < QUICK_UP_TO], SEED))
    return table(run(range(PROBLEMS), SEED))


def run(numbers: Iterable[int], seed: int) -> list[Outcome]:
    """Solve the problems with these numbers."""
    return [attempt(problem(number, seed)) for number in numbers]


def table(outcomes: list[Outcome]) -> list[dict[str, object]]:
    """Count the outcomes by kind of data and by family of models."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[f"data: {outcome.problem.kind}"].append(outcome)
    for outcome in sorted(outcomes, key=lambda outcome: outcome.problem.model.family):
        groups[f"model: {outcome.problem.model.family}"].append(outcome)
    return [_row(what, group) for what, group in {"all problems": outcomes, **groups}.items()]


def _row(what: str, group: list[Outcome]) -> dict[str, object]:
    failed = [outcome.problem.number for outcome in group if outcome.end == "failure"]
    return {
        "what": what,
        "tried": len(group),
        "finite models": sum(outcome.end == "model" for outcome in group),
        "documented errors": sum(outcome.end == "error" for outcome in group),
        "failures": len(failed),
        "repaired": sum(outcome.repaired for outcome in group),
        "fell back to double": sum(outcome.fell_back for outcome in group),
        "seconds": round(sum(outcome.seconds for outcome in group), 1),
        "numbers of failures": " ".join(map(str, failed)),
    }


# One problem ---------------------------------------------------------------------------------------------------


class Broken(Exception):
    """A promise that a model broke."""


def attempt(given: Problem) -> Outcome:
    """Solve a problem twice and judge the results."""
    start, end, message = time.perf_counter(), "model", ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            first = solve(given)
            if max(given.shape) <= LARGE:
                expect_same(first, solve(given))
        except Exception as error:
            end = "error" if documented(error) else "failure"
            message = "".join(traceback.format_exception(error)) if end == "failure" else str(error)
    seconds = time.perf_counter() - start
    kinds = {warning.category for warning in caught}
    return Outcome(given, end, message, seconds, NumericalRepairWarning in kinds, PrecisionWarning in kinds)


def documented(error: Exception) -> bool:
    """Say whether an error is meant for users: of a documented type, raised on purpose, with a message.

    An accident in the middle of a formula may also be a ValueError. What tells them apart is the line of code: a
    ``raise`` in this package or in scikit-learn's input checks.
    """
    if not isinstance(error, DOCUMENTED) or not str(error) or error.__traceback__ is None:
        return False
    *_, last = traceback.walk_tb(error.__traceback__)
    frame, line = last
    path = frame.f_code.co_filename
    ours = str(Path(kernelwright.__file__).parent) in path or "sklearn/utils" in path.replace("\\", "/")
    return ours and linecache.getline(path, line).strip().startswith("raise ")


def solve(given: Problem) -> dict[str, np.ndarray]:
    """Fit a fresh model to fresh data, check it, and return its answers on new rows."""
    sample, model = given.sample(), given.model.make()
    weights = {} if sample.weights is None or not given.model.weighted else {"sample_weight": sample.weights}
    model.fit(sample.X, sample.y, **weights)
    expect_descent(model)
    found = answers(model, sample.new)
    for name, values in found.items():
        if not np.isfinite(values).all():
            raise Broken(f"{name} is not finite: {values}")
    if "probabilities" in found:
        expect_probabilities(found["probabilities"])
    if "quantiles" in found and (np.diff(found["quantiles"]) < 0).any():
        raise Broken(f"Quantiles cross: {found['quantiles']}")
    return found


def answers(model: Any, new: Any) -> dict[str, np.ndarray]:
    """Return the answers of a fitted model on new rows."""
    if hasattr(model, "expectation"):
        return {"weights": model.weights(new), "expectation": model.expectation(new)}
    if hasattr(model, "log_density"):
        mean, deviation = model.predict(new, return_std=True)
        quantiles = model.quantile(new, [0.01, 0.1, 0.5, 0.9, 0.99])
        middle = quantiles[..., 2]
        scores = {"scores": model.crps(new, middle), "support": model.support(new)}
        return {"means": mean, "deviations": deviation, "quantiles": quantiles, **scores}
    if hasattr(model, "support"):
        return {"probabilities": model.predict_proba(new), "support": model.support(new)}
    if hasattr(model, "predict_proba"):
        return {"probabilities": model.predict_proba(new)}
    if hasattr(model, "decision_function"):
        return {"decision values": model.decision_function(new)}
    return {"kernel values": model.predict(new)}


def expect_probabilities(P: np.ndarray) -> None:
    """Check that probabilities lie in [0, 1] and sum to one."""
    if P.min() < 0 or P.max() > 1:
        raise Broken(f"Probabilities range from {P.min()} to {P.max()}")
    if np.abs(P.sum(1) - 1).max() > 1e-9:
        raise Broken(f"Probabilities sum to {P.sum(1)}")


def expect_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    """Check that two fits give the same answers, to the bit."""
    for name in first:
        if not np.array_equal(first[name], second[name]):
            raise Broken(f"{name} differ between two fits by {np.abs(first[name] - second[name]).max()}")


def expect_descent(model: Any) -> None:
    """Check that the optimiser ends no higher than it started (not for mini-batches, whose values do not compare)."""
    if isinstance(model, TrainingLoop):
        if not model.end <= model.start + 1e-9 * abs(model.start):
            raise Broken(f"The objective was {model.start} at the start and {model.end} at the end")
        return
    history = getattr(model, "history_", [])
    if not history or not hasattr(model, "objective_") or getattr(model, "batch_size_", None) is not None:
        return
    first = next(step for step in history if step.stage == history[-1].stage)
    if not model.objective_ <= first.objective + 1e-9 * abs(first.objective):
        raise Broken(f"The optimiser started at {first.objective} and returned {model.objective_}")


def main() -> None:
    """Solve the problems and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", type=int, help="the number of one problem")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    if given.only is not None:
        outcome = attempt(problem(given.only, given.seed))
        print(outcome.problem, outcome.end, outcome.message, sep="\n")
        return
    numbers = range(0, PROBLEMS, QUICK_STEP) if given.quick else range(PROBLEMS)
    outcomes = run(numbers, given.seed)
    for outcome in outcomes:
        if outcome.end == "failure":
            print(outcome.problem, outcome.message, sep="\n")
    for row in table(outcomes):
        print(row)


if __name__ == "__main__":
    main()
