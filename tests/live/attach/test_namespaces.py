"""Targets and agents in containers, as far as those are made of pid and mount namespaces."""

import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import ExactCounts, Workload, exact_counts, started
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation, ThreadTotals
from gilscope.process import procfs
from support.commands.gilscope import eventually, gilscope, gilscope_started
from support.commands.json_reports import only_process
from support.commands.serve import serving
from support.interpreters.builds import build
from support.paths import WORKLOADS
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"
_OWN_PIDS = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
_OWN_EVERYTHING = (
    *("unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup"),
    *("--fork", "--kill-child"),
)
# A root that exists in the target's mount namespace only: the host's /usr, and an interpreter that
# nobody else can see.
_ENTER_OWN_ROOT = f"""
set -e
root=$1 python=$2
shift 2
mount -t tmpfs none "$root"
mkdir -p "$root/usr" "$root/proc" "$root/tmp" "$root/bin" "$root/old" "$root{WORKLOADS}"
mount --bind /usr "$root/usr"
mount --bind {WORKLOADS} "$root{WORKLOADS}"
mount -t proc proc "$root/proc"
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
ln -s ../usr/bin/sh "$root/bin/sh"
cp {_PYTHON} "$root/bin/python3"
cd "$root"
pivot_root . old
umount -l old
exec "$python" "$@"
"""


def _can_unshare() -> bool:
    tried = subprocess.run([*_OWN_EVERYTHING, "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if not _can_unshare():
        pytest.skip("this machine does not let unshare make namespaces")


@contextmanager
def _contained(*command: str, script: str = "exact_count.py") -> Iterator[tuple[Workload, int]]:
    """Start *script*; yield it with its pid as the host sees it."""
    mark = uuid.uuid4().hex
    with started([*command, "-X", mark], script) as workload:
        # It says that it is process 1 of its own world.
        assert 1 == workload.pid
        (pid,) = [pid for pid in procfs.list_pids() if _is_init_with(pid, mark)]
        yield workload, pid


def _is_init_with(pid: int, mark: str) -> bool:
    try:
        line = procfs.read_command_line(pid)
        return mark in line and procfs.read_status(pid).namespace_pids[-1] == 1
    except OSError:
        return False


def _in_own_root(root: Path, python: str) -> tuple[str, ...]:
    root.mkdir()
    return (*_OWN_EVERYTHING, "sh", "-c", _ENTER_OWN_ROOT, "sh", str(root), python)


def _waiter(observation: GilObservation) -> ThreadTotals:
    (thread,) = [
        thread
        for thread in observation.totals.threads
        if (thread.role or "").startswith("waiter (")
    ]
    return thread


def _assert_right(observation: GilObservation, truth: ExactCounts) -> None:
    waiter = _waiter(observation)

    assert (23, truth.waiter.convoy_waits) == (waiter.waits, waiter.convoy_waits)
    assert waiter.wait_ns == pytest.approx(truth.waiter.total.wait_ns, rel=0.02)
    assert "" == observation.invalid
    assert {} == missed_events(observation)


def test_interpreter_that_only_the_target_can_see(tracer: GilAccount, tmp_path: Path) -> None:
    """
    A target with a root of its own is traced through that root, whatever lies there for others.
    """
    root = tmp_path / "root"
    with _contained(*_in_own_root(root, "/bin/python3")) as (workload, pid):
        # Seen from here the root is an empty folder.
        assert [] == list(root.iterdir())
        target = tracer.attach(pid)
        assert Path(f"/proc/{pid}/root/bin/python3").samefile(target.file.path)
        with looked_after(tracer):
            truth = exact_counts(workload.run())
        observation = observation_of(tracer, pid)

    assert "sites" == target.process.method
    _assert_right(observation, truth)


def test_file_of_the_same_path_is_not_mistaken_for_it(tracer: GilAccount, tmp_path: Path) -> None:
    """
    Another file at the same path in the agent's world is never opened in its place.
    """
    root = tmp_path / "root"
    (tmp_path / "elsewhere").mkdir()
    hide = f'mount -t tmpfs none "$1"; cp {_PYTHON} "$1/python"; shift; exec "$@"'
    root.mkdir()
    decoy = Path(shutil.copy("/usr/bin/sleep", root / "python"))
    command = (*_OWN_EVERYTHING, "--mount-proc", "sh", "-c", hide, "sh", str(root), str(decoy))
    with _contained(*command) as (workload, pid):
        tracer.attach(pid)
        with looked_after(tracer):
            truth = exact_counts(workload.run())
        observation = observation_of(tracer, pid)

    _assert_right(observation, truth)


@pytest.mark.parametrize("name", ["pyenv-3.8", "pyenv-3.13"])
def test_owner_of_a_mutex_in_a_pid_namespace(name: str) -> None:
    """
    The C library has noted the owner by another number than the agent's, and so has Python.
    """
    with _contained(*_OWN_PIDS, *command_of(build(name)), script="abba.py") as (workload, pid):
        own = [workload.ready["main"], workload.ready["keeper"]]
        workload.command("go")
        outcome = eventually(lambda: _deadlocked(pid))
        os.kill(pid, signal.SIGKILL)
    (circle,) = outcome["deadlocks"]
    main, keeper = [step["tid"] for step in circle]

    assert pid == main != own[0]
    assert keeper not in own
    assert f"thread {main} (MainThread, at want (abba.py:49))" in outcome["verdict"][0]
    assert (
        f"that thread {keeper} (keep (abba.py:41), at keep (abba.py:44)) holds"
        in (outcome["verdict"][0])
    )


def _deadlocked(pid: int) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(gilscope("dump", "-p", str(pid), "--format", "json").output)
    return report if report["deadlocks"] else {}


@pytest.mark.parametrize("name", ["pyenv-3.8", "pyenv-3.10", "pyenv-3.13"])
def test_roles_in_a_pid_namespace(name: str, tracer: GilAccount) -> None:
    """
    Threads have their roles though the interpreter knows them by other ids than the agent.
    """
    with _contained(*_OWN_PIDS, *command_of(build(name))) as (workload, pid):
        tracer.attach(pid)
        with looked_after(tracer):
            truth = exact_counts(workload.run())
        observation = observation_of(tracer, pid)

    _assert_right(observation, truth)
    # The ids that are reported are those of the agent's world.
    assert _waiter(observation).tid != truth.waiter.tid
    assert {thread.tid for thread in observation.totals.threads}.isdisjoint(
        {truth.waiter.tid, truth.holder.tid}
    )


def test_targets_that_share_a_file_are_told_apart(tracer: GilAccount, tmp_path: Path) -> None:
    """
    Two containers over one inode: each has its own numbers, and an untraced third one none.
    """
    python = "/usr/bin/python3.11"
    with (
        _contained(*_in_own_root(tmp_path / "a", python)) as (first, first_pid),
        _contained(*_in_own_root(tmp_path / "b", python)) as (second, second_pid),
        _contained(*_in_own_root(tmp_path / "c", python)) as (third, _),
    ):
        tracer.attach(first_pid)
        tracer.attach(second_pid)
        with looked_after(tracer):
            truth = exact_counts(first.run())
            third.run()
            before = observation_of(tracer, second_pid)
            second_truth = exact_counts(second.run())
        observations = [observation_of(tracer, pid) for pid in (first_pid, second_pid)]
        assert 2 == len(tracer.observe())

    assert () == before.totals.threads
    _assert_right(observations[0], truth)
    _assert_right(observations[1], second_truth)


def test_agent_beside_its_target_in_a_pid_namespace() -> None:
    """
    A sidecar's numbers are right, and its ids are those of the namespace that it shares.
    """
    outcome = gilscope(
        *("record", "--format", "json", "--", _PYTHON, str(WORKLOADS / "exact_count.py")),
        wrapper=_OWN_PIDS,
        typed="\n",
    )
    ready, answer, text = outcome.output.split("\n", 2)
    truth, report = exact_counts(json.loads(answer)), only_process(text)
    (waiter,) = [thread for thread in report["threads"] if thread["tid"] == truth.waiter.tid]

    assert 0 == outcome.exit_code
    assert json.loads(ready)["pid"] == report["process"]["pid"] < 100
    assert 23 == waiter["waits"]
    assert waiter["role"].startswith("waiter (")
    assert {} == report["totals"]["lost_events"]


def test_all_in_a_pid_namespace_without_the_agent() -> None:
    """
    --all traces every Python that the agent can see, future ones too, and not the agent.
    """
    # The loopback of the agent's network namespace is the tests' own. An agent that is process 1
    # ends where it sees no other.
    beside = (*_OWN_PIDS, "sh", "-c", 'sleep 60 & exec "$@"', "sh")
    with serving("--all", wrapper=beside) as service:
        (agent,) = eventually(lambda: _children(service.command.pid))
        assert set() == service.scrape().pids()
        join = ("nsenter", f"--target={agent}", "--pid", "--mount")
        with (
            started([*join, _PYTHON], "exact_count.py") as first,
            started([*join, *build("pyenv-3.12").argv], "exact_count.py") as second,
        ):
            pids = {first.pid, second.pid}
            eventually(lambda: service.scrape().pids() == pids, within_s=10)
            # While they start, threads may have waited for a moment.
            before = service.scrape()
            first.run()
            after = service.scrape()
            name = "gilscope_gil_thread_waits_total"
            counted = [
                after.total(name, pid=str(each.pid)) - before.total(name, pid=str(each.pid))
                for each in (first, second)
            ]
        # The agent is process 1, whom signals reach only if it is prepared.
        service.command.process.send_signal(0)
        eventually(lambda: _signalled(agent))

        assert counted[0] >= 23
        assert 0 == counted[1]
        assert 1 not in pids
        assert 0 == service.command.outcome().exit_code


def test_an_interrupted_process_1() -> None:
    """
    Ctrl-C ends process 1 too, whom a signal without a handler does not reach, and says nothing.
    """
    with gilscope_started("doctor", wrapper=_OWN_PIDS) as command:
        (agent,) = eventually(lambda: _children(command.pid))
        # It is in the midst of its work when it has the probes compiled.
        eventually(lambda: _children(agent))
        os.kill(agent, signal.SIGINT)
        outcome = command.outcome()

    assert (128 + signal.SIGINT, "", "") == (outcome.exit_code, outcome.output, outcome.messages)


def _signalled(pid: int) -> bool:
    signal_process = subprocess.run(["kill", f"-{signal.SIGTERM:d}", str(pid)], check=False)
    return signal_process.returncode == 0


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def test_target_in_a_namespace_below_the_agents_own() -> None:
    """
    Where the kernel cannot tell the agent who waits, it says so, and does not report zero.
    """
    script = (
        "unshare --pid --fork --kill-child --mount-proc "
        f'{_PYTHON} -c "import time; print(1, flush=True); time.sleep(60)" & '
        'read line; exec "$@"'
    )
    with gilscope_started(
        *("record", "-d", "0.2", "-p", "3"), wrapper=(*_OWN_PIDS, "sh", "-c", script, "sh")
    ) as command:
        eventually(lambda: command.output == "1\n")
        assert command.process.stdin is not None
        command.process.stdin.write("\n")
        outcome = command.outcome()

    assert (5, "1\n") == (outcome.exit_code, outcome.output)
    assert "error: process 3 lives in a pid namespace inside gilscope's" in outcome.messages
    assert "--pid host" in outcome.messages
