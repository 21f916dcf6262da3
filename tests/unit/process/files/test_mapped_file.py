"""Opening the very file that a process maps."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.errors import NotPermitted, NotPython
from gilscope.process import procfs
from gilscope.process.files import mapped_file, regular_file
from gilscope.process.files.mapped_file import leads_to, open_mapped
from gilscope.process.procfs import Mapping

_CONTENT = b"\x7fELF" + os.urandom(8000)


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that the kernel does not let follow /proc/PID/map_files."""
    whole = regular_file.look_up

    def denied(path: str) -> int:
        if "map_files" in path:
            raise PermissionError(1, "Operation not permitted")
        return whole(path)

    monkeypatch.setattr(mapped_file, "look_up", denied)


@contextmanager
def _mapped(file: Path) -> Iterator[Mapping]:
    """Map *file* into this very process."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_CONTENT)
    inode = file.stat().st_ino
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ):
        (mapping,) = [each for each in procfs.read_maps(os.getpid()) if each.inode == inode]
        yield mapping


@pytest.mark.usefixtures("no_links")
@pytest.mark.parametrize(
    "folder", ["a\nb", "a\\012b", "a\rb", "a\u2028b", "a (deleted)/b", '$(id)`"', "x" * 200]
)
def test_a_folder_with_an_odd_name(tmp_path: Path, folder: str) -> None:
    """
    The file is found by its name, whatever the name holds.
    """
    file = tmp_path / folder / "python3"
    with _mapped(file) as mapping:
        found = open_mapped(os.getpid(), mapping)

        assert (file.stat().st_dev, file.stat().st_ino) == found.identity
        assert leads_to(os.getpid(), found)


@pytest.mark.usefixtures("no_links")
@pytest.mark.parametrize("trap", ["pipe", "link", "copy"])
def test_a_trap_under_the_name_that_is_meant_to_be_guessed(tmp_path: Path, trap: str) -> None:
    r"""
    A file in a folder a\012 is not the one in a folder whose name has a newline.
    """
    other = tmp_path / "a\n" / "python3"
    other.parent.mkdir()
    if trap == "pipe":
        os.mkfifo(other)
    elif trap == "link":
        other.symlink_to("/etc/shadow")
    else:
        other.write_bytes(_CONTENT)
    file = tmp_path / "a\\012" / "python3"
    with _mapped(file) as mapping:
        assert file.stat().st_ino == open_mapped(os.getpid(), mapping).identity[1]
        file.rename(tmp_path / "elsewhere")
        still = open_mapped(os.getpid(), _only(tmp_path / "elsewhere"))
        assert (tmp_path / "elsewhere").stat().st_ino == still.identity[1]
        # What stands at the old name, in either reading, is never taken for it.
        with pytest.raises((NotPermitted, NotPython)):
            open_mapped(os.getpid(), mapping)


def _only(file: Path) -> Mapping:
    inode = file.stat().st_ino
    (mapping,) = [each for each in procfs.read_maps(os.getpid()) if each.inode == inode]
    return mapping


@pytest.mark.usefixtures("no_links")
def test_a_copy_under_its_name_is_not_the_file(tmp_path: Path) -> None:
    """
    The same bytes in another inode, as after a mount over the name: nobody would run into a probe.
    """
    copy = tmp_path / "copy"
    copy.write_bytes(_CONTENT)
    with (
        _mapped(tmp_path / "python3") as mapping,
        pytest.raises(NotPermitted, match="cannot open the file"),
    ):
        open_mapped(os.getpid(), replace(mapping, path=str(copy)))


def test_a_file_that_was_removed_is_said_to_be(tmp_path: Path) -> None:
    """
    Who can follow the kernel's own links finds it; nobody is told that it is at its name.
    """
    with _mapped(tmp_path / "python3") as mapping:
        found = open_mapped(os.getpid(), mapping)
        (tmp_path / "python3").unlink()

        assert not leads_to(os.getpid(), found)
        assert _CONTENT == found.held.read(0, 1 << 20)


def test_a_process_that_is_replacing_its_program() -> None:
    """
    Its old memory cannot be read any more, which says nothing of the file.
    """
    inode = Path("/etc/passwd").stat().st_ino
    mapping = Mapping(0x1000, 0x2000, False, 0, inode, "/etc/passwd", False)

    with pytest.raises(NotPython, match="changed while gilscope inspected it"):
        open_mapped(os.getpid(), mapping)


def test_nothing_stays_open_of_a_process_that_ends_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Its file was open when its memory went; also while the error, and with it its frames, is held.
    """

    def ended(pid: int) -> object:
        raise ProcessLookupError(3, "No such process", pid)

    monkeypatch.setattr(mapped_file, "ProcessMemory", ended)
    with _mapped(tmp_path / "python3") as mapping:
        before = {each.name for each in Path("/proc/self/fd").iterdir()}
        with pytest.raises(NotPython) as refused:
            open_mapped(os.getpid(), mapping)
        assert before == {each.name for each in Path("/proc/self/fd").iterdir()}

    assert refused.tb is not None
