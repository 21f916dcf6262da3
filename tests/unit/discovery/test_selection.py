"""Which processes a choice takes."""

import os
import re
import signal
import subprocess
from collections.abc import Sequence

import pytest

from gilscope.discovery.selection import Kinship, choose_all, choose_matching, descendants_of
from gilscope.process import procfs

_NOBODY = Kinship(())
_COMMAND_LINES = {
    1: ("/usr/bin/python3", "/srv/shop.py"),
    2: ("/opt/gilscope/bin/python", "/opt/gilscope/bin/gilscope", "serve", "--match", "shop"),
    3: ("python3", "-m", "gilscope", "top", "--all"),
    4: ("python3", "-m", "gilscope.runtimes.cpython.sites.search_child"),
    6: ("/usr/bin/python3", "-I", "/opt/lib/gilscope/bpf/compile/bcc_child.py"),
    7: ("python3", "-I", "-c", "from gilscope.runtimes.cpython.sites.search_child import main"),
    5: ("python3", "/srv/gilscope/shop.py"),
}


@pytest.fixture(autouse=True)
def _processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(pid: int) -> Sequence[str]:
        if pid not in _COMMAND_LINES:
            raise FileNotFoundError(pid)
        return _COMMAND_LINES[pid]

    monkeypatch.setattr(procfs, "read_command_line", read)


def test_all_are_all_but_gilscope() -> None:
    """
    Neither the agents nor what they start; a folder of that name is no agent.
    """
    is_wanted = choose_all()

    assert [1, 5] == [pid for pid in _COMMAND_LINES if is_wanted(pid, _NOBODY)]


def test_no_agent_matches_the_pattern_that_it_was_given() -> None:
    """
    The pattern is in the command line of each agent; what has ended matches nothing.
    """
    is_wanted = choose_matching(re.compile("shop|gilscope|^$"))

    assert [1, 5] == [pid for pid in _COMMAND_LINES if is_wanted(pid, _NOBODY)]


def test_descendants_are_of_all_generations() -> None:
    """
    Neither the process itself is one, nor what others have started.
    """
    shell = ["sh", "-c", "sh -c 'sleep 60 & echo $!; wait'; true"]
    with (
        subprocess.Popen(["sleep", "60"]) as other,
        subprocess.Popen(shell, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        sleep = int(process.stdout.readline())
        middle = procfs.read_status(sleep).parent
        found = descendants_of(process.pid)
        for pid in (sleep, other.pid):
            os.kill(pid, signal.SIGKILL)

    assert {middle, sleep} == set(found)
