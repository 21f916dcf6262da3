"""Programs as people run them, and where each of them keeps the GIL."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.commands.gilscope import eventually
from support.interpreters.builds import build
from support.paths import ROOT
from support.ports import free_port
from support.real.clients import busy_clients, is_answered
from support.real.environment import environment

__all__ = ["FEW", "MORE", "Program", "busy"]

_FOLDER = ROOT / "docs" / "examples" / "recipes"
_FEW, _MORE = "requirements.txt", "more_requirements.txt"
_START_S = 60.0
_END_S = 20.0


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the recipes."""

    name: str
    line: str
    """How it is started, as its page says."""
    file: str
    """Of the application."""
    functions: frozenset[str]
    """That keep the GIL."""
    requirements: str = _FEW
    is_server: bool = False
    """Whether it works for clients; others work by themselves until their input ends."""
    is_contended: bool = True
    """Whether threads wait for the GIL, or only tasks for a loop."""
    is_pickled: bool = False
    """Whether cloudpickle has brought its functions, which leaves their file behind."""

    @property
    def named_file(self) -> str:
        """How the interpreter names the file of its functions, in their own folder."""
        return "<dynamic-code>" if self.is_pickled else f"/recipes/{self.file}"


def _of(*functions: str) -> frozenset[str]:
    return frozenset(functions)


FEW = (
    Program(
        "gunicorn-django",
        "gunicorn --worker-class gthread --threads 4 django_page:application",
        "django_page.py",
        _of("page"),
        is_server=True,
    ),
    Program(
        "uvicorn-fastapi",
        "uvicorn fast_prices:app",
        "fast_prices.py",
        _of("simulate"),
        is_server=True,
    ),
    Program(
        "joblib-pandas",
        "python joblib_groups.py",
        "joblib_groups.py",
        _of("spread", "summed_up"),
    ),
)
"""In `make test`."""

MORE = (
    Program(
        "gunicorn-flask",
        "gunicorn --worker-class gthread --threads 4 flask_prices:app",
        "flask_prices.py",
        _of("price"),
        _MORE,
        is_server=True,
    ),
    Program(
        "uvloop-fastapi",
        "uvicorn --loop uvloop fast_prices:app",
        "fast_prices.py",
        _of("simulate"),
        _MORE,
        is_server=True,
    ),
    Program(
        "blocked-loop",
        "uvicorn blocked_loop:app",
        "fast_prices.py",
        _of("simulate"),
        _MORE,
        is_server=True,
        is_contended=False,
    ),
    Program(
        "thread-pool",
        "python pool_of_parsers.py",
        "pool_of_parsers.py",
        _of("parse", "parse.<locals>.<listcomp>"),
        _MORE,
    ),
    Program(
        "celery-threads",
        "celery --app celery_tasks worker --pool threads --loglevel info",
        "celery_tasks.py",
        _of("crunch"),
        _MORE,
    ),
    Program(
        "dask-cluster",
        "python dask_cluster.py",
        "dask_cluster.py",
        _of("simulate"),
        _MORE,
        is_pickled=True,
    ),
    Program("joblib-sklearn", "python joblib_scaler.py", "joblib_scaler.py", _of("fitted"), _MORE),
    Program(
        "uwsgi-flask",
        "uwsgi --master --threads 4 --module flask_prices:app",
        "flask_prices.py",
        _of("price"),
        _MORE,
        is_server=True,
    ),
    Program("own-gils", "python3.14 own_gils.py", "own_gils.py", _of("crunch"), _MORE),
)
"""In `make test-real`."""


@contextlib.contextmanager
def busy(program: Program, log: Path) -> Iterator[int]:
    """Run *program* with work to do, and yield the process id that its user would find.

    What it says goes to *log*.
    """
    port = free_port()
    folder = environment(program.requirements)
    name, *words = program.line.split()
    # What a line of its own would say to either server.
    variables = {
        **os.environ,
        "GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{port}",
        "UVICORN_PORT": str(port),
        "UWSGI_HTTP_SOCKET": f"127.0.0.1:{port}",
        "UWSGI_DIE_ON_TERM": "1",
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*_program(name, folder), *words],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=_FOLDER,
            env=variables,
            start_new_session=True,
        ) as process,
    ):
        try:
            with contextlib.ExitStack() as clients:
                if program.is_server:
                    eventually(lambda: is_answered(port), within_s=_START_S)
                    clients.enter_context(busy_clients(port))
                else:
                    eventually(lambda: b"ready" in log.read_bytes(), within_s=_START_S)
                yield process.pid
        finally:
            _end(process, program)


def _program(name: str, folder: Path) -> list[str]:
    """Return what *name* stands for: a program of the environment, or a Python of its own."""
    return list(build("debian-3.14").argv) if name == "python3.14" else [str(folder / name)]


def _end(process: subprocess.Popen[bytes], program: Program) -> None:
    assert process.stdin is not None
    process.stdin.close()
    if not program.line.startswith("python"):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
