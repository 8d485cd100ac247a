import os

import pytest

from kernelwright.files import whole_file, write_whole


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
