"""The search for GIL code in a process of its own."""

import os
import shutil
import time
from pathlib import Path

import pytest

from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.process.files.regular_file import HeldFile
from gilscope.runtimes.cpython.sites import search
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.cpython.sites.search import search_sites

_PYTHON = Path("/usr/bin/python3").resolve()


def _held(path: Path) -> HeldFile:
    return HeldFile(os.open(path, os.O_RDONLY))


@pytest.fixture
def file(tmp_path: Path) -> HeldFile:
    """Some file, for children that do not read it."""
    path = tmp_path / "python3"
    path.write_bytes(b"x")
    return _held(path)


def _child_runs(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_START", code)


@pytest.mark.skipif(not _PYTHON.exists(), reason="this machine has no /usr/bin/python3")
def test_the_child_finds_what_is_there() -> None:
    """
    With what tells the very bytes in which it was found.
    """
    image = ElfImage(_PYTHON.read_bytes())

    found = search_sites(_held(_PYTHON))

    assert (image.build_id, image.digest, resolve_sites(image)) == (
        found.build_id,
        found.digest,
        found.sites,
    )


def test_what_is_wrong_with_the_file_is_said(tmp_path: Path, file: HeldFile) -> None:
    """
    The child's words are the agent's, with the same kind of error.
    """
    with pytest.raises(ElfError, match="truncated or corrupt"):
        search_sites(file)
    no_python = Path(shutil.copy("/bin/true", tmp_path))
    with pytest.raises(GilCodeNotFound):
        search_sites(_held(no_python))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import signal, os; os.kill(os.getpid(), signal.SIGXCPU)", "more than 20 s of CPU"),
        ("print('{')", "gave no answer"),
        ("print('[]')", "gave no answer"),
        ("print('{}')", "gave no answer"),
        ("print('x' * (5 << 20))", "more GIL code than any has"),
        ("raise SystemExit(3)", "ended with status 3"),
    ],
)
def test_whatever_the_child_does_ends_in_words(
    code: str, words: str, file: HeldFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It works on a stranger's file, and may have been brought to anything.
    """
    _child_runs(code, monkeypatch)

    with pytest.raises(GilCodeNotFound, match=words):
        search_sites(file)


def test_a_child_that_does_not_end_is_ended(
    file: HeldFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    At its deadline, also where it uses no CPU.
    """
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    _child_runs(code, monkeypatch)
    begin_s = time.monotonic()

    with pytest.raises(GilCodeNotFound, match="took more than 3 s"):
        search_sites(file, wall_s=3)

    assert time.monotonic() - begin_s < 50
    assert not Path(f"/proc/{note.read_text()}").exists()


def test_limits_hold_before_the_file_is_read(
    file: HeldFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A gigabyte of memory, 20 s of CPU, no core file.
    """
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from gilscope.runtimes.cpython.sites.search_child import main; "
        "main(int(sys.argv[2]), 0, 'none'); "
        "import json, resource as r; limits = [r.getrlimit(each)[1] for each in "
        "(r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_CORE)]; "
        "print(json.dumps({'error': 'GilCodeNotFound', 'message': str(limits)}))"
    )
    _child_runs(code, monkeypatch)

    with pytest.raises(GilCodeNotFound, match=r"^\[1073741824, 20, 0\]$"):
        search_sites(file)


def test_the_child_has_the_file_and_nothing_else(
    file: HeldFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    No probe, no map and no memory of a process is open in it.
    """
    inheritable = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    code = (
        "import json, os, sys; fds = os.listdir('/proc/self/fd'); "
        "fds = sorted(int(fd) for fd in fds if os.path.exists('/proc/self/fd/' + fd)); "
        "print(json.dumps({'error': 'GilCodeNotFound', 'message': str(fds)}))"
    )
    _child_runs(code, monkeypatch)

    with pytest.raises(GilCodeNotFound) as found:
        search_sites(file)

    os.close(inheritable)
    assert str([0, 1, 2, file.fileno()]) == str(found.value)
