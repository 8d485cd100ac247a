"""Memory limits of the process are known before torch is imported; a job that does not fit is refused."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from kernelwright.errors import MemoryBudgetError
from kernelwright.numerics import memory
from kernelwright.numerics.memory import Room, in_words, room_below_limits

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
MIB = 2**20


def python(code: str, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def limited(mib: int, kind: str = "RLIMIT_AS"):
    def limit():
        import resource

        resource.setrlimit(getattr(resource, kind), (mib * MIB, mib * MIB))

    return limit


@linux
@pytest.mark.parametrize(("kind", "place"), [("RLIMIT_AS", 0), ("RLIMIT_DATA", 1)])
def test_the_room_is_what_can_still_be_mapped(kind, place):
    code = """
import mmap, sys
from kernelwright.numerics.memory import room_below_limits
assert "numpy" not in sys.modules
room = room_below_limits()
held = mmap.mmap(-1, int(room[PLACE]) - 2**20, flags=mmap.MAP_PRIVATE)
left = room_below_limits()[PLACE]
try:
    more = mmap.mmap(-1, 2**21, flags=mmap.MAP_PRIVATE)
except OSError:
    print(room, left < 2**21)
"""
    done = python(code.replace("PLACE", str(place)), preexec_fn=limited(500, kind))
    assert done.stdout.endswith("True\n"), done.stderr
    assert "inf" in done.stdout  # the other one


def test_what_is_not_limited_has_room_without_end(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert room_below_limits() == Room(math.inf, math.inf)


@pytest.mark.parametrize("room", [Room(addresses=200.0 * MIB), Room(data=200.0 * MIB)])
def test_free_memory_ends_at_the_limits_of_the_process(monkeypatch, room):
    monkeypatch.setattr(memory, "room_below_limits", lambda: room)
    assert memory.free_memory() == 200.0 * MIB - memory.LOADED_LATER
    with pytest.raises(MemoryBudgetError, match=r"136 MiB are left by the limit .* \(ulimit -v or -d\)\. Do"):
        memory.check_memory(125.0 * MIB, "A fit", "Do less.")
    memory.check_memory(120.0 * MIB, "A fit", "Do less.")


def test_a_limit_that_is_passed_leaves_nothing(monkeypatch):
    monkeypatch.setattr(memory, "room_below_limits", lambda: Room(addresses=1.0))
    assert memory.free_memory() == 0.0


def test_without_limits_free_memory_is_the_system_s(monkeypatch):
    monkeypatch.setattr(memory, "room_below_limits", Room)
    assert 2**20 < memory.free_memory() < 2**50


def test_free_memory_is_a_plausible_number_of_bytes():
    assert 2**20 < memory.free_memory() < 2**50


def test_a_job_that_does_not_fit_is_refused_with_numbers_and_advice(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2.0 * 2**30)
    memory.check_memory(1.7 * 2**30, "A fit", "Use fewer rows.")
    with pytest.raises(
        MemoryBudgetError, match=r"A fit needs about 1\.9 GiB, and 2\.0 GiB are free\. Use fewer rows\."
    ):
        memory.check_memory(1.9 * 2**30, "A fit", "Use fewer rows.")


def test_sizes_have_units_that_show_them():
    assert [in_words(n) for n in (1e3, 5e6, 2.0**30, 1e12)] == ["0 MiB", "5 MiB", "1.0 GiB", "931.3 GiB"]


FIT = """
import resource
import numpy as np
from kernelwright import EmbeddingClassifier, MemoryBudgetError
from kernelwright.learning import Auto
X = np.random.default_rng(0).normal(size=(3000, 4))
y = (X[:, 0] > 0).astype(int)
EmbeddingClassifier(learn=Auto(max_iter=1)).fit(X[:100], y[:100])  # all is loaded now
with open("/proc/self/statm") as numbers:
    mapped = int(numbers.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + 2**28, resource.RLIM_INFINITY))
EmbeddingClassifier(learn=Auto(max_iter=1)).fit(X[:100], y[:100])
try:
    EmbeddingClassifier(learn=Auto(max_iter=1), solver="exact").fit(X, y)
except MemoryBudgetError as error:
    print(error)
"""


@linux
@pytest.mark.slow
def test_a_fit_that_the_limit_leaves_no_room_for_is_refused_and_a_small_one_is_not():
    done = python(FIT)
    assert "An exact embedding of 3000 distinct rows needs about 275 MiB" in done.stdout, done.stderr
    assert "left by the limit set for this process" in done.stdout


def write_table(path, n):
    X = np.random.default_rng(0).normal(size=(n, 4)).round(3)
    lines = [",".join([*map(str, row), "ab"[int(row[0] > 0)]]) for row in X]
    path.write_text("\n".join(["a,b,c,d,y", *lines, ""]))


COMMAND = """
import resource, sys
from kernelwright.cli import fitting, run, scoring
with open("/proc/self/statm") as numbers:
    mapped = int(numbers.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + 250 * 2**20, resource.RLIM_INFINITY))
sys.exit(run(sys.argv[1:]))
"""


@linux
@pytest.mark.slow
def test_the_command_refuses_a_table_that_the_limit_leaves_no_room_for(tmp_path):
    write_table(tmp_path / "t.csv", 3000)
    model = tmp_path / "m.kw"
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = python(COMMAND, "fit", tmp_path / "t.csv", "-t", "y", "--no-cv", "-o", model, env=os.environ | one_thread)
    assert done.returncode == 2, done.stderr
    assert "kernelwright: solver=" in done.stderr
    assert "are left by the limit set for this process (ulimit -v or -d)." in done.stderr
    assert "Traceback" not in done.stderr
    assert not model.exists()


@linux
@pytest.mark.parametrize(("kind", "name"), [("RLIMIT_AS", "ulimit -v"), ("RLIMIT_DATA", "ulimit -d")])
@pytest.mark.parametrize("mib", [100, 250])
def test_a_limit_below_what_the_program_itself_needs_is_one_sentence(tmp_path, kind, name, mib):
    command = [sys.executable, "-m", "kernelwright", "fit", str(tmp_path / "t.csv"), "-t", "y"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited(mib, kind))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"kernelwright: The memory limit of this process ({name}) leaves" in done.stderr
    assert "Raise the limit." in done.stderr


@linux
@pytest.mark.parametrize("module", ["kernelwright.cli", "kernelwright.cli.fitting"])
def test_a_library_that_cannot_be_mapped_is_the_limit_too(tmp_path, module):
    """Between what the program needs at least and what it needs on this machine, also inside a command."""
    code = """
import sys
from kernelwright import __main__
class Broken:
    def find_spec(self, name, *_):
        if name == module:
            raise ImportError(error)
module, error, *words = sys.argv[1:]
sys.argv[1:] = words
sys.meta_path.insert(0, Broken())
__main__.main()
"""
    write_table(tmp_path / "t.csv", 20)
    command = ["fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.kw"]
    done = python(code, module, "libtorch_cpu.so: failed to map segment from shared object", *command)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Raise the limit." in done.stderr
    other = python(code, module, "No module named 'typer'", *command)
    assert other.returncode == (1 if module == "kernelwright.cli" else 70)
    assert "No module named 'typer'" in other.stderr
