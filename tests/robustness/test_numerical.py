"""Run few of the numerical problems, and the list of bad inputs."""

import numpy as np
import pytest

from robustness import bad_input, numerical
from robustness.numerical import Broken, attempt, documented, expect_probabilities, expect_same
from robustness.problems import problem


@pytest.mark.slow
def test_every_problem_ends_in_a_finite_model_or_a_documented_error():
    total, *groups = numerical.figures(quick=True)
    assert total["failures"] == 0, groups
    assert total["tried"] == total["finite models"] + total["documented errors"] > 40


def test_no_bad_input_is_taken_in_silence():
    rows = bad_input.figures(quick=True)
    assert [row["what"] for row in rows if row["failures"]] == []


def test_a_number_is_always_the_same_problem():
    for number in (3, 400, 1234):
        first, second = (problem(number) for _ in range(2))
        assert str(first) == str(second)
        np.testing.assert_array_equal(first.sample().y, second.sample().y)
    assert str(problem(1234, seed=1)) != str(problem(1234))


def test_an_accident_is_not_taken_for_a_documented_error():
    def accident() -> None:
        np.ones(3) + np.ones(2)

    with pytest.raises(ValueError, match="broadcast") as caught:
        accident()
    assert not documented(caught.value)


def test_what_is_not_a_probability_is_noticed():
    with pytest.raises(Broken, match="sum"):
        expect_probabilities(np.array([[0.5, 0.4]]))
    with pytest.raises(Broken, match="from"):
        expect_probabilities(np.array([[1.5, -0.5]]))
    with pytest.raises(Broken, match="differ"):
        expect_same({"a": np.zeros(1)}, {"a": np.ones(1)})


def test_a_failure_is_counted_with_its_traceback(monkeypatch):
    def fail(given):
        raise RuntimeError("on purpose")

    monkeypatch.setattr(numerical, "solve", fail)
    outcome = attempt(problem(0))
    assert outcome.end == "failure"
    assert "on purpose" in outcome.message
