"""Runs a program of the recipes with work to do."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.commands.gilscope import eventually
from support.interpreters.builds import build
from support.paths import ROOT
from support.ports import free_port
from support.real.clients import busy_clients, is_answered
from support.real.environment import environment
from support.real.program import Program

__all__ = ["busy"]

_FOLDER = ROOT / "docs" / "examples" / "recipes"
_PORT_OF_PAGE = "8000"
_MAKE_S = 600.0
_START_S = 60.0
_END_S = 20.0


@contextlib.contextmanager
def busy(program: Program, log: Path) -> Iterator[int]:
    """Run *program* with work to do, and yield the process id that its user would find.

    What it says goes to *log*; where it has to be made first, that is done beside the log.
    """
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        log.open("wb") as output,
        subprocess.Popen(
            _words(program, port),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=_made(program, log.parent) if program.made_by else _FOLDER,
            env=_variables(program) | _servers_variables(port, Path(folder)),
            start_new_session=True,
        ) as process,
    ):
        try:
            with contextlib.ExitStack() as clients:
                if program.is_server:
                    eventually(lambda: is_answered(port), within_s=_START_S)
                    clients.enter_context(busy_clients(port))
                else:
                    word = program.says_ready.encode()
                    eventually(lambda: word in log.read_bytes(), within_s=_START_S)
                yield process.pid
        finally:
            _end(process, program)


def _words(program: Program, port: int) -> list[str]:
    words = [str(port) if word == _PORT_OF_PAGE else word for word in program.line.split()]
    # A Python of its own; all others are programs of the environment, or of the system.
    return [*build("debian-3.14").argv, *words[1:]] if words[0] == "python3.14" else words


def _made(program: Program, folder: Path) -> Path:
    """Make *program* below *folder*, and return where."""
    copy = folder / _FOLDER.name
    shutil.copytree(_FOLDER, copy)
    subprocess.run(
        program.made_by.split(),
        check=True,
        stdin=subprocess.DEVNULL,
        cwd=copy,
        env=_variables(program),
        timeout=_MAKE_S,
    )
    return copy


def _variables(program: Program) -> dict[str, str]:
    programs = environment(program.requirements)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(programs.parent),
    }


def _servers_variables(port: int, folder: Path) -> dict[str, str]:
    """Return what lines of their own would say to servers; what these need is in *folder*."""
    # Apache's children, which are not root, go through it.
    folder.chmod(0o711)
    return {
        "APACHE_PID_FILE": str(folder / "apache2.pid"),
        "APACHE_RUN_DIR": str(folder),
        "APACHE_RUN_GROUP": "www-data",
        "APACHE_RUN_USER": "www-data",
        "GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{port}",
        "PORT": str(port),
        "PWD": str(_FOLDER),
        "UVICORN_PORT": str(port),
        "UWSGI_DIE_ON_TERM": "1",
        "UWSGI_HTTP_SOCKET": f"127.0.0.1:{port}",
    }


def _end(process: subprocess.Popen[bytes], program: Program) -> None:
    assert process.stdin is not None
    process.stdin.close()
    if program.is_server or program.ends_by_signal:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
