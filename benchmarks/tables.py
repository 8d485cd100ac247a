"""Every method on twelve tables as people have them: frames with text, dates and gaps.

All methods get what ``pandas.read_csv`` gives. The machinery is that of ``suite.py``; ``results/tables.csv`` has a row
for each table, split and method. Frames go to the worker as the text of a CSV file. ``make bench`` runs two splits,
``make bench-more`` all five, and the networks.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.frames import texts
from benchmarks.numbers import NO_DATA, folder, has_data
from benchmarks.suite import Arrays, Chain, Contest, Data, Split, Task
from benchmarks.table_peers import METHODS, NUMBERS_ONLY, has_classes
from tools.tables import Row

__all__ = ["NO_DATA", "has_data"]

CLASS_SCORES, NUMBER_SCORES = ("log loss", "accuracy %", "AUC"), ("RMSE", "MAE", "CRPS", "coverage")
# Each measure, and whether more of it is better.
COSTS = {"CPU seconds to fit": False, "CPU seconds to predict": False, "GiB more": False}
CLASS_MEASURES = {"log loss": False, "accuracy %": True, "AUC": True} | COSTS
NUMBER_MEASURES = {"CRPS": False, "RMSE": False, "MAE": False} | COSTS
COLUMNS = (
    *("data", "seen", "fold", "training rows", "test rows", "features", "classes", "method"),
    *(*CLASS_SCORES, *NUMBER_SCORES),
    *("CPU seconds to fit", "CPU seconds to predict", "GiB more", "seconds to fit", "version", "note"),
)
SPLITS, USUAL_SPLITS = 5, 2
TRAINED, TESTED = 3000, 2000  # rows at most
SECONDS = 150.0  # of CPU time, to fit and predict
# Splits 0 and 1 of all tables were looked at while the coordinates of tables were chosen: all are "seen".


@dataclass(frozen=True)
class Source:
    """A file, its target, and the columns that are the target in another form."""

    file: str
    target: str
    left_out: tuple[str, ...] = ()


CLASSES = {
    "penguins": Source("penguins", "species"),
    "attrition": Source("attrition", "Attrition"),
    "credit_data": Source("credit_data", "Status"),
    "wa_churn": Source("wa_churn", "churn"),
    "lending_club": Source("lending_club", "Class"),
    "bank_churn": Source("bank_churn", "Exited"),
}
NUMBERS = {
    "hitters": Source("hitters", "Salary"),
    "ames": Source("ames", "Sale_Price"),
    "wage": Source("wage", "wage", ("logwage",)),
    "colleges, grants": Source("colleges", "percent_pell_grant"),
    "colleges, earnings": Source(
        "colleges",
        "median_earnings_6_years",
        ("mean_earnings_6_years", "mean_earnings_10_years", "median_earnings_10_years"),
    ),
    "hotel_rates": Source("hotel_rates", "avg_price_per_room"),
}
TABLES = CLASSES | NUMBERS
RANKED = ((CLASSES, CLASS_MEASURES, "log loss"), (NUMBERS, NUMBER_MEASURES, "CRPS"))
QUICK = ("penguins", "hitters")


@cache
def rows_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Read a table without the rows whose target is missing; a question mark is a gap. Classes are numbered."""
    source = TABLES[name]
    path = folder() / "tables" / f"{source.file}.csv"
    frame = pd.read_csv(path, na_values="?").dropna(subset=source.target)
    y = frame[source.target]
    frame = frame.drop(columns=[source.target, *source.left_out])
    return frame, np.unique(y, return_inverse=True)[1] if name in CLASSES else y.to_numpy(float)


def table(name: str) -> Data:
    """Split a table at random, by class if there are any: a fifth to test, both parts limited."""

    def split(fold: int) -> Split:
        frame, y = rows_of(name)
        by = y if name in CLASSES else None
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=fold, stratify=by)
        train, test = train[:TRAINED], test[:TESTED]
        X, X_test = texts(frame.iloc[train], frame.iloc[test])
        return X, y[train], X_test, y[test]

    return Data(name, split, SPLITS, SECONDS, seen=True)


def sizes(split: Arrays) -> Row:
    """Count rows, columns and classes."""
    y = split["y_train"]
    return {
        "training rows": len(y),
        "test rows": len(split["y_test"]),
        "features": len(str(split["X_train"]).partition("\n")[0].split(",")),
        "classes": len(np.unique(y)) if has_classes(y) else "",
    }


def scores(found: Arrays, split: Arrays) -> Row:
    """Take the scores that the worker has computed."""
    names = CLASS_SCORES if has_classes(split["y_train"]) else NUMBER_SCORES
    return {name: float(found[name]) for name in names}


CONTEST = Contest("tables", COLUMNS, sizes, scores)


def chains(
    quick: bool,
    methods: Iterable[str] | None = None,
    data: Iterable[str] | None = None,
    *,
    splits: int = USUAL_SPLITS,
    every_method: bool = False,
) -> list[Chain]:
    """Order tasks by method, as each must be loaded; a chain is a table."""
    names = [
        name
        for name, method in METHODS.items()
        if (name in methods if methods else (method.usual or every_method) and (method.quick or not quick))
    ]
    return [
        [Task(table(name), fold, method) for fold in range(1 if quick else min(splits, SPLITS))]
        for method in names
        for name in (QUICK if quick else TABLES)
        if (not data or name in data) and not (name in CLASSES and method in NUMBERS_ONLY)
    ]
