"""The same bad inputs for kernelwright and for three other libraries, to see whose error says what is wrong.

``python -m robustness.bad_input [--quick]``. GPyTorch takes part if it is installed.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC

from kernelwright import EmbeddingClassifier

try:
    from robustness.gaussian_process import DirichletGaussianProcess
except ImportError:  # GPyTorch is not installed
    DirichletGaussianProcess = None  # type: ignore[assignment, misc]

__all__ = ["figures"]

GOOD = ("clear error", "fine")


@dataclass(frozen=True)
class Case:
    """An input, whether a model may be fitted to it, and words that mark a clear error."""

    what: str
    X: Any
    y: Any
    words: str
    new: Any = None  # as X if not given
    weights: Any = None
    may_work: bool = False  # the input has a meaning: a model that learns from it is fine
    fitted: bool = True  # whether to call fit

    @property
    def rows_to_predict(self) -> Any:
        """Return the new rows, or those of the fit."""
        return self.X if self.new is None else self.new


def _two_groups(n: int = 40, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 4.0 * y[:, None], y


def cases() -> list[Case]:
    """List the inputs."""
    X, y = _two_groups()
    wide, _ = _two_groups(d=500)
    ones, objects = np.ones(len(y)), X.astype(object)
    words = objects.copy()
    words[3, 1] = "high"

    def put(value: float) -> np.ndarray:
        changed = X.copy()
        changed[3, 1] = value
        return changed

    late, single = ones.copy(), np.zeros(len(y), dtype=int)
    late[0], single[0] = np.nan, 1
    return [
        Case("nothing is wrong", X, y, "", may_work=True),
        Case("a value is NaN", put(np.nan), y, "NaN|missing", may_work=True),  # a gap for the default kernel
        Case("all values are NaN", X * np.nan, y, "NaN|missing"),
        Case("a value is infinite", put(np.inf), y, "inf|finite"),
        Case("no rows", X[:0], y[:0], "0 sample|empty|no rows"),
        Case("no columns", X[:, :0], y, "0 feature|no columns"),
        Case("one row", X[:1], y[:1], "class|1 sample|one row"),
        Case("one class", X, np.zeros_like(y), "class"),
        Case("text among numbers", words, y, "high|numeric|float|string"),
        Case(
            "rows of different length",
            [[1.0, 2.0], [1.0], [2.0, 3.0], [0.0, 1.0]],
            [0, 1, 0, 1],
            "inhomogeneous|length",
        ),
        Case("rows of rows", X[:, :, None].repeat(2, 2), y, "dim|2-D|2D"),
        Case("one column, given flat", X[:, 0], y, "2D|2-D|reshape"),
        Case("complex numbers", X + 1j, y, "omplex"),
        Case(
            "dates, which are numbers of days",
            X.astype("int64").astype("datetime64[D]"),
            y,
            "date|dtype|numeric",
            may_work=True,
        ),
        Case("more labels than rows", X, np.append(y, 1), "length|inconsistent|samples"),
        Case("a label is NaN", X, np.where(np.arange(len(y)) == 3, np.nan, y), "NaN|missing"),
        Case("numbers in place of labels", X, X[:, 0], "ontinuous|label"),
        Case("no labels", X, None, "requires y|label"),
        Case("predict before fit", X, y, "not fitted|fit", fitted=False),
        Case("other columns at predict", X, y, "feature|column", new=X[:, :2]),
        Case("NaN at predict", X, y, "NaN|missing", new=put(np.nan), may_work=True),
        Case("a new row at 1e300", X, y, "finite|large", new=put(1e300), may_work=True),
        Case("all rows the same", np.ones_like(X), y, "constant|same|definite", may_work=True),
        Case("a constant column", np.column_stack([X, ones]), y, "constant", may_work=True),
        Case("every row five times", X.repeat(5, 0), y.repeat(5), "definite|duplicate", may_work=True),
        Case("all numbers at 1e300", X * 1e299, y, "finite|large|overflow", may_work=True),
        Case("all numbers at 1e150", X * 1e149, y, "finite|large|overflow", may_work=True),
        Case("all numbers at 1e-300", X * 1e-300, y, "small", may_work=True),
        Case("columns from 1e-9 to 1e9", X * [1e-9, 1.0, 1e9], y, "scale", may_work=True),
        Case("one outlier at 1e200", put(1e200), y, "finite|large|overflow", may_work=True),
        Case("a class of one row", X, single, "class|member", may_work=True),
        Case("more columns than rows", wide, y, "column", may_work=True),
        Case("numbers as objects", objects, y, "object", may_work=True),
        Case("truth values", X > 2, y, "bool", may_work=True),
        Case("half precision", X.astype(np.float16), y, "float16", may_work=True),
        Case("a sparse matrix", csr_array(X), y, "parse", may_work=True),
        Case("negative weights", X, y, "negative", weights=-ones),
        Case("a weight is NaN", X, y, "NaN|missing|finite", weights=late),
        Case("all weights are zero", X, y, "zero|positive|weight", weights=0 * ones),
        Case("fewer weights than rows", X, y, "shape|length|sample_weight", weights=ones[:-1]),
    ]


def models() -> dict[str, tuple[Callable[[], Any] | None, bool]]:
    """List the models, and whether each takes weights."""
    return {
        "kernelwright": (lambda: EmbeddingClassifier(random_state=0), True),
        "GaussianProcessClassifier": (lambda: GaussianProcessClassifier(1.0 * RBF(), random_state=0), False),
        "SVC": (lambda: SVC(probability=True, random_state=0, max_iter=100_000), True),
        "GPyTorch": (DirichletGaussianProcess, False),
    }


def figures(*, quick: bool) -> list[dict[str, object]]:
    """Make a row for each input; ``quick`` tries kernelwright only."""
    rows = []
    for case in cases():
        start = time.perf_counter()
        found = {}
        for name, (make, weighted) in models().items():
            if make is None:
                found[name] = "not installed"
            elif quick and name != "kernelwright":
                found[name] = "not run"
            elif name == "GPyTorch" and not case.fitted:
                found[name] = "does not apply"  # its models are constructed from their data
            else:
                found[name] = outcome(case, make, weighted)
        failed = found["kernelwright"] not in GOOD
        seconds = round(time.perf_counter() - start, 2)
        rows.append({"what": case.what, "tried": 1, "failures": int(failed), **found, "seconds": seconds})
    return rows


def outcome(case: Case, make: Callable[[], Any], weighted: bool) -> str:
    """Judge what a model does: "clear error", "unclear error", "silent nonsense" or "fine"."""
    if case.weights is not None and not weighted:
        return "has no weights"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = make()
            if case.fitted:
                model.fit(case.X, case.y, **({} if case.weights is None else {"sample_weight": case.weights}))
            P = np.asarray(model.predict_proba(case.rows_to_predict))
        except Exception as error:
            return "clear error" if re.search(case.words or "$^", str(error), re.IGNORECASE) else "unclear error"
    if not case.may_work:
        return "silent nonsense"  # it should have been refused
    proper = np.isfinite(P).all() and P.min() >= 0 and P.max() <= 1 and np.allclose(P.sum(1), 1)
    return "fine" if proper and _learned(case, model.classes_[P.argmax(1)]) else "silent nonsense"


def _learned(case: Case, labels: np.ndarray) -> bool:
    """Check that two distant groups are told apart, if the input still shows them."""
    if case.what in ("all rows the same", "a class of one row"):
        return True
    return bool(np.mean(labels == np.asarray(case.y)) >= 0.9)


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    for row in figures(quick=parser.parse_args().quick):
        print(row)


if __name__ == "__main__":
    main()
