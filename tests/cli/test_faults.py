"""Every input error is one sentence on standard error and exit status 2, never a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import kernelwright
from kernelwright.cli import main, run, tabular


@pytest.fixture
def fault(capsys, tmp_path):
    """Run a command that must fail with one sentence and leave no files behind."""

    def check(arguments, *words, status=2):
        before = set(tmp_path.rglob("*"))
        assert run([str(each) for each in arguments]) == status
        out, err = capsys.readouterr()
        assert len(err.splitlines()) == 1
        assert err.startswith("kernelwright: ")
        assert "Traceback" not in err + out
        for word in words:
            assert word in err
        assert set(tmp_path.rglob("*")) == before

    return check


@pytest.fixture
def table(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


ROWS = "".join(f"{k * k % 17},{'ab'[k % 2]}\n" for k in range(20))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("x,y\n", ["has a header but no rows"]),
        ("x,y\n1,a\n2\n", ["1 values in line 3"]),
        ("x,y\n1,a\n2,b,c\n", ["3 values in line 3"]),
        ("x,x,y\n1,2,a\n", ["several columns called 'x'"]),
        (b"x,y\n1,\xff\n", ["not UTF-8", "position 6 (line 2)"]),
        (b"x,y\n1,a\0\n", ["NUL byte", "line 2"]),
        ("1,2\n3,4\n", ["holds numbers"]),
        (b"\x1f\x8b\x08 not really", ["is a damaged compressed file"]),
        ("x,label\n" + ROWS, ["no target column 'y'", "It has: x, label"]),
        ("x,Y\n" + ROWS, ["did you mean 'Y'?"]),
        ("x,y\n" + ROWS.replace("b", "a"), ["only one value, 'a'"]),
        ("x,y\n" + "".join(f"{k % 3},{k + 0.25}\n" for k in range(30)) + "1,cheap\n", ["'cheap' in line 32"]),
        ("x,y\n" + "".join(f"{k % 3},{k + 0.25}\n" for k in range(30)) + "1,inf\n", ["infinite", "line 32"]),
        ("x,y\n" + "".join(f"{k % 3},2020-01-{k:02d}\n" for k in range(1, 31)), ["holds dates, not numbers"]),
        ("x,y\n" + "".join(f"{k % 3},k{k}\n" for k in range(30)), ["30 classes in 30 rows"]),
        ("y\n" + "a\nb\n" * 10, ["no column besides the target"]),
        ("x,y\n" + "1,a\n1,b\n" * 10, ["no column to learn from"]),
    ],
)
def test_tables_that_cannot_be_learned_from(fault, table, tmp_path, content, words):
    fault(["fit", table(content), "--target", "y", "-o", tmp_path / "m.kw"], *words)


def test_files_and_places_that_are_not_there(fault, table, files, tmp_path, monkeypatch):
    fit = ["fit", files.train, "--target", "species", "-o"]
    fault(["fit", tmp_path / "none.csv", "-t", "y", "-o", tmp_path / "m.kw"], "There is no file", "none.csv")
    fault(["fit", tmp_path, "-t", "y", "-o", tmp_path / "m.kw"], "There is no file in the folder")
    fault([*fit, tmp_path], "it is a folder")
    fault([*fit, tmp_path / "no" / "m.kw"], "there is no folder")
    fault([*fit, "/dev/full"], "not a regular file")
    fault([*fit, "-"], "cannot be written to standard output")
    fault([*fit, tmp_path / "m.kw", "--report", tmp_path], "it is a folder")
    fault(["predict", files.model, files.test, "-o", tmp_path / "no" / "out.csv"], "there is no folder")
    fault(["predict", tmp_path / "none.kw", files.test], "There is no file", "none.kw")
    fault(["predict", files.model, files.test, "-o", "/dev/full"], "No space left on device")
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    fault([*fit, tmp_path / "m.kw"], "is read-only")
    fault(["predict", files.model, files.test, "-o", tmp_path / "out.csv"], "is read-only")


def test_a_full_disk_leaves_the_old_file(fault, files, tmp_path, monkeypatch):
    (tmp_path / "out.csv").write_text("old")

    def full(*arguments):
        raise OSError(28, "No space left on device", str(tmp_path / "out.csv"))

    monkeypatch.setattr("os.replace", full)
    fault(["predict", files.model, files.test, "-o", tmp_path / "out.csv"], "out.csv: No space left on device")
    assert (tmp_path / "out.csv").read_text() == "old"
    fault(["fit", files.train, "-t", "species", "--no-cv", "--json", "-o", tmp_path / "m.kw"], "No space left")


def test_too_little_memory_is_a_sentence(fault, files, tmp_path, monkeypatch):
    fit = ["fit", files.train, "--target", "species", "-o", tmp_path / "m.kw"]
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 100.0)
    fault(fit, "needs about")

    def none(*arguments, **choices):
        raise MemoryError

    monkeypatch.setattr(tabular, "scan_table", none)
    fault(fit, "not enough memory")


def test_files_that_are_no_models(fault, files, tmp_path):
    fault(["predict", files.train, files.test], "train.csv")
    fault(["evaluate", files.train, files.test], "train.csv")
    fault(["predict", files.kernel, files.test], "holds a model of kernelwright learn-kernel")
    fault(["apply-kernel", files.model, files.objects], "holds a model of kernelwright fit")
    other = tmp_path / "other.kw"
    kernelwright.save(kernelwright.EmbeddingClassifier(), other)
    fault(["predict", other, files.test], "holds a EmbeddingClassifier")
    half = tmp_path / "half.kw"
    half.write_bytes(Path(files.model).read_bytes()[:2000])
    fault(["predict", half, files.test], "half.kw")


def test_tables_that_a_model_cannot_take(fault, files, tmp_path):
    def changed(**columns):
        path = tmp_path / "changed.csv"
        files.frame[90:].astype(object).assign(**columns).to_csv(path, index=False)
        return path

    lacking = tmp_path / "lacking.csv"
    files.frame[90:].drop(columns=["town", "petal_width"]).to_csv(lacking, index=False)
    fault(["predict", files.model, lacking], "has no columns 'petal_width' (did you mean 'sepal_width'?), 'town'")
    words = ["1.5"] * 5 + ["abc"] + ["2"] * 54
    fault(["predict", files.model, changed(petal_width=words)], "held numbers in training", "'abc' in line 7")
    fault(["evaluate", files.model, changed(species="rose")], "a class 'rose' in line 2", "It knows: setosa")
    fault(["evaluate", files.model, files.test, "--target", "specis"], "did you mean 'species'?")
    fault(["predict", files.model, changed(prediction=1), "--keep-columns"], "already has a column 'prediction'")
    fault(["predict", files.model, files.test, "--sets", "2"], "between 0 and 1")


def test_similarities_that_do_not_fit(fault, files, table, tmp_path):
    objects = table("id,x,y\na,1,2\nb,2,5\nc,3,1\nd,5,5\n", "objects.csv")

    def learn(text, *words, features=objects):
        fault(["learn-kernel", features, table(text, "s.csv"), "-o", tmp_path / "k.kw"], *words)

    table("", "s.csv")
    learn("1,2,3,4\n2,1,3,4\n", "is not square")
    learn("1,2,3,4\n2,1,3,4\n3,9,1,4\n4,4,4,1\n", "is not symmetric: 'b' with 'c' is 3")
    learn("id,a,b,c,z\na,1,2,3,4\nb,2,1,3,4\nc,3,3,1,4\nz,4,4,4,1\n", "similarities of 'z'", "These are: a, b, c, d")
    learn("1,2,3\n" * 3, "not among the objects")
    learn("1,1,1,1\n" * 4, "a constant says nothing")
    learn("1,2,,\n2,1,,\n,,,\n,,,\n", "2 objects have known similarities")
    twice = table("id,x\na,1\na,2\nc,3\nd,5\n", "twice.csv")
    fault(
        ["learn-kernel", twice, objects, "-o", tmp_path / "k.kw", "--id", "id"],
        "the object 'a' twice; the second time in line 3",
    )
    fault(["learn-kernel", objects, objects, "-o", tmp_path / "k.kw", "--id", "name"], "no column 'name'")
    far = table("id,height,weight\na,1,x\n", "far.csv")
    fault(["apply-kernel", files.kernel, far], "held numbers in training", "'x' in line 2")


def test_the_command_line_itself(fault):
    fault(["fit"], "Missing argument 'TABLE'", "See kernelwright fit --help.")
    fault(["fit", "t.csv", "--colour", "red"], "No such option", "--colour")
    fault(["fit", "t.csv", "-t", "y", "-o", "m.kw", "--folds", "1"], "--folds")
    fault(["learn"], "No such command 'learn'")
    fault(["reproduce", "table9"], "There is no experiment 'table9'. Known: all, hsu-figure1,")
    fault(["demo", "--output", "/dev/null/x"], "Cannot use /dev/null/x: Not a directory.")


def test_a_fault_of_our_own_is_a_sentence_too(fault, files, monkeypatch):
    def broken(*arguments, **choices):
        raise KeyError("surprise")

    monkeypatch.setattr(tabular, "scan_table", broken)
    fault(["predict", files.model, files.test], "This is a bug in kernelwright: KeyError: 'surprise'", status=70)


def test_an_interrupt_is_one_line_and_status_130(fault, files, monkeypatch):
    def interrupted(*arguments, **choices):
        raise KeyboardInterrupt

    monkeypatch.setattr(tabular, "scan_table", interrupted)
    fault(["predict", files.model, files.test], "stopped", status=130)


@pytest.mark.parametrize(
    "line",
    [
        "fit {t} -t y -o {t}",
        "fit {t} -t y -o {d}/m.kw --report {d}/m.kw",
        "fit {t} -t y -o {d}/m.kw --report {t}",
        "predict {f.model} {t} -o {f.model}",
        "predict {f.model} {t} -o {d}/../{d.name}/t.csv",
        "report {f.model} -o {f.model}",
        "learn-kernel {f.objects} {f.similarities} -o {f.similarities}",
        "apply-kernel {f.kernel} {f.objects} -o {f.objects}",
    ],
)
def test_a_file_is_not_replaced_by_what_is_made_of_it(files, table, tmp_path, fault, line):
    words = line.format(t=table("x,y\n" + ROWS), d=tmp_path, f=files).split()
    kept = {path: path.read_bytes() for path in files.folder.iterdir()}
    fault(words, "is given twice")
    assert {path: path.read_bytes() for path in files.folder.iterdir()} == kept


def test_a_column_to_leave_out_must_be_there(files, tmp_path, fault):
    words = ["learn-kernel", files.objects, files.similarities, "-o", tmp_path / "k.kw", "--drop", "wieght"]
    fault(words, "no column 'wieght'", "did you mean 'weight'?")


def test_a_reader_that_has_gone_is_no_reason_to_speak(files, monkeypatch, capsys):
    def closed(*arguments):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(tabular, "write_table", closed)
    assert run(["predict", files.model, files.test]) == 1
    assert capsys.readouterr().err == ""


@pytest.fixture
def process():
    """Undo what the entry point sets for the whole process: signal handlers, and hooks for lost exceptions."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hooks = sys.unraisablehook, sys.excepthook
    yield
    for number, handler in signals.items():
        signal.signal(number, handler)
    sys.unraisablehook, sys.excepthook = hooks


@pytest.mark.usefixtures("process")
def test_text_that_the_terminal_lacks_is_replaced(files, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kernelwright", "evaluate", "Köln.kw", files.test])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2


# through the real entry point ----------------------------------------------------------------------------


def python(*arguments, **options):
    command = [sys.executable, "-m", "kernelwright", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.slow
def test_the_module_runs_and_refuses():
    done = python("predict", "none.kw", "none.csv")
    assert done.returncode == 2
    assert done.stderr == "kernelwright: There is no file none.kw.\n"


@pytest.mark.slow
def test_standard_input_and_a_reader_that_stops_early(files):
    code = f"{sys.executable} -m kernelwright predict {files.model} - < {files.test} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[0].startswith("id,prediction,")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_standard_output_that_is_full(files):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "kernelwright", "predict", files.model, files.test]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr == "kernelwright: No space left on device.\n"


STOP_IN_THE_MIDDLE = """
import ctypes, os, signal, sys
from kernelwright import cli
from kernelwright.cli import tabular

def interrupt():
    os.kill(os.getpid(), signal.{signal})
    for _ in range(1000):
        pass

class Dying:
    def __del__(self):
        interrupt()

def destructor():
    thing = Dying()
    del thing

def printed():  # this calls PyErr_Print, as modules that use NumPy's C interface do when they cannot be imported
    ctypes.pythonapi.PyRun_SimpleString(b"import __main__; __main__.interrupt()")

def failed_import():
    printed()
    raise ImportError("numpy.core.multiarray failed to import")

def slow(*arguments):
    {place}()
    for _ in range(10**9):
        pass

tabular.check_model = slow
sys.argv = ["kernelwright", "predict", "none.kw", "none.csv"]
cli.main()
"""


@pytest.mark.parametrize("place", ["destructor", "printed", "failed_import"])
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.slow
def test_a_signal_ends_a_command_even_where_python_forgets_exceptions(name, status, place):
    code = STOP_IN_THE_MIDDLE.format(signal=name, place=place)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (status, "kernelwright: stopped.\n")
