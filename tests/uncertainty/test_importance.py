import numpy as np
import pytest
from scipy import sparse

from kernelwright.inputs.permuting import columns_of, tabular, with_columns_from
from kernelwright.uncertainty.importance import effects_of_columns, rank_columns


def test_the_loss_added_is_the_mean_over_all_pairs(rng):
    X, y = rng.normal(size=(7, 2)), rng.normal(size=7)

    def losses(rows, places):
        return np.square(rows[:, 0] * rows[:, 1] - y[places])

    shifts = np.stack([np.roll(np.arange(7), shift) for shift in range(7)])  # together, each pair once
    base = losses(X, np.arange(7))
    effects = effects_of_columns(losses, X, shifts, columns=[0, 1], base=base)
    pairs = np.array([[(X[j, 0] * X[i, 1] - y[i]) ** 2 - base[i] for j in range(7)] for i in range(7)])
    assert effects[:, 0] == pytest.approx(pairs.mean(1) + pairs.mean(0) - pairs.mean(), abs=1e-12)
    assert effects[:, 0].mean() == pytest.approx(pairs.mean(), abs=1e-12)


def test_intervals_hold_the_truth_as_often_as_they_say(rng):
    """For ``y = x + noise``, predicted by x, the squared error added by permuting x is twice its variance."""
    inside = {"effects": 0, "rows only": 0}
    for _ in range(400):
        x = rng.normal(size=200)
        y = x + rng.normal(size=200)
        permutations = np.stack([rng.permutation(200) for _ in range(10)])
        options = {"columns": [0], "base": np.square(x - y)}
        effects = effects_of_columns(
            lambda rows, _, y=y: np.square(rows[:, 0] - np.tile(y, 10)), x[:, None], permutations, **options
        )
        row = rank_columns(["x"], effects, measure="squared error", base=1.0, n_repeats=10).rows[0]
        inside["effects"] += row.low <= 2.0 <= row.high
        added = np.mean([np.square(x[p] - y) - np.square(x - y) for p in permutations], 0)
        inside["rows only"] += abs(added.mean() - 2.0) <= 1.96 * added.std() / np.sqrt(200)
    assert inside["effects"] > 0.92 * 400
    assert inside["rows only"] < 0.9 * 400  # why a row also counts as the one whose value others get


def test_rows_are_sorted_and_shares_stay_with_their_columns():
    found = rank_columns(["a", "b"], np.array([[0.0, 2.0], [0.0, 4.0]]), measure="CRPS", base=1.0, n_repeats=1)
    assert [(row.name, row.loss) for row in found.rows] == [("b", 3.0), ("a", 0.0)]
    shared = found.with_shares({"a": 0.75, "b": 0.25})
    assert [row.share for row in shared.rows] == [0.25, 0.75]
    assert str(shared).splitlines()[1].split() == ["b", "3.000", "1.040", "to", "4.960", "25.0%"]
    assert "nan" not in str(found)


def frames():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    data = {"a": [1, 2, 3, 4], "b": ["u", "v", None, "u"], "c": [0.5, 1.5, 2.5, 3.5]}
    pandas = pd.DataFrame(data, index=[7, 7, 8, 9]).astype({"a": "Int64", "b": "category"})
    return [pandas, pl.DataFrame(data), pa.table(data)]


@pytest.mark.parametrize("frame", frames(), ids=["pandas", "polars", "pyarrow"])
def test_frames_keep_their_types_when_columns_are_permuted(frame):
    rows, source = np.array([0, 1, 2, 3, 0, 1]), np.array([3, 2, 1, 0, 0, 1])
    found = with_columns_from(frame, rows, {1: source})
    schema = ["dtypes", "schema"][not hasattr(frame, "dtypes")]
    assert list(getattr(found, schema)) == list(getattr(frame, schema))
    assert columns_of(found) == ["a", "b", "c"]

    def values(table, name):
        column = table[name]
        listed = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
        return [None if each is None or each != each else each for each in listed]

    assert values(found, "a") == [1, 2, 3, 4, 1, 2]
    assert values(found, "b") == ["u", None, "v", "u", "u", "v"]
    assert values(frame, "b") == ["u", "v", None, "u"]  # the caller's rows are left alone


def test_sparse_rows_are_permuted_as_dense_ones(rng):
    X = rng.normal(size=(5, 3)) * (rng.random((5, 3)) < 0.5)
    rows, source = np.arange(5), rng.permutation(5)
    dense = with_columns_from(X, rows, {0: source, 2: source[::-1]})
    found = with_columns_from(tabular(sparse.coo_array(X)), rows, {0: source, 2: source[::-1]})
    assert sparse.issparse(found)
    assert np.array_equal(found.toarray(), dense)
