"""Windows on transactions: what is counted has begun and ended in one."""

import ctypes
import os
import signal
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.bpf.features import kernel_features
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.process.view import view_of
from gilscope.transactions.account import TransactionAccount
from gilscope.transactions.probe import StmProbe
from gilscope.transactions.target import StmTarget
from gilscope.windows.window import ProbeWindow, TrapPrices
from support.commands.gilscope import eventually
from support.tracing.breakpoints import breakpoints, stm_target
from support.tracing.transactions import ITM, RPYTHON, StmProgram, built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PRICES = TrapPrices(1_000, 10_000)
_ALLOWED_NS = 10**15


@pytest.fixture(scope="module")
def probe() -> Iterator[StmProbe]:
    """Return the loaded programs."""
    with StmProbe() as loaded:
        yield loaded


_held: list[StmTarget] = []
"""As a tracer holds them: their files have to stay open for as long as probes may be put in."""


def _window(probe: StmProbe, program: StmProgram) -> ProbeWindow:
    target = stm_target(program.pid)
    _held.append(target)
    hooks = [Hook(hook.program, target.file.path, hook.offset) for hook in target.sites.hooks]
    return probe.window(program.pid, hooks, events=target.events, stepped=())


@contextmanager
def _opened(window: ProbeWindow) -> Iterator[None]:
    """Have *window* open, and its probes out when the block has ended."""
    window.open(_PRICES, _ALLOWED_NS)
    yield
    wait(window.close())
    assert window.can_open


def test_only_what_happens_in_windows_is_counted(probe: StmProbe, tmp_path: Path) -> None:
    """
    Of four runs two are in windows: their commits and cancels, to the last one, and no loss.
    """
    # One thread: several restart each other's transactions, and each restart is a trap more.
    with running(built(tmp_path, "itm", ITM["shared"]), "1", "600") as program:
        window = _window(probe, program)
        target = stm_target(program.pid)
        for _ in range(2):
            program.tell()
            assert 0 == breakpoints(target)
            with _opened(window):
                assert len(target.sites.hooks) == breakpoints(target)
                program.tell()
        raw = probe.read()[program.pid]
        assert 0 == program.finish()

    assert (2 * 3 * 600, 2 * 600) == (raw.totals["commits"], raw.totals["cancels"])
    assert 2 * 3 * 600 == sum(raw.totals["committed_slots"])
    assert {} == raw.lost
    # Of each round: 4 begins and 2 of nested ones, 3 commits and 2, 1 cancel.
    assert 2 * 600 * 12 == raw.totals["traps"]


@pytest.mark.parametrize("log", [(), ("log",)], ids=["entries", "events"])
def test_what_lies_across_the_edge_of_a_window_is_not_counted(
    log: tuple[str, ...], probe: StmProbe, tmp_path: Path
) -> None:
    """
    A begin in one window and an end in the next are no transaction, and no try, however long.
    """
    with running(built(tmp_path, "rpython", RPYTHON["pie"]), "1", "1", *log) as program:
        window = _window(probe, program)
        with _opened(window):
            program.tell("start")
        for end in ("abort", "commit"):
            with _opened(window):
                program.tell(end)
            with _opened(window):
                program.tell("start")
        raw = probe.read()[program.pid]
        assert 0 == program.finish()

    assert (0, 0) == (raw.totals["commits"], raw.totals["aborts"])
    assert (0, 0) == (raw.totals["committed_ns"], raw.totals["aborted_ns"])
    assert {} == raw.lost


def test_a_transaction_inside_of_a_window_is_timed_by_its_own_begin(
    probe: StmProbe, tmp_path: Path
) -> None:
    """
    What was left open in an earlier window does not make it longer.
    """
    with running(built(tmp_path, "rpython", RPYTHON["pie"]), "1", "1", "log") as program:
        window = _window(probe, program)
        with _opened(window):
            program.tell("start")
        program.tell("commit")
        with _opened(window):
            before_ns = _began_ns(probe, program.pid)
            program.tell("start")
            program.tell("commit")
            covered_ns = _began_ns(probe, program.pid) - before_ns
        raw = probe.read()[program.pid]
        assert 0 == program.finish()

    assert 1 == raw.totals["commits"]
    assert 0 < raw.totals["committed_ns"] < covered_ns
    assert {} == raw.lost


def _began_ns(probe: StmProbe, pid: int) -> int:
    return probe.read()[pid].at_ns


def test_a_window_ends_by_itself_at_its_allowance(probe: StmProbe, tmp_path: Path) -> None:
    """
    With room for 60 traps at the price of an emulated one, the 60th ends it, and is not counted.
    """
    with running(built(tmp_path, "itm", ITM["shared"]), "1", "100") as program:
        window = _window(probe, program)
        window.open(_PRICES, 60 * _PRICES.trap_ns)
        program.tell()
        pids = probe.take_notices().ended_windows
        has_used_up = window.has_used_up
        wait(window.close())
        raw = probe.read()[program.pid]
        observed_ns = window.observed_ns(raw.at_ns)
        assert 0 == program.finish()

    assert (frozenset({program.pid}), True) == (pids, has_used_up)
    # A round has 12 traps. The last of 5 rounds ends with a cancel, and its commits are before it.
    assert (15, 4) == (raw.totals["commits"], raw.totals["cancels"])
    assert 1200 == raw.totals["traps"]
    assert 1200 * _PRICES.trap_ns == raw.totals["cost_ns"]
    assert 0 < observed_ns < raw.at_ns


def test_a_silent_agent_has_its_windows_closed(probe: StmProbe, tmp_path: Path) -> None:
    """
    The probes go by themselves, and nothing counts as observed from then on.
    """
    with running(built(tmp_path, "itm", ITM["shared"]), "1", "5") as program:
        window, target = _window(probe, program), stm_target(program.pid)
        window.open(_PRICES, _ALLOWED_NS)
        program.tell()
        eventually(lambda: window.has_used_up and breakpoints(target) == 0)
        observed_ns = window.observed_ns(probe.read()[program.pid].at_ns)
        program.tell()
        raw = probe.read()[program.pid]
        later_ns = window.observed_ns(raw.at_ns)
        wait(window.close())
        assert 0 == program.finish()

    assert observed_ns == later_ns == window.observed_ns(raw.at_ns) > 0
    assert 15 == raw.totals["commits"]


def test_an_exec_ends_what_is_counted(probe: StmProbe, tmp_path: Path) -> None:
    """
    No window opens for the program that comes after it, though the file is the same.
    """
    with running(built(tmp_path, "rpython", RPYTHON["pie"]), "1", "1") as program:
        window = _window(probe, program)
        program.begin("again")
        assert "ready" == program.answer()
        with pytest.raises(ProcessLookupError):
            window.open(_PRICES, _ALLOWED_NS)
        wait(window.close())
        program.tell()
        traps = probe.read()[program.pid].totals["traps"]
        assert 0 == program.finish()

    assert 0 == traps


def test_perf_events_on_their_way_out_are_not_forgotten(tmp_path: Path) -> None:
    """
    On kernels without links, traps are unseen from the end of a window until the probes are out.
    """
    features = replace(kernel_features(), uprobe_links=False)
    with (
        StmProbe(features=features) as probe,
        running(built(tmp_path, "itm", ITM["shared"]), "1", "5") as program,
    ):
        window = _window(probe, program)
        with _opened(window):
            program.tell()
            assert 0 == window.take_unseen_ns()
        unseen_ns = window.take_unseen_ns()
        raw = probe.read()[program.pid]

        assert 0 < unseen_ns < raw.at_ns
        assert 0 == window.take_unseen_ns()
        assert 15 == raw.totals["commits"]


class _CloneArguments(ctypes.Structure):
    """struct clone_args of <linux/sched.h>, as of Linux 5.5."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "flags",
            "pidfd",
            "child_tid",
            "parent_tid",
            "exit_signal",
            "stack",
            "stack_size",
            "tls",
            "set_tid",
            "set_tid_size",
        )
    ]


_CLONE3 = 435


@contextmanager
def _started_as(pid: int, program: Path) -> Iterator[None]:
    """Have *program* run as a process whose number is *pid*, until the block has ended."""
    wanted = ctypes.c_int(pid)
    arguments = _CloneArguments(
        exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted), set_tid_size=1
    )
    libc = ctypes.CDLL(None, use_errno=True)
    reading, writing = os.pipe()
    answer = libc.syscall(ctypes.c_long(_CLONE3), ctypes.byref(arguments), ctypes.sizeof(arguments))
    if not answer:
        try:
            os.dup2(reading, 0)
            os.execv(program, [os.fspath(program), "1", "1"])  # noqa: S606 - that is the point
        finally:
            os._exit(1)
    try:
        assert answer == pid, os.strerror(ctypes.get_errno())
        # It has a new name before it maps anything: a moment at which it looks like a dead one.
        eventually(lambda: os.fspath(program) in Path(f"/proc/{pid}/maps").read_text())
        yield
    finally:
        os.close(reading)
        # It ends when it asks what to do and there is nothing any more.
        os.close(writing)
        os.waitpid(pid, 0)


def test_another_process_with_the_same_number_is_not_traced(tmp_path: Path) -> None:
    """
    The first one ends, and its number is used again, before the tracer checks: it saw an end.
    """
    program_file = built(tmp_path, "itm", ITM["shared"])
    tracer = TransactionAccount()
    try:
        with running(program_file, "1", "10") as program:
            pid = program.pid
            tracer.attach(stm_target(pid), view_of(pid))
            program.tell()
            assert 0 == program.finish()
        with _started_as(pid, program_file):
            target = eventually(lambda: tracer.find(view_of(pid)))
            assert target is not None
            tracer.tick()
            (observation,) = tracer.observe()

            assert ((), True) == (tracer.pids, observation.ended)
            assert 30 == observation.totals.commits
            assert 0 == breakpoints(target)
    finally:
        tracer.close()
