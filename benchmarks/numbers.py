"""Every method for numbers on nine UCI sets with their published splits, and on five tables as people have them.

The machinery is that of ``suite.py``; ``results/numbers.csv`` has a row for each data set, split and method.
``make bench`` runs two splits, ``make bench-more`` all of them, with the methods that take long.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from benchmarks.number_peers import METHODS
from benchmarks.suite import Arrays, Chain, Contest, Data, Split, Task
from tools.tables import Row

# Each measure, and whether more of it is better.
MEASURES = {
    "RMSE": False,
    "MAE": False,
    "CRPS": False,
    "NLL": False,
    "CPU seconds to fit": False,
    "CPU seconds to predict": False,
    "GiB more": False,
}
SCORES = ("RMSE", "MAE", "CRPS", "NLL", "coverage", "width")
COLUMNS = (
    *("data", "seen", "fold", "training rows", "test rows", "features", "method"),
    *SCORES,
    *("CPU seconds to fit", "CPU seconds to predict", "GiB more", "seconds to fit", "version", "note"),
)
USUAL_SPLITS = 2


@dataclass(frozen=True)
class Patience:
    """CPU seconds to fit and predict, for small sets and for many rows or columns."""

    few: float
    many: float


USUAL, LONG = Patience(60.0, 150.0), Patience(300.0, 1800.0)  # `make bench` must end within the hour

# Published splits, and rows. Fewest rows first.
UCI = {
    "yacht": (20, 308),
    "boston": (20, 506),
    "energy": (20, 768),
    "concrete": (20, 1030),
    "wine_quality": (20, 1599),
    "kin8nm": (20, 8192),
    "power": (20, 9568),
    "naval": (20, 11_934),
    "protein": (5, 45_730),
}
CONTINUOUS = tuple(name for name in UCI if name != "wine_quality")  # where the literature has densities
FEW_VALUES = ("wine_quality", "naval")  # an interval of such targets may have to cover more than it should
SEEN = tuple(UCI)  # splits 0 to 4 were looked at while the recipe was chosen; not the tables
TABLE_SPLITS = 5
TABLE_ROWS = 5000  # for training
MOST_CATEGORIES = 20
MANY_ROWS = 4000
QUICK = ("yacht", "hitters")


Table = tuple[str, tuple[str, ...]]  # the target, and columns that are left out
TABLES: dict[str, Table] = {
    "hitters": ("Salary", ()),
    "wage": ("wage", ("logwage",)),  # its logarithm
    "ames": ("Sale_Price", ()),
    # Earnings of other years and kinds are almost the target.
    "colleges": (
        "median_earnings_6_years",
        ("UNITID", "mean_earnings_6_years", "mean_earnings_10_years", "median_earnings_10_years"),
    ),
    "hotel_rates": ("avg_price_per_room", ()),
}


NO_DATA = (
    "Numbers are not measured: KERNELWRIGHT_DATA must name a folder with regression/NAME.npz (X, y, and for each split "
    "the packed bits of its test rows) and tables/NAME.csv."
)


def folder() -> Path:
    """Return the folder of the data."""
    return Path(os.environ.get("KERNELWRIGHT_DATA", ""))


def has_data() -> bool:
    """Say whether the folder has the data sets."""
    return all((folder() / name).is_dir() for name in ("regression", "tables"))


def uci(name: str, patience: Patience = USUAL) -> Data:
    """Take the published splits of a UCI set, which test a tenth of the rows."""

    def split(fold: int) -> Split:
        with np.load(folder() / "regression" / f"{name}.npz") as file:
            X, y = file["X"].astype(float), file["y"].astype(float)
            test = np.unpackbits(file["test"], axis=1, count=len(y)).astype(bool)[fold]
        return X[~test], y[~test], X[test], y[test]

    splits, n = UCI[name]
    return Data(name, split, splits, patience.many if n > MANY_ROWS else patience.few, name in SEEN)


def table(name: str, patience: Patience = USUAL) -> Data:
    """Split a table at random, a fifth to test and at most 5000 rows to train; encode it for all methods alike."""

    def split(fold: int) -> Split:
        frame, y = table_rows(name)
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=fold)
        encoder = plain_encoder().fit(frame.iloc[train[:TABLE_ROWS]])
        X_train, X_test = (encoder.transform(frame.iloc[rows]) for rows in (train[:TABLE_ROWS], test))
        return X_train, y[train[:TABLE_ROWS]], X_test, y[test]

    return Data(name, split, TABLE_SPLITS, patience.many, name in SEEN)


def table_rows(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Read a table without the rows whose target is missing; dates become days."""
    target, left_out = TABLES[name]
    frame = pd.read_csv(folder() / "tables" / f"{name}.csv", na_values="?").dropna(subset=target)
    y = frame[target].to_numpy(float)
    frame = frame.drop(columns=[target, *left_out])
    for column in frame.select_dtypes(exclude="number"):
        if frame[column].dropna().astype(str).str.fullmatch(r"\d{4}-\d\d-\d\d").all():
            frame[column] = (pd.to_datetime(frame[column]) - pd.Timestamp(2000, 1, 1)).dt.days.astype(float)
    return frame, y


def plain_encoder() -> ColumnTransformer:
    """Make the encoding for all methods: medians in place of gaps, a column for each of the 20 usual categories."""
    numbers = make_column_selector(dtype_include="number")
    names = make_column_selector(dtype_exclude="number")
    columns = OneHotEncoder(max_categories=MOST_CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False)
    return make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), numbers),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), columns), names),
    )


def sizes(split: Arrays) -> Row:
    """Count rows and features."""
    return {
        "training rows": len(split["y_train"]),
        "test rows": len(split["y_test"]),
        "features": split["X_train"].shape[1],
    }


def scores(found: Arrays, split: Arrays) -> Row:
    """Take the scores that the worker has computed."""
    return {name: float(found[name]) for name in SCORES}


NUMBERS = Contest("numbers", COLUMNS, sizes, scores)


def all_data(quick: bool = False, patience: Patience = USUAL) -> list[Data]:
    """List the data sets, fewest rows first."""
    found = [*(uci(name, patience) for name in UCI), *(table(name, patience) for name in TABLES)]
    return [each for each in found if not quick or each.name in QUICK]


def chains(
    quick: bool,
    methods: Iterable[str] | None = None,
    data: Iterable[str] | None = None,
    *,
    splits: int = USUAL_SPLITS,
    every_method: bool = False,
) -> list[Chain]:
    """Order tasks by method, as each must be loaded, and the largest data sets first, to keep both jobs busy."""
    names = [
        name
        for name, method in METHODS.items()
        if (name in methods if methods else (method.usual or every_method) and (method.quick or not quick))
    ]
    return [
        [Task(each, fold, method) for fold in range(1 if quick else min(splits, each.folds))]
        for method in names
        for each in reversed(all_data(quick, LONG if every_method else USUAL))
        if not data or each.name in data
    ]
