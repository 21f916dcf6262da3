"""Source lines of processes with other roots, mounts and rights than gilscope has."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.model.stack import Frame
from gilscope.process.files.source_files import SourceLines

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_NOBODY = 65534
_GROUP = 4711
_IN_OTHER_ROOT = """\
import os, sys
os.chroot(sys.argv[1])
os.chdir("/srv")
print(os.getpid(), flush=True)
sys.stdin.read()
"""
_AS_NOBODY = f"""\
import os, sys
os.setgroups([{_GROUP}])
os.setresgid({_NOBODY}, {_NOBODY}, {_NOBODY})
os.setresuid({_NOBODY}, {_NOBODY}, {_NOBODY})
print(os.getpid(), flush=True)
sys.stdin.read()
"""
# What is mounted here nobody else can see, and it is gone when the last process in here is.
_IN_OWN_MOUNTS = """\
mount -t tmpfs none "$1"
printf 'def f():\\n    return "in its own mount"\\n' > "$1/mod.py"
"$2" -c 'import os, sys; print(os.getpid(), flush=True); sys.stdin.read()'
true # so that the shell does not become that process
"""


@contextmanager
def _process(*command: str) -> Iterator[int]:
    """Start *command*, which says its pid when it is ready; it ends with the block."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def _module(path: Path, word: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'def f():\n    return "{word}"\n')
    return path


def _read(pid: int, *files: object) -> list[str | None]:
    with SourceLines(pid) as sources:
        found = sources.read([Frame("f", str(file), 1, 2) for file in files])
    return [found.get((str(file), 2)) for file in files]


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_names_are_those_of_the_process_own_root(tmp_path: Path) -> None:
    """
    Absolute, relative and linked files are found inside the root, and nothing is outside of it.
    """
    root = tmp_path / "root"
    _module(root / "srv" / "mod.py", "inside")
    outside = _module(tmp_path / "outside.py", "outside")
    (root / "link.py").symlink_to("/srv/mod.py")
    (root / "up.py").symlink_to("../../../srv/mod.py")
    (root / "out.py").symlink_to(outside)
    (root / "proc").symlink_to("/proc")
    with _process(sys.executable, "-c", _IN_OTHER_ROOT, str(root)) as pid:
        inside = _read(pid, "/srv/mod.py", "mod.py", "/link.py", "/up.py", "/../../srv/mod.py")
        beyond = _read(
            pid,
            outside,
            "/out.py",
            "/../outside.py",
            f"/proc/self/root{outside}",
            "../../outside.py",
        )

    assert ['return "inside"'] * 5 == inside
    assert [None] * 5 == beyond


def test_mounts_of_the_process_are_seen_also_when_it_has_ended(tmp_path: Path) -> None:
    """
    The namespace lives for as long as gilscope holds on to it.
    """
    command = ("unshare", "--mount", "sh", "-c", _IN_OWN_MOUNTS, "sh", str(tmp_path))
    file = str(tmp_path / "mod.py")
    with _process(*command, sys.executable) as pid:
        assert not Path(file).exists()
        sources = SourceLines(pid)
    with sources:
        found = sources.read([Frame("f", file, 1, 2)])

    assert {(file, 2): 'return "in its own mount"'} == found


def test_files_are_read_with_the_rights_of_the_process(public: Path) -> None:
    """
    A program cannot make gilscope show what it may not read itself, but its groups count.
    """
    files = {name: _module(public / name / "mod.py", name) for name in ("all", "group", "folder")}
    secret = _module(public / "secret.py", "secret")
    files["group"].chmod(0o040)
    os.chown(files["group"], 0, _GROUP)
    (public / "folder").chmod(0o700)
    secret.chmod(0o640)
    with _process(sys.executable, "-c", _AS_NOBODY) as pid:
        found = _read(pid, *files.values(), secret)

    assert ['return "all"', 'return "group"', None, None] == found


def test_rights_are_gilscopes_own_again_afterwards(public: Path) -> None:
    """
    Also after a file that may not be read.
    """
    secret = _module(public / "secret.py", "secret")
    secret.chmod(0o600)
    before = (os.getgroups(), _file_ids())
    with _process(sys.executable, "-c", _AS_NOBODY) as pid:
        assert [None] == _read(pid, secret)

    assert before == (os.getgroups(), _file_ids())
    assert "secret" in secret.read_text()


def _file_ids() -> list[str]:
    status = Path("/proc/thread-self/status").read_text().splitlines()
    return [line for line in status if line.startswith(("Uid:", "Gid:", "CapEff:"))]
