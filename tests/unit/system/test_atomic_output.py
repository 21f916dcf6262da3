"""Files that are written as a whole or not at all."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from gilscope.system.atomic_output import check_writable, write_atomically


def _fill(file: BinaryIO) -> None:
    file.write(b"new")


def _fail(file: BinaryIO) -> None:
    file.write(b"half of it")
    file.flush()
    raise OSError(28, "No space left on device")


def test_failure_leaves_what_was_there(tmp_path: Path) -> None:
    """
    The older report is whole, and nothing lies beside it.
    """
    file = tmp_path / "report"
    file.write_bytes(b"old")

    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, _fail)

    assert (b"old", [file]) == (file.read_bytes(), list(tmp_path.iterdir()))


def test_nothing_is_there_after_the_first_failure(tmp_path: Path) -> None:
    """
    Where there was no file, there is none.
    """
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "report", _fail)

    assert [] == list(tmp_path.iterdir())


def test_mode_is_that_of_open(tmp_path: Path) -> None:
    """
    A new file has what the mask leaves, and one that is replaced keeps what it had.
    """
    new, old = tmp_path / "new", tmp_path / "old"
    old.touch()
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write_atomically(new, _fill)
        write_atomically(old, _fill)
    finally:
        os.umask(before)

    assert [0o640, 0o640] == [stat.S_IMODE(file.stat().st_mode) for file in (new, old)]
    assert b"new" == new.read_bytes() == old.read_bytes()


def test_mode_of_what_is_for_its_owner_alone(tmp_path: Path) -> None:
    """
    It is that from the beginning, not only when the file is there.
    """
    file = tmp_path / "secret"

    def look(_: BinaryIO) -> None:
        (beside,) = tmp_path.iterdir()
        assert 0o600 == stat.S_IMODE(beside.stat().st_mode)

    write_atomically(file, look, mode=0o600)

    assert 0o600 == stat.S_IMODE(file.stat().st_mode)


def test_link_is_followed(tmp_path: Path) -> None:
    """
    The link stays one, and the file that it leads to is replaced.
    """
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to("elsewhere/report")
    write_atomically(link, _fill)
    write_atomically(link, _fill)

    assert link.is_symlink()
    assert b"new" == (folder / "report").read_bytes()
    assert [link, folder] == sorted(tmp_path.iterdir(), reverse=True)


def test_pipe_is_written_directly(tmp_path: Path) -> None:
    """
    A named pipe is still one afterwards, and to check it does not wait for its reader.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, _fill)
        assert b"new" == os.read(reader, 10)
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_open_file_is_written_directly(tmp_path: Path) -> None:
    """
    /dev/fd/N means the file that is open, also if it has no name any more.
    """
    file = tmp_path / "output"
    with file.open("w+b") as opened:
        file.unlink()
        write_atomically(f"/dev/fd/{opened.fileno()}", _fill)

        assert b"new" == opened.read()
    assert [] == list(tmp_path.iterdir())


def test_check_changes_nothing(tmp_path: Path) -> None:
    """
    What could not be written is said before, and what could is not made yet.
    """
    check_writable(tmp_path / "report")
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)
    with pytest.raises(FileNotFoundError):
        check_writable(tmp_path / "none" / "report")

    assert [] == list(tmp_path.iterdir())
