"""Names workers after the program that made them, through live processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gilscope.process import procfs
from gilscope.process.view import name_of

_PROGRAM = """\
import json, multiprocessing, os, sys

def work(names, gate):
    names.put(os.getpid())
    gate.wait()

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    names, gate = context.Queue(), context.Event()
    workers = [context.Process(target=work, args=(names, gate)) for _ in range(2)]
    for worker in workers:
        worker.start()
    print(json.dumps([names.get() for _ in workers]), flush=True)
    sys.stdin.read()
    gate.set()
"""


@contextmanager
def _workers(method: str, script: str) -> Iterator[list[int]]:
    command = [sys.executable, script, method]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        yield json.loads(program.stdout.readline())


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_bear_the_name_of_their_program(
    method: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    Whether it has started them itself, or a process that does nothing else.
    """
    script = tmp_path_factory.mktemp("program") / "app.py"
    script.write_text(_PROGRAM)
    with _workers(method, str(script)) as pids:
        names = [name_of(pid, procfs.read_command_line(pid)) for pid in pids]

    assert ["app.py worker"] * 2 == names


def test_process_that_is_no_worker() -> None:
    """
    Its own command line names it.
    """
    assert "app.py" == name_of(os.getpid(), ["python3", "/srv/app.py"])


def test_worker_whose_program_is_not_there() -> None:
    """
    It is called a worker, of nobody.
    """
    spawned = ["python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"]
    no_process = 1 << 30

    assert "worker" == name_of(no_process, spawned)
