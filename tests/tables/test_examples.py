import numpy as np
import pandas as pd
import pytest

from kernelwright import load, save
from kernelwright.evaluation import Evaluation
from kernelwright.tables import ExampleRows, TabularModel, TrainingTable, as_table, telling_rows


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"size": random.normal(size=400), "town": random.choice(["Bonn", "Ulm"], 400)})
    frame.loc[frame.index[::7], "town"] = None
    frame["kind"] = np.where(frame["size"] + 0.5 * random.normal(size=400) > 0, "yes", "no")
    return TrainingTable.of(as_table(frame), "kind")


@pytest.fixture(scope="module")
def evaluation(data):
    p = 1 / (1 + np.exp(-4 * data.frame["size"].to_numpy()))
    return Evaluation.of(np.column_stack([1 - p, p]), data.labels, classes=data.classes, protocol="", rows=data.rows)


def test_telling_rows_are_what_they_are_called(data, evaluation):
    found, p = telling_rows(evaluation), evaluation.probabilities
    wrong = p.argmax(1) != evaluation.labels
    own = p[np.arange(len(p)), evaluation.labels]
    assert wrong[found["wrong"]].all()
    assert own[found["wrong"]].max() <= np.sort(own[wrong])[3]
    assert p.max(1)[found["uncertain"]].max() < 0.6
    assert p.max(1)[found["typical"]].min() > 0.6
    assert len(set(np.concatenate(list(found.values())).tolist())) == 12


def test_examples_are_rows_of_the_table_and_survive_a_file(data, evaluation, tmp_path):
    model = TabularModel.fit(data, evaluation=evaluation)
    save(model, tmp_path / "m.kw")
    examples = load(tmp_path / "m.kw").examples
    assert len(examples) == 300
    assert len(set(examples.rows.tolist())) == 300
    assert examples.why[:12] == ("wrong",) * 4 + ("uncertain",) * 4 + ("typical",) * 4
    places = np.searchsorted(data.rows, examples.rows)
    np.testing.assert_array_equal(examples.targets, data.labels[places])
    expected = model.pipeline.predict_proba(data.frame)[places]
    np.testing.assert_allclose(model.pipeline.predict_proba(examples.frame()), expected, rtol=1e-8)


def test_without_an_evaluation_all_rows_of_a_small_table_are_kept(data):
    found = ExampleRows.of(data.frame.iloc[:20], data.labels[:20], data.rows[:20])
    assert sorted(found.rows) == sorted(data.rows[:20])
    assert set(found.why) == {""}
