"""The example runs, and its text is correct."""

import numpy as np

from tests.examples.loading import load


def test_stated_probabilities_are_nearest_to_the_true_ones(tmp_path, capsys):
    scores = load("tabular").main(1200, tmp_path / "customers.kw")
    ours = scores["kernelwright"]
    assert ours["error"] < 0.1
    assert all(ours["error"] < scores[rival]["error"] for rival in ("random forest", "logistic regression"))
    assert ours["log loss"] > scores["the true probabilities"]["log loss"]
    assert (tmp_path / "customers.kw").stat().st_size > 1000
    shown = capsys.readouterr().out
    assert "predictions after loading are equal" in shown
    assert "visits" in shown


def test_the_table_has_gaps_and_labels_follow_their_probabilities():
    frame, left, probability = load("tabular").customers(20_000)
    assert frame["distance"].isna().mean() > 0.03
    assert frame.select_dtypes(exclude="number").shape[1] == 2
    often = probability > 0.8
    assert abs((left[often] == "left").mean() - probability[often].mean()) < 0.02
    assert np.all((probability > 0) & (probability < 1))
