"""Tables of the robustness tests for the documentation (``docs/tables.py``)."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools import tables
from tools.tables import Cells, bold, markdown

RESULTS = Path(__file__).parent / "results"
NOT_REACHED = "*Not measured, or it ended in an error: see robustness/results/goals.csv.*\n"
BEHIND = 3.0  # points of accuracy; a task that is further behind is a known limit
SLOPE = 1.2  # a task whose logits are off by a larger factor is one, too
RIVALS = ("kernelwright", "logistic", "SVC", "forest")


def read(name: str) -> list[Cells]:
    """Read the figures of a part."""
    return tables.read(RESULTS / f"{name}.csv")


def figures(name: str) -> str:
    """Show the figures of a part, without empty columns."""
    rows = read(name)
    used = [column for column in rows[0] if any(row[column] for row in rows)]
    return markdown([{column: row[column].replace("|", "\\|") for column in used} for row in rows])


def goals(*names: str) -> str:
    """Show statistical goals task by task, missed ones in bold."""
    table = [
        {
            "goal": row["what"],
            "task": row["task"],
            "value": bold(row["value"], row["failures"] != "0"),
            "beside": row["beside"],
            "note": row["note"],
        }
        for row in read("goals")
        if row["what"] in names
    ]
    return markdown(table) if table else NOT_REACHED


def goals_across(pattern: str, first: str) -> str:
    """Show goals as a grid: ``pattern`` has a group for the line, headed ``first``, and a group for the column."""
    grid: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for row in read("goals"):
        if found := re.fullmatch(pattern, f"{row['what']}: {row['task']}"):
            line, column = found["line"], found["column"].replace(": ", ", ")
            cell = f"{row['value']} / {row['beside']}"
            grid.setdefault(line, {})[column] = bold(cell, row["failures"] != "0")
            columns[column] = None
    table = [{first: line} | {column: cells.get(column, "") for column in columns} for line, cells in grid.items()]
    return markdown(table) if table else NOT_REACHED


def quality() -> str:
    """Show all synthetic tasks, with the default and its rivals in one cell."""
    table = [
        {
            "task": row["what"],
            "rows": row["rows"],
            **{measure: _side_by_side(row, measure) for measure in ("accuracy %", "log loss", "logit slope")},
        }
        for row in read("quality")
    ]
    return f"Each cell: {' / '.join(RIVALS)}.\n\n" + markdown(table)


def _side_by_side(row: Cells, measure: str) -> str:
    cells = [row[f"{measure} {method}"] for method in RIVALS]
    return " / ".join(cells) if any(cells) else ""


def quality_behind() -> str:
    """Show tasks on which the default is more than three points behind the best, the worst first."""
    behind = [row for row in read("quality") if float(row["behind"]) > BEHIND]
    table = [
        {
            "task": row["what"],
            "rows": row["rows"],
            "accuracy %": row["accuracy % kernelwright"],
            "best": f"{row['accuracy % ' + row['best']]} ({row['best']})",
        }
        for row in sorted(behind, key=lambda row: -float(row["behind"]))
    ]
    return markdown(table) if table else "*None: on all of them it is within three points of the best.*\n"


def quality_slopes() -> str:
    """Show tasks with known probabilities on which the default is under- or overconfident."""
    known = [row for row in read("quality") if row["logit slope kernelwright"]]
    table = [
        {
            "task": row["what"],
            "rows": row["rows"],
            "logit slope": row["logit slope kernelwright"],
            "of logistic regression": row["logit slope logistic"],
        }
        for row in known
        if not 1 / SLOPE <= float(row["logit slope kernelwright"]) <= SLOPE
    ]
    return markdown(table) if table else f"*None of {len(known)}.*\n"


PARTS = ("numerical", "bad_input", "interruptions", "resources", "concurrency", "load", "security", "supply")
TABLES: dict[str, Callable[[], str]] = {
    **{name: partial(figures, name) for name in PARTS},
    "goals_weights": lambda: goals("balanced", "effective size", "copies"),
    "goals_left_out": lambda: goals_across(r"(?P<column>(left out|upper limit): [^:]*): (?P<line>.*)", "task"),
    "goals_many_classes": lambda: goals_across(r"many classes: (?P<line>\d+) classes x (?P<column>.*)", "classes"),
    "goals_noise": lambda: goals("noise"),
    "goals_numbers": lambda: goals("noise in numbers", "intervals"),
    "goals_sets": lambda: goals_across(r"(?P<column>coverage|size of sets|coverage by class): (?P<line>.*)", "task"),
    "quality": quality,
    "quality_behind": quality_behind,
    "quality_slopes": quality_slopes,
}
