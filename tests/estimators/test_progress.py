"""``verbose`` uses logging, and only if it is set."""

import logging

import pytest
from sklearn.datasets import make_moons

from kernelwright import EmbeddingClassifier, learning
from kernelwright.estimators.progress import logger, progress, with_lines
from kernelwright.kernels import Gaussian
from kernelwright.learning import Step

X, Y = make_moons(60, noise=0.25, random_state=0)


def model(**options):
    return EmbeddingClassifier(Gaussian(), learn=learning.Auto(max_iter=3), random_state=0, **options)


@pytest.fixture
def alone(monkeypatch):
    """Return a function that cuts off all log handlers, as in a program without logging; pytest adds some later."""

    def now():
        monkeypatch.setattr(logger, "propagate", False)
        monkeypatch.setattr(logger, "handlers", [])
        assert not logger.hasHandlers()

    return now


def lines_of(caplog):
    return [record for record in caplog.records if record.name == "kernelwright" and "objective" in record.message]


@pytest.mark.parametrize("verbose", [1, 3])
def test_a_line_every_so_many_steps(verbose, caplog, capfd):
    fitted = model(verbose=verbose).fit(X, Y)
    found = lines_of(caplog)
    assert len(found) == -(-len(fitted.history_) // verbose)
    assert all(record.levelno == logging.INFO for record in found)
    first = fitted.history_[0]
    assert found[0].message.startswith("step    0")
    assert f"objective {first.objective:.5f}  loss {first.loss:.5f}" in found[0].message
    assert "60 rows: solver exact" in caplog.text
    assert capfd.readouterr() == ("", "")  # the handlers of the program have them


def test_nothing_is_said_or_written_unless_asked_for(caplog, capfd, alone):
    model().fit(X, Y)
    assert caplog.records == []
    alone()
    model().fit(X, Y)
    model(verbose=0, callback=lambda step: None).fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_a_program_without_logging_sees_the_lines_on_standard_error(capfd, alone):
    alone()
    fitted = model(verbose=1).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("objective") == len(fitted.history_)
    assert logger.handlers == []
    model().fit(X, Y)
    assert capfd.readouterr() == ("", "")  # and no more of them once it is over


@pytest.mark.parametrize("fails", [False, True])
def test_the_log_is_left_as_it_was(fails, alone, monkeypatch):
    alone()
    monkeypatch.setattr(logger, "level", logging.ERROR)

    def inside():
        with progress(1):
            assert logger.level == logging.INFO
            assert len(logger.handlers) == 1
            if fails:
                raise RuntimeError("a fault inside")

    if fails:
        with pytest.raises(RuntimeError, match="a fault inside"):
            inside()
    else:
        inside()
    assert (logger.level, logger.handlers) == (logging.ERROR, [])
    with progress(0):
        assert (logger.level, logger.handlers) == (logging.ERROR, [])


def test_lines_are_added_to_the_users_callback(caplog):
    seen = []
    assert with_lines(None, 0) is None
    assert with_lines(seen.append, 0) == seen.append
    steps = [Step(float(i), 0.0, 0.0, {}) for i in range(5)]
    report = with_lines(seen.append, 2)
    with progress(2):
        for step in steps:
            report(step)
    assert seen == steps
    assert [record.message.split()[1] for record in lines_of(caplog)] == ["0", "2", "4"]


def test_the_users_callback_stops_also_a_fit_with_lines(caplog):
    def stop(step):
        raise StopIteration

    fitted = model(verbose=1, callback=stop).fit(X, Y)
    assert len(lines_of(caplog)) == len(fitted.history_) == 1
