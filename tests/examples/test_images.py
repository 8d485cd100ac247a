"""The example runs, and its text is correct."""

from tests.examples.loading import load


def test_three_ways_to_read_digits(capsys):
    scores = load("images").main(300, 40)
    assert len(scores) == 3
    assert all(score["accuracy"] > 0.9 for score in scores.values())
    assert all(score["calibration error"] < 0.06 for score in scores.values())
    kernels = [score for name, score in scores.items() if name != "convolutional network"]
    assert all(score["sure of noise"] < 0.3 for score in kernels)  # they know that it is nothing they have seen
    assert capsys.readouterr().out.count("Pure noise") == 3
