"""Targets whose files are not what their names say, or change while they are read."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accuracy.truth import started
from gilscope.gil.tracing.account import GilAccount
from gilscope.process.files import mapped_file, regular_file
from support.commands.doctor import with_only
from support.commands.gilscope import eventually, gilscope
from support.commands.serve import serving
from support.interpreters.builds import build
from support.tracing.observations import assert_counts_exactly

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_NOBODY = 65534
_LIMITED = with_only("bpf", "perfmon", "sys_ptrace", "dac_read_search")
"""What the documentation asks for: the kernel's own links to mapped files are not among it."""

# Maps a file as code, as a program that runs it would, and stays.
_HOSTILE = """
import ctypes, mmap, os, sys, threading
file = sys.argv[1]
libc = ctypes.CDLL(None)
with open(file, "rb") as opened:
    rights = mmap.PROT_READ | mmap.PROT_EXEC
    held = mmap.mmap(opened.fileno(), 0, flags=mmap.MAP_SHARED, prot=rights)
exec(sys.argv[2])
print("ready", flush=True)
sys.stdin.read()
"""
_GUESSED = 'other = file.replace(r"\\012", chr(10)); os.mkdir(os.path.dirname(other)); '
_CUT_WHEN_OPENED = """
watch = libc.inotify_init()
libc.inotify_add_watch(watch, file.encode(), 0x20)
def cut():
    for _ in range({opens}):
        assert len(os.read(watch, 16)) == 16
    os.truncate(file, 0)
    os.write(1, b"cut\\n")
threading.Thread(target=cut, daemon=True).start()
"""
_WATCH = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
libc.inotify_add_watch(watch, sys.argv[1].encode(), 0x20)
print("ready", flush=True)
os.read(watch, 4096)
print("opened", flush=True)
"""


@contextmanager
def _hostile(file: Path, step: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process of nobody that maps *file*, takes *step* and stays."""
    with subprocess.Popen(
        [_PYTHON, "-c", _HOSTILE, str(file), step],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=(),
    ) as process:
        try:
            assert process.stdout is not None
            assert b"ready\n" == process.stdout.readline()
            yield process
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of nobody's, on a way that is open to all."""
    made = tmp_path / "theirs"
    made.mkdir()
    for part in (made, *made.parents):
        if not part.stat().st_mode & 0o001:
            part.chmod(0o755)
    os.chown(made, _NOBODY, _NOBODY)
    return made


@pytest.fixture(params=["all links", "no links"])
def _links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = regular_file.look_up

    def look_up(path: str) -> int:
        if "map_files" in path or path.endswith("/exe"):
            raise PermissionError(1, "Operation not permitted")
        return whole(path)

    if request.param == "no links":
        monkeypatch.setattr(mapped_file, "look_up", look_up)


def test_a_pipe_under_the_name_that_is_meant_to_be_guessed(folder: Path) -> None:
    r"""
    In /proc/PID/maps a folder a\012 looks like one whose name has a newline: nobody opens that.
    """
    file = folder / "a\\012" / "libpython3.11.so"
    file.parent.mkdir()
    shutil.copy("/bin/true", file)
    with _hostile(file, f"{_GUESSED} os.mkfifo(other)") as process:
        assert (folder / "a\n" / "libpython3.11.so").is_fifo()
        record = ("record", "-p", str(process.pid), "-d", "0.1")
        outcomes = [gilscope(*record), gilscope(*record, wrapper=_LIMITED)]
        examined = gilscope("doctor", "-p", str(process.pid))

    assert [(0, ""), (0, "")] == [(each.exit_code, _errors(each.messages)) for each in outcomes]
    assert "CPython 3.11" in examined.output


def _errors(messages: str) -> str:
    return "".join(line for line in messages.splitlines() if line.startswith("error"))


@pytest.mark.parametrize("wrapper", [(), _LIMITED])
def test_a_link_to_a_file_of_root_is_not_followed(folder: Path, wrapper: list[str]) -> None:
    """
    Nobody brings the agent to open what it alone may open: a device could be made to act.
    """
    secret = folder.parent / "secret"
    secret.write_bytes(b"x")
    secret.chmod(0o600)
    file = folder / "a\\012" / "libpython3.11.so"
    file.parent.mkdir()
    shutil.copy("/bin/true", file)
    with (
        _hostile(file, f"{_GUESSED} os.symlink({str(secret)!r}, other)") as process,
        subprocess.Popen(
            [sys.executable, "-c", _WATCH, str(secret)], stdout=subprocess.PIPE, text=True
        ) as watcher,
    ):
        assert watcher.stdout is not None
        assert "ready\n" == watcher.stdout.readline()
        outcome = gilscope("record", "-p", str(process.pid), "-d", "0.1", wrapper=wrapper)
        watcher.terminate()
        opened = watcher.stdout.read()

    assert (0, "") == (outcome.exit_code, opened)


@pytest.mark.parametrize("opens", [1, 2])
def test_a_file_that_is_cut_as_soon_as_it_is_opened(folder: Path, opens: int) -> None:
    """
    The agent goes on, with what runs: had it mapped the file, that would have been its end.
    """
    file = folder / "libpython3.11.so"
    shutil.copy(build("pyenv-3.11").elf, file)
    os.chown(file, _NOBODY, _NOBODY)
    with _hostile(file, _CUT_WHEN_OPENED.format(opens=opens)) as process, serving("--all") as agent:
        assert process.stdout is not None
        if opens == 1:
            assert b"cut\n" == process.stdout.readline()
        pid = str(process.pid)
        eventually(lambda: agent.scrape().total("gilscope_probe_valid", pid=pid))
        eventually(lambda: 200 == agent.get("/healthz").status)


def test_a_copy_that_is_mounted_over_the_interpreter(tracer: GilAccount, tmp_path: Path) -> None:
    """
    The file that runs is traced, not the one under its name.
    """
    file = Path(shutil.copy(_PYTHON, tmp_path / "python3.11"))
    copy = Path(shutil.copy(_PYTHON, tmp_path / "copy"))
    with started([str(file)], "exact_count.py") as workload:
        subprocess.run(["mount", "--bind", copy, file], check=True)
        try:
            assert "sites" == tracer.attach(workload.pid).process.method
            assert_counts_exactly(tracer, workload)
        finally:
            subprocess.run(["umount", file], check=True)


@pytest.mark.usefixtures("_links")
@pytest.mark.parametrize(
    "name", ["a\nb", "a\\012b", "a\rb", "a\u2028b", 'it\'s "$(id)" `x`', "x" * 200]
)
def test_an_interpreter_in_a_folder_with_an_odd_name(
    name: str, tracer: GilAccount, tmp_path: Path
) -> None:
    """
    It is traced, also by an agent that may not follow the kernel's own links.
    """
    folder = tmp_path / name
    folder.mkdir()
    file = Path(shutil.copy(_PYTHON, folder / "python3.11"))
    with started([str(file)], "exact_count.py") as workload:
        assert "sites" == tracer.attach(workload.pid).process.method
        assert_counts_exactly(tracer, workload)
