"""Captures in a folder."""

import errno
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.dump.files import CaptureFiles, name_of
from support.recordings.dump import held


def test_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    """
    It has the line, and a name that says when and of which process.
    """
    path = CaptureFiles(tmp_path, 3).write(held(), '{"version": 1}')

    assert '{"version": 1}\n' == path.read_text()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert path.name.startswith("gilscope-20231114T221320.000Z-7-")
    assert [path] == list(tmp_path.iterdir())


def test_the_oldest_are_removed(tmp_path: Path) -> None:
    """
    Those of earlier agents too, and nothing that is somebody else's.
    """
    others = [tmp_path / "notes.json", tmp_path / "gilscope-2023.json"]
    for other in others:
        other.touch()
    dumps = [replace(held(), at_ns=held().at_ns + second * 1_000_000_000) for second in range(5)]
    (tmp_path / name_of(dumps[0], "0" * 8)).touch()
    written = [CaptureFiles(tmp_path, 2).write(dump, "{}") for dump in dumps[1:]]

    assert {*others, *written[-2:]} == set(tmp_path.iterdir())


def test_names_sort_by_time() -> None:
    """
    Whatever the numbers of the processes.
    """
    later = replace(held(), at_ns=held().at_ns + 2_000_000, pid=1)

    assert name_of(held(), "f" * 8) < name_of(later, "0" * 8)


def test_a_folder_that_has_gone(tmp_path: Path) -> None:
    """
    The error names what could not be written.
    """
    with pytest.raises(FileNotFoundError):
        CaptureFiles(tmp_path / "gone", 2).write(held(), "{}")


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What fails on a descriptor has no name of its own; one that has keeps it.
    """
    errors = [OSError(errno.ENOSPC, "full"), FileNotFoundError(errno.ENOENT, "gone", "/captures")]

    def fail(*_: object, **__: object) -> None:
        raise errors.pop(0)

    monkeypatch.setattr("gilscope.dump.files.write_atomically", fail)
    with pytest.raises(OSError, match="full") as full:
        CaptureFiles(tmp_path, 1).write(held(), "{}")
    with pytest.raises(FileNotFoundError) as gone:
        CaptureFiles(tmp_path, 1).write(held(), "{}")

    assert str(full.value.filename).startswith(f"{tmp_path}/gilscope-20231114T221320.000Z-7-")
    assert "/captures" == gone.value.filename
