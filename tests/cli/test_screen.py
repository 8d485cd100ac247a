"""Users see every warning that concerns them, and no text can control their terminal."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernelwright
from kernelwright.cli import run
from kernelwright.cli.screen import caught_warnings, print_table, say, tell
from kernelwright.errors import CollapseWarning, NumericalRepairWarning, PrecisionWarning
from kernelwright.evaluation.cross_validation import cross_validate
from kernelwright.persistence import check_model_file
from kernelwright.tables import TabularModel, write_bytes
from kernelwright.tables.writing import visible


def give(*warned, name="kernelwright.somewhere", stacklevel=3):
    """Emit warnings from a module of this name, with a stack level that points to another one."""
    space = {"__name__": name, "warnings": warnings, "warned": warned, "stacklevel": stacklevel}
    exec("def go():\n    for w in warned:\n        warnings.warn(w, stacklevel=stacklevel)", space)
    space["go"]()


OURS = [
    CollapseWarning("collapse"),
    NumericalRepairWarning("repair"),
    PrecisionWarning("precision"),
    UserWarning("All features are constant"),
    ConvergenceWarning("Conjugate gradients stopped"),
]


@pytest.mark.parametrize("warning", OURS, ids=lambda warning: type(warning).__name__)
def test_every_warning_of_the_library_is_shown_once(warning, capsys):
    with caught_warnings() as found:
        give(warning, warning)
    tell(found)
    assert capsys.readouterr().err == f"Note: {warning}\n"


def test_scikit_learn_says_that_something_did_not_converge_and_is_else_silent(capsys):
    with caught_warnings() as found:
        give(ConvergenceWarning("lbfgs failed\n\nto converge"), UserWarning("unknown categories"), name="sklearn.x")
        give(RuntimeWarning("overflow"), DeprecationWarning("old"))
    tell(found)
    assert capsys.readouterr().err == "Note: lbfgs failed to converge\n"


def test_warnings_that_differ_in_numbers_are_one(capsys):
    with caught_warnings() as found:
        give(*(NumericalRepairWarning(f"1.5e-{k} was added in step {k}") for k in range(5)))
    tell(found)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_solver_that_did_not_converge_is_heard_on_the_command_line(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("kernelwright.tables.model.TabularModel.fit", warn_and(TabularModel.fit))
    fit = ["fit", files.train, "-t", "species", "--no-cv", "-o", str(tmp_path / "m.kw")]
    assert run(fit) == 0
    assert capsys.readouterr().err.count("Conjugate gradients stopped") == 1


def warn_and(function):
    def wrapped(*arguments, **choices):
        warnings.warn("Conjugate gradients stopped after 9 steps.", ConvergenceWarning, stacklevel=2)
        return function(*arguments, **choices)

    return wrapped


def test_what_happens_in_folds_only_is_said_to_be_there(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("kernelwright.cli.fitting.cross_validate", warn_and(cross_validate))
    fit = ["fit", files.train, "-t", "species", "--folds", "2", "-o", str(tmp_path / "m.kw")]
    assert run(fit) == 0
    assert capsys.readouterr().err == "Note: in cross-validation: Conjugate gradients stopped after 9 steps.\n"


def test_warnings_before_a_fault_are_told_too(files, capsys, monkeypatch):
    monkeypatch.setattr("kernelwright.cli.tabular.check_model", warn_and(check_model_file))
    assert run(["predict", files.train, files.test]) != 0
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("Note: Conjugate gradients")
    assert err[1].startswith("kernelwright: Cannot load")


# characters that a terminal obeys -------------------------------------------------------------------------

EVIL = "\x1b]0;gone\x07\x1b[2J\x9b31m\u202e\r\n\x00"


def harmless(text):
    return not set(text) & set("\x1b\x07\x9b\u202e\r\x00\x7f")


def test_text_is_shown_and_not_obeyed(capsys):
    say(f"\nname {EVIL} end")
    print_table("", [{f"a{EVIL}": EVIL, "b": 1}], words=[f"a{EVIL}"])
    out = capsys.readouterr().out
    assert harmless(out)
    assert out.startswith("\nname \\x1b]0;gone\\x07\\x1b[2J\\x9b31m\\u202e\\r\\n\\x00 end\n")
    assert visible("Köln, 東京 🙂") == "Köln, 東京 🙂"


@pytest.fixture
def evil_table(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    mark = "\x1b[31m"
    frame = pd.DataFrame(
        {
            f"size{mark}": y + rng.normal(size=60),
            "town": [f"{mark}{'ab'[k % 2]}" for k in range(60)],
            f"kind{mark}": np.where(y, f"yes{mark}", f"no{mark}"),
        }
    )
    path = tmp_path / f"t{mark}.csv"
    frame.to_csv(path, index=False)
    return path, f"kind{mark}", frame


def test_names_of_files_columns_and_classes_do_not_reach_the_terminal(evil_table, tmp_path, capsys):
    path, target, frame = evil_table
    model = tmp_path / "m\x1b[5m.kw"
    assert run(["fit", str(path), "-t", target, "-o", str(model), "--folds", "2"]) == 0
    assert run(["evaluate", str(model), str(path)]) == 0
    new = frame.assign(town="\x1b[7mnew", **{"more\x1b[1m": 1}).drop(columns=target)
    new.to_csv(tmp_path / "new.csv", index=False)
    assert run(["predict", str(model), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out\x1b.csv")]) == 0
    assert run(["predict", str(model), str(tmp_path / "no\x1b[4m.csv")]) == 2
    assert run(["fit", str(path), "-t", "kin\x1b[31m", "-o", str(model)]) == 2
    assert run(["f\x1b[31mit"]) == 2
    out, err = capsys.readouterr()
    assert harmless(out + err)
    assert "\\x1b[31m" in out
    assert "prediction" in (tmp_path / "out\x1b.csv").read_text()


def test_answers_in_a_file_are_as_they_are_and_on_a_terminal_harmless(monkeypatch, capfdbinary):
    content = b"name\n\x1b[31mred\tb\n"
    write_bytes("-", content)
    assert capfdbinary.readouterr().out == content
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    write_bytes("-", content)
    assert capfdbinary.readouterr().out == b"name\n\\x1b[31mred\tb\n"


# a full disk ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "learn-kernel"])
def test_a_full_disk_for_the_report_does_not_hide_that_the_model_is_there(files, tmp_path, capsys, command):
    place = {"fit": [files.train, "-t", "species", "--no-cv"], "learn-kernel": [files.objects, files.similarities]}
    arguments = [command, *place[command], "-o", str(tmp_path / "m.kw"), "--report", "/dev/full"]
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert (
        f"The model was written to {tmp_path / 'm.kw'}, but the report could not be written to /dev/full: No space"
        in err
    )
    assert "saved in" in out
    assert kernelwright.load(tmp_path / "m.kw") is not None


def test_rows_without_a_class_are_told_by_evaluate(files, tmp_path, capsys):
    frame = files.frame[90:].copy()
    frame.loc[frame.index[:3], "species"] = "None"
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run(["evaluate", files.model, str(tmp_path / "t.csv")]) == 0
    err = capsys.readouterr().err
    assert err.startswith("Note: 3 rows without a value of 'species' left out. The word 'None' counts as missing there")
