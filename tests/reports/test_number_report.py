import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import r2_score

from kernelwright import load, save, solvers
from kernelwright.distributions import Stacked
from kernelwright.evaluation import Score
from kernelwright.features import RandomFourier
from kernelwright.reports import CoverageDisplay, PITDisplay, model_report
from kernelwright.reports.judged_rows import SCORES, JudgedRows, evaluated_rows, left_out_rows
from kernelwright.reports.number_report import judgement
from kernelwright.reports.number_sections import (
    calibration,
    fans,
    habit,
    hardest_numbers,
    limits,
    number_quality,
    width_sentence,
)
from kernelwright.reports.page import Page
from kernelwright.reports.sections import SectionLeftOut
from tests.reports.models import IMAGE, LONG, NASTY, SCRIPT, nasty_number_model, number_model, number_table
from tests.reports.parsing import Parsed


@pytest.fixture(scope="module")
def model():
    return nasty_number_model()


@pytest.fixture(scope="module")
def parsed(model):
    page = model_report(model)
    assert "cannot be made" not in page
    return Parsed(page)


def test_all_sections_are_there(parsed):
    assert [h["id"] for h in parsed.all("h2")] == [
        "quality-on-new-rows",
        "predicted-and-actual",
        "calibration",
        "hardest-rows",
        "what-if",
        "what-it-looks-at",
        "quantiles-along-columns",
        "columns",
        "relevant-features",
        "limits",
        "training",
        "settings-and-versions",
    ]
    assert len(parsed.pictures()) == 10
    assert all(len(image["alt"]) > 40 for image in parsed.pictures())


def test_names_are_shown_literally(parsed):
    assert parsed.all("script") == [{}]
    assert not any(key.startswith("on") for _, attributes in parsed.elements for key in attributes)
    for name in (*NASTY, LONG, f"Prediction of {IMAGE + SCRIPT}", "Note: A note with <b>tags</b>."):
        assert " ".join(name.split()) in parsed.text
    assert "1337" not in parsed.text


def test_numbers_are_those_of_left_out_rows(model, parsed):
    judged = left_out_rows(model.pipeline[-1])
    scores = judged.scores()
    assert f"{100 * scores['R²'].value:.1f} %" in parsed.text
    assert f"MAE {scores['MAE'].value:.3f} {scores['MAE'].low:.3f} to {scores['MAE'].high:.3f}" in parsed.text
    worst = np.argmax(judged.crps)
    assert f"{judged.rows[worst]} {judged.y[worst]:.3f} {judged.mean[worst]:.3f}" in parsed.text
    assert "each of 90 rows was predicted without it" in parsed.text


def words_of(blocks):
    return Parsed(Page("", blocks).render()).text


def test_a_loaded_model_has_the_same_page(tmp_path):
    model = number_model(number_table(40), learn=None)
    save(model, tmp_path / "model.kw")
    first, second = (left_out_rows(each.pipeline[-1]) for each in (model, load(tmp_path / "model.kw")))
    for field in ("y", "mean", "interval", "pit", "crps", "rows"):
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field))


def test_a_stretch_of_narrow_intervals_that_hold_too_few_is_named(rng):
    width = np.linspace(1.0, 10.0, 1000)
    inside = np.where(width < 2.8, rng.uniform(size=1000) < 0.6, rng.uniform(size=1000) < 0.9)
    y, interval = np.where(inside, 0.0, 99.0), np.column_stack([-width / 2, width / 2])
    said = width_sentence(CoverageDisplay.from_predictions(y, interval))
    assert said.startswith("Among them, those 1.4")
    assert "wide are too narrow (" in said
    calibrated = np.where(rng.uniform(size=1000) < 0.9, 0.0, 99.0)
    assert width_sentence(CoverageDisplay.from_predictions(calibrated, interval)) == ""


def test_noise_is_called_noise():
    model = number_model(number_table().assign(target=np.random.default_rng(0).normal(size=80)))
    scores = left_out_rows(model.pipeline[-1]).scores()
    assert "not clearly better than the mean of target" in judgement("target", scores, {})[0]


def test_a_few_values_are_called_so():
    frame = number_table(120)
    frame["target"] = np.round(frame["target"]).clip(-1, 1)
    model = number_model(frame, learn=None)
    judged = left_out_rows(model.pipeline[-1])
    assert "3 values; nothing between them" in words_of(limits(model, judged))
    assert "a target with few values" in words_of(calibration(judged))


def test_the_range_and_the_transform_of_prices_are_shown():
    frame = number_table(120)
    frame["target"] = np.exp(1.5 * frame["target"])
    model = number_model(frame, learn=None, distribution=Stacked(transform="log"))
    text = words_of(limits(model, left_out_rows(model.pipeline[-1])))
    assert "at least 0.000" in text
    assert "the target is learned as its logarithm" in text


def test_what_another_model_lacks_is_left_out_with_a_sentence():
    features = {"features": RandomFourier(20), "learn": None, "scale": "standard"}
    parsed = Parsed(model_report(number_model(number_table(120), **features)))
    assert "hyperparameters were given" in parsed.text
    assert "keeps no training rows" in parsed.text
    assert len(parsed.all("h2")) == 12


def test_a_sample_of_rows_is_listed_without_numbers():
    model = number_model(number_table(120), solver=solvers.Landmarks(20), learn=None)
    text = words_of(hardest_numbers(left_out_rows(model.pipeline[-1])))
    assert "Rows with the largest CRPS actual predicted" in text


def test_words_alone_have_no_fan():
    frame = number_table(60)[["target"]].assign(kind=np.resize(np.array(["x", "y", "z"], dtype=object), 60))
    with pytest.raises(SectionLeftOut, match="no column of numbers to draw quantiles along"):
        fans(number_model(frame, learn=None))


def evaluation_of(y, means, half, rivals):
    """Return what a cross-validation of numbers has."""
    zeros = np.zeros(len(y))
    columns = (y, zeros + 1, means, np.column_stack([means - half, means + half]), np.zeros((len(y), 2)), np.abs(y))
    found = JudgedRows(*columns, None, "row", "").scores()
    scores = SimpleNamespace(**{SCORES[name]: score for name, score in found.items()})
    predictions = SimpleNamespace(means=means, low=means - half, high=means + half, crps=np.abs(y), pit=zeros + 0.5)
    made = {name: SimpleNamespace(scores=scores, gain=gain, seconds=1.0) for name, gain in rivals.items()}
    return SimpleNamespace(
        actual=y,
        predictions=predictions,
        rows=np.arange(len(y)) + 7,
        row_word="line",
        protocol="two folds",
        scores=scores,
        rivals=made,
    )


def test_a_cross_validation_is_shown_with_its_rivals(rng):
    y = rng.normal(size=50)
    gains = {"ridge regression": Score(0.2, 0.1, 0.3), "a forest": Score(0, -1, 1), "boosting": Score(-2, -3, -1)}
    found = evaluation_of(y, 0.5 * y, 1.0, gains)
    judged = evaluated_rows(found)
    text = words_of([*number_quality(judged, found.rivals), *hardest_numbers(judged)])
    assert "Measured by two folds." in text
    assert "0.200 (0.100 to 0.300) this model is better" in text
    assert f"{np.abs(y).argmax() + 7} {y[np.abs(y).argmax()]:.3f}" in text
    said = judgement("target", judged.scores(), found.rivals)
    assert f"explain {100 * r2_score(y, 0.5 * y):.1f}" in said[0]
    assert said[1:] == [
        "Its distributions are clearly better than those of ridge regression on the same rows (by CRPS).",
        "Its distributions are clearly worse than those of boosting on the same rows (by CRPS).",
        "There is no clear difference from a forest on the same rows (by CRPS).",
        "On this table, prefer boosting.",
    ]


@pytest.mark.parametrize(
    ("factor", "sentence"), [(1.0, "as they should."), (0.5, "they are too narrow"), (2.0, "wider than necessary")]
)
def test_intervals_are_judged(rng, factor, sentence):
    judged = left_out_rows(number_model(number_table(60), learn=None).pipeline[-1])
    y = rng.normal(size=1000)
    zeros, pit = np.zeros(1000), np.tile((np.arange(1000) + 0.5)[:, None] / 1000, 2)
    ends = np.tile(1.645 * factor * np.array([-1, 1]), (1000, 1))
    judged = dataclasses.replace(judged, y=y, weights=zeros + 1, mean=zeros, interval=ends, pit=pit, crps=zeros)
    assert sentence in habit(judged, PITDisplay.from_predictions(pit[:, 1]))


@pytest.mark.parametrize(("high", "sentence"), [(1.0, "or frequent ones"), (0.5, "too narrow")])
def test_intervals_of_a_target_with_frequent_values_are_judged(rng, high, sentence):
    judged = left_out_rows(number_model(number_table(60), learn=None).pipeline[-1])
    y = np.where(np.arange(1000) < 400, 0.0, rng.uniform(0.01, 1, 1000))
    zeros, pit = np.zeros(1000), np.column_stack([np.where(y > 0, 0.4 + 0.6 * y, 0.0), 0.4 + 0.6 * y])
    ends = np.tile([0.0, high], (1000, 1))
    judged = dataclasses.replace(judged, y=y, weights=zeros + 1, mean=zeros, interval=ends, pit=pit, crps=zeros)
    assert sentence in habit(judged, PITDisplay.from_predictions(np.where(y > 0, pit[:, 1], rng.uniform(0, 0.4, 1000))))
