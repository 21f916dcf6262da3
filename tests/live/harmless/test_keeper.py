"""What happens to probes when the agent cannot look after them: killed, stopped, or too slow."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accuracy.truth import Workload, started
from gilscope.bpf.uprobes.keeper import LEASE_S
from gilscope.gil.target import Hookpoint, Target, inspect
from gilscope.process import procfs
from gilscope.process.breakpoints import addresses_of, first_missing
from gilscope.process.memory import ProcessMemory
from gilscope.process.view import view_of
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import Gilscope, environment, eventually, gilscope_started
from support.commands.json_reports import only_process

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_GRACE_S = 1.0
"""That the keeper gives itself before the kernel takes all probes out."""
_SLOW_S = 5.0
"""That the kernel and a busy machine may add."""

_EDGES = """\
import struct, sys, time
from gilscope.bpf import syscalls
from gilscope.bpf.uprobes.hooks import Hook, Uprobes

pid, path, *offsets = int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])
# r0 = 0; exit
instructions = bytes.fromhex("b700000000000000 9500000000000000")
program = syscalls.load_program("edges", 2, 48, instructions, "GPL")
uprobes = Uprobes({"edges": program}, has_links=True)
hooks = [Hook("edges", path, offset) for offset in offsets]
uprobes.close(uprobes.open(pid, hooks, 0))
print(1, flush=True)
while True:
    uprobes.close(uprobes.open(pid, hooks, 0))
"""


def _breakpoints(target: Target, points: tuple[Hookpoint, ...], pid: int | None = None) -> int:
    """Return how many of *points* have a breakpoint in the memory of *pid*, or of the target."""
    pid = pid or target.build.pid
    offsets = [point.offset for point in points]
    addresses = addresses_of(target.file.mapping, procfs.read_maps(pid), offsets)
    assert len(addresses) == len(points)
    with ProcessMemory(pid) as memory:
        return sum(first_missing(memory, [address]) is None for address in addresses)


def _in_windows(target: Target) -> int:
    return _breakpoints(target, (*target.acquires, *target.releases))


def _keeper_of(agent: Gilscope) -> int:
    (keeper,) = [
        child
        for child in map(
            int, Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
        )
        if procfs.read_status(child).name == "gilscope-keeper"
    ]
    return keeper


@contextmanager
def _recorded(workload: Workload, cache: SiteCache) -> Iterator[tuple[Gilscope, Target]]:
    """Record *workload* in full mode, and yield when all probes are in place."""
    target = inspect(view_of(workload.pid), cache)
    # Its children are other processes, which a slow machine would have traced before they end.
    whom = ("--no-children", "-p", str(workload.pid))
    with gilscope_started("record", *whom, "--mode", "full", "--format", "json") as agent:
        agent.says("Tracing the GIL of")
        windows = len(target.acquires) + len(target.releases)
        eventually(lambda: _in_windows(target) == windows)
        assert len(target.hookpoints) == _breakpoints(target, target.hookpoints)
        yield agent, target


def test_no_breakpoint_stays_when_the_agent_is_killed_between_windows(tmp_path: Path) -> None:
    """
    SIGKILL at any moment of putting probes in or taking them out: all go, each time.
    """
    with started([_PYTHON], "code_changer.py") as workload:
        target = inspect(view_of(workload.pid), SiteCache(tmp_path))
        points = (*target.acquires, *target.releases)
        offsets = [str(point.offset) for point in points]
        path = target.file.path.replace("/self/", f"/{os.getpid()}/")
        command = [sys.executable, "-c", _EDGES, str(workload.pid), path, *offsets]
        for _ in range(12):
            with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as agent:
                assert agent.stdout is not None
                assert b"1\n" == agent.stdout.readline()
                # Nothing can be waited for: the instant is to be any.
                time.sleep(random.uniform(0, 0.1))  # noqa: S311 - nobody has to be kept from guessing
                agent.kill()
            eventually(lambda: not _breakpoints(target, points), within_s=10)


def test_a_stopped_agent_leaves_no_window_open(tmp_path: Path) -> None:
    """
    The keeper closes it within the lease, and what was counted stays right; waits are still seen.
    """
    with (
        started([_PYTHON], "code_changer.py") as workload,
        _recorded(workload, SiteCache(tmp_path)) as (agent, target),
    ):
        agent.send(signal.SIGSTOP)
        stopped_s = time.monotonic()
        eventually(lambda: not _in_windows(target), within_s=LEASE_S + _SLOW_S)
        assert len(target.hookpoints) == _breakpoints(target, target.hookpoints)
        time.sleep(1.0)  # the gap that the figures must not cover
        gap_s = time.monotonic() - stopped_s
        agent.send(signal.SIGCONT)
        eventually(lambda: _in_windows(target) == len(target.acquires) + len(target.releases))
        agent.send(signal.SIGINT)
        outcome = agent.outcome()
    report = only_process(outcome.output)
    totals = report["totals"]

    assert 0 == outcome.exit_code
    assert (
        "gilscope could not run for 2 s or more; windows were closed, and holds not seen meanwhile"
        in outcome.messages
    )
    assert report["process"]["valid"]
    assert 0 == totals["lost_events"].get("probes_gone", 0)
    assert totals["held_s"] <= totals["observed_s"] < report["duration_s"] - (gap_s - LEASE_S)
    # Two threads compete all the time, so somebody holds it whenever it is seen.
    assert totals["held_s"] > 0.9 * totals["observed_s"]
    assert totals["wait_s"] > 0.9 * report["duration_s"]


def test_the_kernel_takes_all_out_when_the_keeper_is_stopped_too(tmp_path: Path) -> None:
    """
    As in a container that is frozen: no window is left, and later all begins anew.
    """
    with (
        started([_PYTHON], "code_changer.py") as workload,
        _recorded(workload, SiteCache(tmp_path)) as (agent, target),
    ):
        keeper = _keeper_of(agent)
        agent.send(signal.SIGSTOP)
        os.kill(keeper, signal.SIGSTOP)
        eventually(
            lambda: not _in_windows(target) + _breakpoints(target, target.hookpoints),
            within_s=LEASE_S + _GRACE_S + _SLOW_S,
        )
        agent.send(signal.SIGCONT)
        agent.says("its probes have gone (the process that holds them has ended)")
        eventually(lambda: _in_windows(target) == len(target.acquires) + len(target.releases))
        assert keeper != _keeper_of(agent)
        agent.send(signal.SIGINT)
        outcome = agent.outcome()
    report = only_process(outcome.output)

    assert 0 == outcome.exit_code
    assert report["process"]["valid"]
    assert 1 == report["totals"]["lost_events"]["probes_gone"]


def test_signals_of_a_terminal_do_not_reach_the_keeper(tmp_path: Path) -> None:
    """
    What ends the agent, or is to be ignored by it, is not for its keeper, which goes with it.
    """
    with (
        started([_PYTHON], "code_changer.py") as workload,
        _recorded(workload, SiteCache(tmp_path)) as (agent, target),
    ):
        keeper = _keeper_of(agent)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
            os.kill(keeper, number)
        os.kill(keeper, 0)
        assert len(target.hookpoints) == _breakpoints(target, target.hookpoints)
        agent.send(signal.SIGINT)
        assert 0 == agent.outcome().exit_code
        assert not procfs.is_alive(keeper)
        assert 0 == _in_windows(target) + _breakpoints(target, target.hookpoints)


def test_a_forked_child_runs_free_of_breakpoints(tmp_path: Path) -> None:
    """
    It has its parent's memory, but nobody traces it; its parent stays traced.
    """
    with (
        started([_PYTHON], "code_changer.py") as workload,
        _recorded(workload, SiteCache(tmp_path)) as (agent, target),
    ):
        points = (*target.hookpoints, *target.acquires, *target.releases)
        for _ in range(3):
            workload.command("fork")
            child = workload.answer()["result"]
            eventually(lambda: not _breakpoints(target, points, child), within_s=10)  # noqa: B023 - it is called here
            assert len(points) == _breakpoints(target, points)
        agent.send(signal.SIGINT)
        report = only_process(agent.outcome().output)

    assert report["process"]["valid"]
    assert 0 == report["totals"]["lost_events"].get("probes_gone", 0)
