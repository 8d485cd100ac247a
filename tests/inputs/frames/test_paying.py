"""Free text is used if its words tell something about the target."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

import kernelwright as kw
from kernelwright import learning
from kernelwright.inputs.frames.describing import describe_columns
from kernelwright.inputs.frames.paying import RIDGES, gain, texts_that_pay
from kernelwright.inputs.frames.table import as_table
from kernelwright.tables import TrainingTable

FILL, WARM, COLD = ([f"{name}{k}" for k in range(n)] for name, n in (("word", 40), ("warm", 5), ("cold", 5)))


def notes(moods, seed):
    random = np.random.default_rng(seed)
    parts = ([*random.choice(WARM if mood else COLD, 2), *random.choice(FILL, 5)] for mood in moods)
    return [" ".join(random.permutation(each)) for each in parts]


def table(seed, n=300):
    """Return a table with a note that tells the mood, another that tells nothing, and the moods."""
    random = np.random.default_rng(seed)
    moods = random.random(n) < 0.5
    frame = pd.DataFrame({"x": random.normal(size=n), "note": notes(moods, seed)})
    return frame.assign(idle=notes(random.random(n) < 0.5, seed + 100)), moods


def test_the_gain_is_that_of_ridge_regressions_without_each_row():
    random = np.random.default_rng(0)
    Z = random.normal(size=(40, 3))
    y = Z[:, 0] + random.normal(size=40)
    scaled = (Z - Z.mean(0)) / Z.std(0)
    errors = [
        np.square(y - cross_val_predict(Ridge(ridge), scaled, y, cv=LeaveOneOut())).sum() for ridge in RIDGES.tolist()
    ]
    constant = np.square(y - cross_val_predict(LinearRegression(), np.zeros((40, 1)), y, cv=LeaveOneOut())).sum()
    assert gain(Z, y[:, None]) == pytest.approx(1.0 - min(errors) / constant, abs=1e-9)


@pytest.mark.parametrize("kind", ["labels", "bools", "numbers", "two numbers"])
def test_text_that_tells_nothing_is_left_out_for_all_kinds_of_targets(kind):
    kept = np.zeros(2)
    for seed in range(8):
        frame, moods = table(seed)
        noise = np.random.default_rng(seed + 50).normal(size=(len(moods), 2))
        numbers = 2.0 * moods + noise[:, 0]
        targets = {
            "labels": np.where(numbers > 1.0, "glad", "sad"),
            "bools": numbers > 1.0,
            "numbers": numbers,
            "two numbers": np.column_stack([numbers, noise[:, 1]]),
        }
        columns, bags = texts_that_pay(as_table(frame), describe_columns(as_table(frame)), targets[kind])
        kept += [column.kind == "words" for column in columns[1:]]
        assert len(bags) == sum(column.kind == "words" for column in columns)
    assert kept[0] == 8
    assert kept[1] <= 2


def test_estimators_and_tables_leave_it_out_with_a_note_unless_it_is_kept():
    frame, moods = table(1)
    fast = learning.Auto(max_iter=3)
    with pytest.warns(kw.ColumnWarning, match="idle .its words tell nothing about the target"):
        model = kw.EmbeddingClassifier(learn=fast, random_state=0).fit(frame[:200], moods[:200])
    assert [column.kind for column in model.columns_] == ["number", "words", "text"]
    assert model.score(frame[200:].drop(columns="idle"), moods[200:]) > 0.9
    keeping = kw.EmbeddingClassifier(learn=fast, keep=["idle"], random_state=0).fit(frame[:200], moods[:200])
    assert [column.kind for column in keeping.columns_] == ["number", "words", "words"]
    data = TrainingTable.of(as_table(frame.assign(mood=moods)), "mood")
    assert [column.kind for column in data.columns] == ["number", "words", "text"]
    assert any("idle (its words tell nothing about the target)" in note for note in data.notes)


def test_texts_that_all_differ_are_no_copies_of_each_other():
    frame, _ = table(3)
    assert frame["note"].nunique() == frame["idle"].nunique() == len(frame)
    frame = frame.assign(again=frame["note"], none=frame["idle"].where(frame.index % 5 > 0))
    columns = describe_columns(as_table(frame))
    assert [column.kind for column in columns] == ["number", "words", "words", "copy", "words"]
    assert columns[3].treatment == "left out: the same text as note"


def test_without_clear_targets_text_stays():
    frame, moods = table(2)
    columns = describe_columns(as_table(frame))
    for y in (None, moods[:-1], np.full(len(moods), np.nan), np.zeros((len(moods), len(moods)))):
        found, bags = texts_that_pay(as_table(frame), columns, y)
        assert [column.kind for column in found] == ["number", "words", "words"]
        assert len(bags) == 2
