"""Targets and agents in namespaces and cgroups of their own."""

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

from faults.bench import Bench, wait_s_of
from faults.registry import NotHere, Verdict, fault
from faults.targets import SYSTEM_PYTHON
from support.commands.gilscope import eventually
from support.commands.json_reports import only_process
from support.commands.serve import Service

_ALL = ("unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--fork", "--kill-child")
_MOST_S = 3.0


@fault("target_in_namespaces", "target in pid, mount, net, ipc, uts namespaces: traced", half=True)
def _target_in_namespaces(bench: Bench) -> None:
    target = bench.target(prefix=(*_ALL, "--mount-proc"))
    service = bench.serve("-p", str(target.pid))
    bench.counts_rightly(service, target)
    bench.reports_rightly(target, "--mode", "full")


@fault("target_in_user_namespace", "target is root of a user namespace of its own: traced")
def _target_in_user_namespace(bench: Bench) -> None:
    target = bench.target(prefix=("unshare", "--user", "--map-root-user"))
    bench.reports_rightly(target, "--mode", "full")


_OWN_TMPFS = f'mount -t tmpfs none "$1" && cp {SYSTEM_PYTHON} "$1/python3" && shift && exec "$@"'


def _in_own_tmpfs(bench: Bench) -> tuple[tuple[str, ...], str]:
    """Return the words that start a program in a mount namespace, and its interpreter there."""
    folder = bench.folder / "own"
    folder.mkdir()
    return (*_ALL[:1], "--mount", "sh", "-c", _OWN_TMPFS, "sh", str(folder)), f"{folder}/python3"


@fault("target_private_mount", "interpreter that only the target's mount namespace has: traced")
def _target_private_mount(bench: Bench) -> None:
    prefix, python = _in_own_tmpfs(bench)
    target = bench.target(python, prefix=prefix)
    bench.expect(Verdict.BROKEN, not Path(python).exists(), "the interpreter can be seen")
    bench.reports_rightly(target)
    service = bench.serve("-p", str(target.pid))
    bench.counts_rightly(service, target)


@fault("target_mount_gone", "target killed while its private tmpfs goes away too: agent survives")
def _target_mount_gone(bench: Bench) -> None:
    prefix, python = _in_own_tmpfs(bench)
    other = bench.target()
    service = bench.serve("--match", str(bench.folder))
    for _ in bench.times(1, 5):
        target = bench.target(python, prefix=prefix, may_end=True)
        bench.sees(service, target)
        os.kill(target.pid, signal.SIGKILL)
        eventually(partial(_is_forgotten, service, target.pid))
    bench.counts_rightly(service, other)


def _is_forgotten(service: Service, pid: int) -> bool:
    return pid not in service.scrape().pids()


@fault(
    "cgroup_frozen", "cgroup of the target frozen while traced, and while attaching: sane figures"
)
def _cgroup_frozen(bench: Bench) -> None:
    group = Path("/sys/fs/cgroup/freezer") / bench.folder.name
    try:
        group.mkdir()
    except OSError as error:
        raise NotHere(f"no freezer cgroup can be made here: {error}") from error
    bench.finally_do(partial(_remove_group, group))
    state = group / "freezer.state"
    target = bench.target()
    (group / "cgroup.procs").write_text(str(target.pid))
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    before = bench.lives(service)
    try:
        state.write_text("FROZEN")
        eventually(lambda: state.read_text() == "FROZEN\n")
        outcome = bench.run("record", "-p", str(target.pid), "-d", "1")
        words = f"exit code {outcome.exit_code}: {outcome.messages[-200:]}"
        bench.expect(Verdict.HANGS, outcome.exit_code in (0, 3), words)
        after = bench.lives(service)
    finally:
        state.write_text("THAWED")
    name = "gilscope_gil_thread_wait_seconds_total"
    gained_s = after.total(name, pid=str(target.pid)) - before.total(name, pid=str(target.pid))
    bench.is_share(gained_s, 0, after.after_s - before.before_s)
    bench.counts_rightly(service, target)


def _is_sane_or_refused(bench: Bench, wrapper: tuple[str, ...]) -> None:
    """Record and serve behind *wrapper*: right figures, or a refusal with words."""
    target = bench.target()
    for mode in ("contention", "full"):
        line = ("record", "-p", str(target.pid), "-d", "1", "--mode", mode, "--format", "json")
        outcome = bench.run(*line, wrapper=wrapper)
        if outcome.exit_code:
            words = f"exit code {outcome.exit_code}: {outcome.messages[-200:]}"
            bench.expect(Verdict.UNCLEAR_MESSAGE, "error: " in outcome.messages, words)
            return
        report = only_process(outcome.output)
        waits_s = wait_s_of(report)
        words = f"{waits_s} s of waits in about a second, {mode} mode"
        bench.expect(Verdict.WRONG_NUMBER, 0.1 < waits_s < _MOST_S, words)
        holds_s = report["totals"]["hold_s"]
        if mode == "full":
            words = f"{holds_s} s held in about a second"
            bench.expect(Verdict.WRONG_NUMBER, 0.1 < holds_s < _MOST_S, words)


def _remove_group(group: Path) -> None:
    eventually(lambda: not (group / "tasks").read_text())
    group.rmdir()


@fault(
    "agent_time_namespace",
    "agent whose clock is 100,000 s ahead (time namespace): right or refused",
    half=True,
)
def _agent_time_namespace(bench: Bench) -> None:
    wrapper = ("unshare", "--time", "--fork", "--kill-child", "--monotonic", "100000")
    tried = subprocess.run([*wrapper, "true"], capture_output=True, check=False)
    if tried.returncode:
        raise NotHere("this kernel has no time namespaces")
    _is_sane_or_refused(bench, wrapper)


_FAKE_TIME = """
#include <sys/time.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>
/* The wall clock jumps by a year and runs ten times as fast. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME)
        time->tv_sec = 1800000000 + (time->tv_sec - 1700000000) % 100000000 * 10;
    return result;
}
"""


@fault("faketime", "the agent's wall clock jumps by a year and runs ten times as fast: sane report")
def _faketime(bench: Bench) -> None:
    source = bench.folder / "fake.c"
    source.write_text(_FAKE_TIME)
    library = bench.folder / "fake.so"
    line = ["cc", "-shared", "-fPIC", "-o", str(library), str(source)]
    try:
        subprocess.run(line, check=True, capture_output=True)
    except FileNotFoundError as error:
        raise NotHere("there is no C compiler") from error
    _is_sane_or_refused(bench, ("env", f"LD_PRELOAD={library}"))
