"""The agent is killed, stopped or interrupted, at the worst moments."""

import random
import signal
import time

from faults.bench import Bench
from faults.memory_text import changed_bytes
from faults.plain_words import is_of_python
from faults.registry import Verdict, fault
from faults.targets import Target
from support.commands.gilscope import Gilscope, eventually

_FULL = ("--mode", "full")
_SPENDING = ("--mode", "auto", "--overhead-budget", "20%")
_ATTACHING_S = 1.5
"""Within this an agent has compiled its probes and attached, more or less."""


def _die(command: Gilscope) -> None:
    command.process.kill()
    command.process.wait()


def _kill_again_and_again(bench: Bench, times: range, *arguments: str) -> None:
    target = bench.target()
    for _ in times:
        _die(bench.recording(target, *arguments))
        target.advances()


@fault("kill9_record", "SIGKILL of `record`, 40 times: target runs on, all probes out", half=True)
def _kill9_record(bench: Bench) -> None:
    _kill_again_and_again(bench, bench.times(2, 40))


@fault("kill9_record_full", "the same with `record --mode full`, 20 times", half=True)
def _kill9_record_full(bench: Bench) -> None:
    _kill_again_and_again(bench, bench.times(1, 20), *_FULL)


@fault("kill9_serve_auto", "the same with `serve` in auto mode, windows open and close, 30 times")
def _kill9_serve_auto(bench: Bench) -> None:
    target = bench.target()
    chance = random.Random(1)
    for _ in bench.times(2, 30):
        service = bench.serve(*_SPENDING, "-p", str(target.pid))
        bench.sees(service, target)
        time.sleep(chance.uniform(0, 0.4))
        _die(service.command)
        target.advances()


@fault(
    "kill9_at_window_edge",
    "SIGKILL when probes of a window are put in or taken out, 40 times: all probes out",
    limit_s=900,
)
def _kill9_at_window_edge(bench: Bench) -> None:
    target = bench.target()
    for _ in bench.times(2, 40):
        service = bench.serve(*_SPENDING, "-p", str(target.pid))
        bench.sees(service, target)
        _await_window(target)
        _die(service.command)
        eventually(lambda: not changed_bytes(target.pid))


def _await_window(target: Target) -> None:
    """Return at a moment when the number of breakpoints has changed."""
    before = len(changed_bytes(target.pid))
    eventually(lambda: len(changed_bytes(target.pid)) != before)


@fault(
    "sigstop_agent_in_window",
    "SIGSTOP of serve while a window is open: its breakpoints go all the same",
    half=True,
)
def _sigstop_agent_in_window(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve(*_SPENDING, "-p", str(target.pid))
    bench.sees(service, target)
    counts: set[int] = set()

    def has_seen_both() -> bool:
        counts.add(len(changed_bytes(target.pid)))
        return max(counts) >= min(counts - {0}, default=0) + 4

    eventually(has_seen_both)
    outside = min(counts - {0})
    for _ in bench.times(1, 3):
        eventually(lambda: len(changed_bytes(target.pid)) > outside)
        service.command.send(signal.SIGSTOP)
        try:
            eventually(lambda: len(changed_bytes(target.pid)) <= outside, within_s=30)
        except AssertionError:
            left = len(changed_bytes(target.pid)) - outside
            words = f"{left} breakpoints of the window are in while the agent is stopped"
            bench.expect(Verdict.TARGET_HARMED, is_so=False, seen=words)
        service.command.send(signal.SIGCONT)
    bench.counts_rightly(service, target)


@fault("sigstop_agent", "SIGSTOP of serve for 6 s: after SIGCONT figures are right", half=True)
def _sigstop_agent(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    before = bench.sees(service, target)
    service.command.send(signal.SIGSTOP)
    until_s = time.monotonic() + (2 if bench.is_half else 6)
    while time.monotonic() < until_s:
        target.advances(100)
    service.command.send(signal.SIGCONT)
    after = bench.lives(service)
    name = "gilscope_gil_thread_wait_seconds_total"
    gained_s = after.total(name, pid=str(target.pid)) - before.total(name, pid=str(target.pid))
    least_s, most_s = after.before_s - before.after_s, after.after_s - before.before_s
    bench.is_share(gained_s, least_s, most_s)
    bench.counts_rightly(service, target)


@fault("sigstop_target", "SIGSTOP of the target: no thread waits longer than the wall, scrapes go")
def _sigstop_target(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    before = bench.sees(service, target)
    target.workload._process.send_signal(signal.SIGSTOP)
    until_s = time.monotonic() + (2 if bench.is_half else 6)
    while time.monotonic() < until_s:
        bench.lives(service)
    target.workload._process.send_signal(signal.SIGCONT)
    target.advances(100)
    after = bench.lives(service)
    name = "gilscope_gil_thread_wait_seconds_total"
    gained_s = after.total(name, pid=str(target.pid)) - before.total(name, pid=str(target.pid))
    # Both of its threads stand still, and neither waits longer than the wall says.
    bench.is_share(gained_s, 0, after.after_s - before.before_s)
    bench.counts_rightly(service, target)


@fault("attach_to_stopped", "attach to a stopped target: works or says why, in bounded time")
def _attach_to_stopped(bench: Bench) -> None:
    target = bench.target()
    target.workload._process.send_signal(signal.SIGSTOP)
    for mode in ("contention", "full"):
        outcome = bench.run("record", "-p", str(target.pid), "-d", "1", "--mode", mode)
        bench.expect(Verdict.AGENT_DIED, outcome.exit_code in (0, 3), str(outcome))
    target.workload._process.send_signal(signal.SIGCONT)
    bench.reports_rightly(target)


@fault("sighup_sigquit", "SIGHUP and SIGQUIT to serve and record: they end without harm")
def _sighup_sigquit(bench: Bench) -> None:
    target = bench.target()
    for number in (signal.SIGHUP, signal.SIGQUIT):
        command = bench.recording(target, *_FULL)
        command.send(number)
        _ends_by(bench, command, number)
        service = bench.serve("-p", str(target.pid))
        bench.sees(service, target)
        service.command.send(number)
        _ends_by(bench, service.command, number)


def _ends_by(bench: Bench, command: Gilscope, number: signal.Signals) -> None:
    outcome = command.outcome()
    if is_of_python(outcome.messages):
        return
    code = outcome.exit_code
    words = f"exit code {code} after {number.name}"
    bench.expect(Verdict.AGENT_DIED, code in (0, -number, 128 + number), words)


def _interrupt_while_attaching(bench: Bench, number: signal.Signals) -> None:
    target = bench.target()
    chance = random.Random(number)
    for turn in bench.times(4, 30):
        line = ("record", "-p", str(target.pid)), ("serve", "-p", str(target.pid))
        extra = ("--listen", "127.0.0.1:0") if turn % 2 else ()
        command = bench.agent(*line[turn % 2], *extra)
        time.sleep(chance.uniform(0, _ATTACHING_S))
        command.send(number)
        _ends_by(bench, command, number)


@fault("sigterm_while_attaching", "SIGTERM at any instant of record and serve: exit code 0 or 143")
def _sigterm_while_attaching(bench: Bench) -> None:
    _interrupt_while_attaching(bench, signal.SIGTERM)


@fault("sigint_while_attaching", "SIGINT likewise: 0 or 130, and no traceback", half=True)
def _sigint_while_attaching(bench: Bench) -> None:
    _interrupt_while_attaching(bench, signal.SIGINT)


@fault("kill9_record_command", "a command that is held for its probes goes on if gilscope dies")
def _kill9_record_command(bench: Bench) -> None:
    chance = random.Random(3)
    for turn in bench.times(2, 25):
        done = bench.folder / f"done-{turn}"
        began = bench.folder / f"began-{turn}"
        script = f'echo >{began}; exec {_PYTHON} -SEc "open({str(done)!r}, chr(119))"'
        command = bench.agent("record", "--", "sh", "-c", script)
        eventually(began.exists)
        time.sleep(chance.uniform(0, 0.5))
        _die(command)
        try:
            eventually(done.exists, within_s=30)
        except AssertionError:
            bench.expect(Verdict.TARGET_HARMED, is_so=False, seen="the command does not go on")


_PYTHON = "/usr/bin/python3.11"
