"""The example runs, and its text is correct."""

import math

import pytest

from tests.examples.loading import load


@pytest.mark.slow
def test_a_stream_is_learned_in_flat_memory(capsys):
    found = load("big_data").main(40_000, 5000)
    assert found["accuracy"] > 0.91
    assert found["more"] > 0.91
    assert math.isnan(found["grown"]) or found["grown"] < 100  # MiB; the features of the rows are 122
    assert "40000 rows" in capsys.readouterr().out


def test_a_stream_has_all_rows():
    example, memory = load("big_data"), []
    assert [len(X) for X, _ in example.stream(25, 10, 0, memory)] == [10, 10, 5]
    assert len(memory) == 3
