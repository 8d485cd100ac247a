"""Run a few trials of each part. `make robustness` runs all of them."""

import importlib.util
import sys

import pytest

from robustness import concurrency, load, resources, security
from robustness.faults import python
from robustness.run import PARTS

if sys.platform != "linux":
    pytest.skip("these faults need Linux", allow_module_level=True)


def failures(rows):
    return {row["what"]: row["failures"] for row in rows if row["failures"]}


@pytest.mark.parametrize("part", [part for part in PARTS if importlib.util.find_spec(f"robustness.{part}")])
def test_every_part_has_figures(part):
    assert callable(importlib.import_module(f"robustness.{part}").figures)


@pytest.mark.slow
def test_interruptions():
    """Use a separate process: a fork does not copy the threads of the test runner."""
    code = "from robustness.interruptions import figures\nprint(sum(row['failures'] for row in figures(quick=True)))"
    done = python(code, check=False)
    assert done.stdout.strip() == "0", done.stderr


def test_memory_that_is_not_there_is_refused():
    assert resources._refusals()["failures"] == 0


def test_disks_that_are_full_or_read_only(tmp_path):
    assert failures([resources._full_disk(tmp_path), resources._read_only(tmp_path)]) == {}


def test_many_writers(tmp_path):
    assert resources._many_writers(tmp_path, 3)["failures"] == 0


@pytest.mark.slow
def test_threads_and_what_is_global():
    models = concurrency._models(quick=True)
    rows = [concurrency._threads(models, 1), concurrency._fits_in_threads(2), concurrency._global_state()]
    assert failures(rows) == {}


@pytest.mark.slow
def test_many_rows_at_flat_memory():
    assert load._stream(6)["failures"] == 0


def test_files_from_strangers(tmp_path):
    rows = [security._damaged_models(tmp_path, 50), security._classes(), security._formulas(tmp_path)]
    assert failures(rows) == {}
