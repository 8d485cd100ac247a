import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelwright.storage.files import whole_file, write_whole


def test_a_file_takes_the_place_of_the_old_one_only_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def interrupted() -> None:
        with whole_file(path) as file:
            file.write(b"new, but not ")
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        interrupted()
    assert path.read_bytes() == b"old"
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_may_be_read_by_whoever_may_read_a_new_one(tmp_path):
    write_whole(tmp_path / "whole", b"")
    (tmp_path / "plain").write_bytes(b"")
    assert os.stat(tmp_path / "whole").st_mode == os.stat(tmp_path / "plain").st_mode


def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "private"
    path.write_bytes(b"")
    path.chmod(0o600)
    write_whole(path, b"secret")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write_whole(tmp_path / "pipe", b"")
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, b"")
    assert (tmp_path / "pipe").is_fifo()
    assert list(tmp_path.iterdir()) == [tmp_path / "pipe"]


def test_what_a_killed_process_left_is_removed_by_the_next_to_write_the_same_file(tmp_path):
    path = tmp_path / "model.kw"
    code = f"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from kernelwright.storage.files import whole_file
with whole_file({str(path)!r}) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".model.kw.")
    write_whole(tmp_path / "other.kw", b"")
    assert left.exists()
    write_whole(path, b"new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.kw", "other.kw"]


def test_a_file_that_is_being_written_is_not_taken_for_one_that_was_left(tmp_path):
    path = tmp_path / "model.kw"
    with whole_file(path) as slow:
        slow.write(b"slow")
        write_whole(path, b"fast")
    assert path.read_bytes() == b"slow"


def test_many_writers_of_one_file_leave_one_whole_file(tmp_path):
    def write(number: int) -> None:
        for _ in range(20):
            write_whole(tmp_path / "file", bytes([number]) * 100_000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    content = (tmp_path / "file").read_bytes()
    assert content == content[:1] * 100_000
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(OSError, match=r"no/such/model\.kw"):
        write_whole(tmp_path / "no" / "such" / "model.kw", b"")


def test_long_names_and_links(tmp_path):
    long = tmp_path / ("ü" * 120)
    write_whole(long, b"long")
    (tmp_path / "link").symlink_to(long)
    write_whole(tmp_path / "link", b"through the link")
    assert long.read_bytes() == b"through the link"
    assert (tmp_path / "link").is_symlink()
