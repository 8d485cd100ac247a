"""The section on what a model looks at: the loss of shuffling each column among the rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kernelwright.estimators.importance import importance_at
from kernelwright.reports.formatting import number
from kernelwright.reports.kernel_plots import with_names
from kernelwright.reports.page import Bar, Bars, Block, Paragraph
from kernelwright.reports.sections import SectionLeftOut
from kernelwright.reports.training_rows import as_codes, feature_names
from kernelwright.tables import ExampleRows, TabularModel
from kernelwright.uncertainty.importance import Importance

__all__ = ["columns_that_matter", "importance_at_examples", "looked_at"]

SHOWN = 12
MOST_ROWS = 150
MOST_WORK = 6e9  # rows times columns times training points times features: some five seconds


def importance_at_examples(model: TabularModel, examples: ExampleRows | None) -> Importance | None:
    """Measure the importance of columns at example rows that the model has not learned from."""
    if examples is None or len(examples) < 10:
        return None
    frame = examples.frame()
    work = len(model.used) * max(int(model.estimator.n_landmarks_ or 1), 100) * as_codes(model, frame[:1]).shape[1]
    # Telling rows come first, and would mislead: use the random ones, unless there are too few.
    sample = np.array([k for k, why in enumerate(examples.why) if not why] or range(len(examples)))
    sample = sample[: int(np.clip(MOST_WORK / max(work, 1), 30, MOST_ROWS))]

    def losses(rows: Any, targets: np.ndarray) -> np.ndarray:
        return model.estimator.losses_of_rows(model.encoded(rows), targets)

    rows = frame.iloc[sample].reset_index(drop=True)
    return importance_at(losses, rows, examples.targets[sample], measure=model.estimator.loss_measure, n_repeats=1)


def columns_that_matter(model: TabularModel, found: Importance | None) -> list[str]:
    """Return the columns by importance; if it is not known, by their share of the kernel."""
    if found is not None:
        return [each.name for each in found.rows]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            shares = with_names(model.pipeline[-1].relevance(), feature_names(model))
        first = [row.name for row in shares.rows if row.name in model.used]
    except ValueError:
        first = []
    return list(dict.fromkeys([*first, *model.used]))


def looked_at(found: Importance | None, where: str) -> list[Block]:
    """Show the columns whose shuffling adds the largest losses; ``where`` says on which rows they were measured."""
    if found is None:
        raise SectionLeftOut("What the model looks at was not measured: no cross-validation, or too many columns.")
    measure, shown, rest = found.measure, found.rows[:SHOWN], found.rows[SHOWN:]
    largest = max(max(each.high for each in shown), 1e-300)
    bars = [
        Bar(
            each.name,
            max(each.loss, 0.0) / largest,
            each.low / largest,
            each.high / largest,
            f"{number(each.loss)} ({number(each.low)} to {number(each.high)})",
            each.clear,
        )
        for each in shown
    ]
    blocks: list[Block] = [
        Paragraph(
            f"How much worse the predictions get if one column is shuffled among the rows, so that it tells nothing: "
            f"the growth of the {measure}, {where}. Columns in colour matter clearly. If two columns tell the same, "
            "each of them may seem unimportant, and none of this is about causes."
        ),
        Bars(f"Growth of the {measure} without the column, with 95 % intervals", bars),
    ]
    if rest:
        clear = sum(each.clear for each in rest)
        said = f"The other {len(rest)} columns matter less"
        blocks.append(Paragraph(f"{said}; {clear} of them clearly matter." if clear else f"{said}, if at all."))
    return blocks
