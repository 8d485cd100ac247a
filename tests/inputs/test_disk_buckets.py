"""Rows brought together on disk: the buckets, the rows in them and their order are those of an array in memory."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from kernelwright.inputs.blocks import Block, SlicedRows
from kernelwright.inputs.source_rows import SourceRows
from kernelwright.inputs.sources import ArrayParts, ChunkedRows
from kernelwright.storage.fit_folder import FitFolder
from tools.processes import peak_of

N = 500


@dataclass(frozen=True)
class Sums:
    total: np.ndarray
    rows: np.ndarray


class Work:
    """Counts its calls."""

    def __init__(self, factor=1.0):
        self.factor, self.calls = factor, []

    def route(self, block):
        """Return the buckets of rows in two trees: 0 to 6 by the first column, 7 to 11 by the second; 3 is empty."""
        first = np.clip((block.X[:, 0] * 7).astype(int), 0, 6)
        return np.column_stack([np.where(first == 3, 4, first), 7 + np.clip((block.X[:, 1] * 5).astype(int), 0, 4)])

    def sums(self, number, block, rows, given) -> Sums:
        self.calls.append(number)
        factor = self.factor if given is None else given
        return Sums(factor * block.weights @ block.X + block.labels.sum(), rows)


def everything(number, block, rows, given):
    return number, *block, rows, given


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(N, 3)), rng.integers(0, 3, N), rng.uniform(1, 2, N)


def source_rows(rows, folder=None):
    X, y, weights = rows
    parts = [(X[own], y[own], weights[own]) for own in np.split(np.arange(N), [120, 400])]
    found = SourceRows(ChunkedRows(parts), folder)
    found.read(None, "a test")
    return found


def test_buckets_are_those_of_an_array(rows):
    X, y, weights = rows
    here = SlicedRows(Block(X, y, weights / weights.mean())).gathered(Work().route, 12)
    there = source_rows(rows).gathered(Work().route, 12)
    np.testing.assert_array_equal(there.sizes, here.sizes)
    answers = dict(there.map(everything, lambda number: number**2))
    for number, expected in here.map(everything, lambda number: number**2):
        if here.sizes[number]:
            for one, other in zip(answers.pop(number), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-14)
    assert not answers


def test_numbers_as_targets_come_back_as_they_were(rows):
    X, _, weights = rows
    y = X[:, 0] ** 2
    y[7] = np.nan
    found = SourceRows(ArrayParts(X, y, weights))
    with pytest.warns(UserWarning, match="1 rows have no target"):
        found.read_numbers()
    there = found.gathered(Work().route, 12)
    seen = [(block, index) for _, (block, index) in there.map(lambda number, block, index, given: (block, index))]
    kept = np.delete(np.arange(N), 7)
    for block, index in seen:
        np.testing.assert_array_equal(block.labels[:, 0], y[kept][index])
        np.testing.assert_array_equal(block.X, X[kept][index])
    assert sum(len(index) for _, index in seen) == 2 * (N - 1)


def test_a_temporary_folder_is_removed(rows):
    gathered = source_rows(rows).gathered(Work().route, 12)
    folder = gathered.path
    assert list(folder.iterdir())
    del gathered
    assert not folder.exists()


def solved(rows, path, factor=1.0, stop=None):
    """Return sums of all buckets, and again with an argument, and how often they were computed."""
    work = Work(factor)
    with FitFolder(path) as folder:
        gathered = source_rows(rows, folder).gathered(work.route, 12)
        found = []
        for _, each in gathered.map(work.sums):
            found.append(each.total)
            if len(found) == stop:
                return found, work.calls
        found += [each.total for _, each in gathered.map(work.sums, lambda number: np.array(2.0 * factor))]
    return found, work.calls


def test_what_was_solved_is_not_solved_again(rows, tmp_path):
    solved(rows, tmp_path, stop=4)
    found, calls = solved(rows, tmp_path)
    assert calls == [0, *[5, 6, 7, 8, 9, 10, 11], *[0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]]  # the first is the probe
    again, calls = solved(rows, tmp_path)
    assert calls == [0]
    np.testing.assert_array_equal(found, again)
    fresh, _ = solved(rows, tmp_path / "solved-elsewhere")
    np.testing.assert_array_equal(found, fresh)


def test_results_of_another_function_do_not_count(rows, tmp_path):
    solved(rows, tmp_path)
    found, calls = solved(rows, tmp_path, factor=3.0)
    assert len(calls) == 1 + 11 + 11
    expected, _ = solved(rows, tmp_path / "solved-elsewhere", factor=3.0)
    np.testing.assert_array_equal(found, expected)


def test_rows_that_were_routed_otherwise_are_routed_again(rows, tmp_path):
    solved(rows, tmp_path)

    class Other(Work):
        def route(self, block):
            return super().route(block)[:, ::-1]

    with FitFolder(tmp_path) as folder:
        gathered = source_rows(rows, folder).gathered(Other().route, 12)
        assert not list(tmp_path.glob("solved-*"))
        assert gathered.sizes.sum() == 2 * N


def test_rows_that_were_not_all_routed_are_routed_again(rows, tmp_path):
    solved(rows, tmp_path, stop=1)
    (tmp_path / "routed.npz").unlink()
    with open(tmp_path / "bucket-000000.rows", "ab") as file:
        file.write(bytes(13))
    found, calls = solved(rows, tmp_path)
    assert len(calls) == 1 + 11 + 11
    np.testing.assert_array_equal(found, solved(rows, tmp_path)[0])


def test_a_damaged_result_is_computed_again(rows, tmp_path):
    expected, _ = solved(rows, tmp_path)
    (tmp_path / "solved-1-000002.npz").write_bytes(b"half a file")
    found, calls = solved(rows, tmp_path)
    assert calls == [0, 2]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_rows():
    def chunks():
        for seed in range(40):
            yield np.random.default_rng(seed).uniform(size=(10_000, 20)), np.arange(10_000) % 3

    def gather():
        found = SourceRows(ChunkedRows(chunks))
        found.read(None, "a test")
        seen = found.gathered(lambda block: (block.X[:, :1] * 64).astype(int), 64)
        assert sum(len(rows) for _, rows in seen.map(lambda number, block, rows, given: rows[:])) == 400_000

    gather()  # so that nothing is loaded for the first time
    assert peak_of(gather) < 400_000 * 20 * 8 / 2


def test_too_small_a_disk_is_found_before_anything_is_written(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100})())
    with pytest.raises(OSError, match="Name a folder on a larger disk"):
        source_rows(rows).gathered(Work().route, 12)


def test_rows_that_change_while_they_are_read_are_an_error(rows):
    lengths = iter([100, 100, 100, 90])  # for an example, the labels, and twice for the rows

    def chunks():
        return [tuple(column[:n] for column in rows) for n in [next(lengths)]]

    found = SourceRows(ChunkedRows(chunks))
    found.read(None, "a test")
    found.take(np.arange(5))
    with pytest.raises(ValueError, match="chunk 1 has changed since its targets were read"):
        found.take(np.arange(5))


def test_the_checkpoint_of_another_fit_is_refused(rows, tmp_path):
    with FitFolder(tmp_path) as folder:
        assert folder.seed(7) == 7
        folder.claim("one", 7)
        assert folder.seed(8) == 7
        folder.claim("one", 7)
        with pytest.raises(ValueError, match="belongs to another fit"):
            folder.claim("another", 7)
        with pytest.raises(ValueError, match="Another process uses the checkpoint"):
            FitFolder(tmp_path)
    (tmp_path / "fit.json").write_text("[1]")
    with FitFolder(tmp_path) as folder, pytest.raises(ValueError, match="is not that of a checkpoint"):
        folder.seed(7)


def test_a_folder_with_other_files_is_not_taken(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"")
    with pytest.raises(ValueError, match=r"holds other files \(photo.jpg\)"):
        FitFolder(tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        FitFolder(tmp_path / "photo.jpg")


@pytest.mark.parametrize("chunks", [iter([]), [(1, 2, 3, 4)], [7]])
def test_chunks_that_are_none_are_an_error(chunks):
    with pytest.raises(ValueError, match=r"only once|must be a tuple"):
        list(ChunkedRows(chunks).parts())


def test_errors_name_the_chunk(rows):
    X, y, _ = rows
    bad = X.copy()
    bad[3, 1] = np.inf
    found = SourceRows(ChunkedRows([(X, y), (bad, y)]))
    found.read(None, "a test")
    with pytest.raises(ValueError, match="In chunk 2: Input contains infinity"):
        found.take(np.arange(5))
    short = SourceRows(ChunkedRows([(X, y[:-1])]))
    short.read(None, "a test")
    with pytest.raises(ValueError, match="In chunk 1: Found input variables with inconsistent numbers"):
        short.take(np.arange(5))
