import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from kernelwright.reports.looked_at import importance_at_examples
from kernelwright.reports.what_if import interpolated, what_if
from tests.reports.models import number_model, number_table, table, tabular_model


def frame_of(n=60):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": random.normal(size=n),
            "b": random.uniform(size=n),
            "flag": random.integers(0, 2, n).astype(float),
            "word": pd.Series(random.choice(["x", "y", "z"], n), dtype=object),
        }
    )


def smooth(rows):
    """Return an answer with a bend in a, a line in b, and an interaction with the word."""
    return np.column_stack(
        [np.tanh(3 * rows["a"]) * (rows["word"] == "x") + rows["b"] * rows["flag"], rows["a"].to_numpy()]
    )


def test_the_row_itself_is_answered_exactly():
    frame = frame_of()
    found = what_if(smooth, frame, list(frame), rows=5)
    for k, grid in enumerate(found.grids):
        start = {lever.name: lever.start for lever in grid.levers}
        assert {name: frame[name][k] for name in start} == start
        np.testing.assert_allclose(interpolated(grid, start), smooth(frame.iloc[[k]])[0], atol=1e-12)


def test_interpolation_is_that_of_scipy():
    from scipy.interpolate import RegularGridInterpolator

    frame = frame_of()[["a", "b"]]
    grid = what_if(lambda rows: np.sin(3 * rows[["a"]].to_numpy() + rows[["b"]].to_numpy()), frame, ["a", "b"], rows=1)
    levels = [lever.levels for lever in grid.grids[0].levers]
    reference = RegularGridInterpolator(levels, grid.grids[0].answers)
    at = {"a": 0.3, "b": 0.77}
    np.testing.assert_allclose(interpolated(grid.grids[0], at), reference(list(at.values()))[0])


def test_the_stated_error_is_that_of_new_settings():
    """Errors at other random settings, interpolated by scipy, are as large as those that are stated."""
    frame = frame_of()[["a", "b"]]

    def bent(rows):
        return np.sin(4 * rows[["a"]].to_numpy()) * rows[["b"]].to_numpy()

    found = what_if(bent, frame, ["a", "b"], rows=12, most=30)
    random, errors = np.random.default_rng(9), []
    for grid in found.grids:
        for _ in range(100):
            at = {lever.name: random.uniform(lever.levels[0], lever.levels[-1]) for lever in grid.levers}
            errors.append(abs(interpolated(grid, at) - bent(pd.DataFrame([at]))[0])[0])
    assert found.errors.mean() == pytest.approx(np.mean(errors), rel=0.25)


def test_levels_go_where_the_answer_bends_and_more_of_them_help():
    frame = frame_of()[["a", "b"]]

    def answer(rows):
        return np.tanh(4 * rows[["a"]].to_numpy()) + rows[["b"]].to_numpy()

    few, many = (what_if(answer, frame, ["a", "b"], rows=6, most=most) for most in (12, 30))
    bent, straight = many.grids[0].levers
    assert len(bent.levels) > len(straight.levels) == 3
    assert many.errors.mean() < 0.5 * few.errors.mean()
    assert all(grid.answers[..., 0].size <= 30 for grid in many.grids)


def test_gaps_and_too_many_words_are_no_levers():
    frame = frame_of().assign(word=[f"w{k}" for k in range(60)])
    frame.loc[0, "a"] = np.nan
    grid = what_if(lambda rows: rows[["b"]].to_numpy(), frame, ["a", "word", "b"], rows=1).grids[0]
    assert [lever.name for lever in grid.levers] == ["word", "b"]
    assert len(grid.levers[0].levels) == 6
    assert "w0" in grid.levers[0].levels


def test_importance_at_example_rows_finds_the_column_that_decides():
    model = tabular_model(table(200, names=("a", "idle", "b")))
    rows = {each.name: each for each in importance_at_examples(model, model.examples).rows}
    assert max(rows, key=lambda name: rows[name].loss) == "a"
    assert rows["a"].clear
    assert rows["idle"].loss < 0.3 * rows["a"].loss
    frame, y = model.examples.frame(), model.examples.targets
    random = np.random.default_rng(3)
    before, after = (
        log_loss(y, model.pipeline.predict_proba(frame.assign(a=values)))
        for values in (frame["a"], random.permutation(frame["a"]))
    )
    assert rows["a"].low - 0.3 < after - before < rows["a"].high + 0.3


def test_columns_of_numbers_are_ranked_too():
    model = number_model(number_table(120, names=("a", "idle", "b")))
    assert importance_at_examples(model, model.examples).rows[-1].name == "idle"
