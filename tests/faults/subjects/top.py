"""The live view in terminals that go away, change, or send what nobody types."""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from faults.bench import Bench
from faults.plain_words import not_plain
from faults.registry import Failed, Verdict, fault
from faults.targets import Target, cpu_ns
from support.commands.gilscope import command_line, eventually
from support.commands.terminal import Terminal, in_terminal

_SPINS = 0.5
"""Of a core: with a refresh a second it takes a few hundredths."""


@contextmanager
def _shown(target: Target) -> Iterator[Terminal]:
    """Show *target* in a terminal, until its role is on the screen."""
    with in_terminal("top", "-p", str(target.pid)) as terminal:
        terminal.shows("contend.py", "work (")
        yield terminal


@fault("top_terminal_gone", "the terminal goes away (SIGHUP): top ends", half=True)
def _top_terminal_gone(bench: Bench) -> None:
    target = bench.target()
    with _shown(target) as terminal:
        terminal.hang_up()
        terminal.exit_code()


@fault("top_terminal_gone_nohup", "the terminal goes while SIGHUP is ignored: top ends, or rests")
def _top_terminal_gone_nohup(bench: Bench) -> None:
    target = bench.target()
    wrapped = [
        "sh",
        "-c",
        'trap "" HUP; exec "$@"',
        "sh",
        *command_line("top", "-p", str(target.pid)),
    ]
    with in_terminal(program=wrapped) as terminal:
        terminal.shows("contend.py", "work (")
        terminal.hang_up()
        began_s = time.monotonic()
        before_ns = cpu_ns(terminal.process.pid)
        while time.monotonic() < began_s + 5 and terminal.process.poll() is None:
            target.advances(1000)
        if terminal.process.poll() is None:
            used_ns = cpu_ns(terminal.process.pid) - before_ns
            share = used_ns / 1e9 / (time.monotonic() - began_s)
            words = f"uses {share:.0%} of a core without a terminal"
            bench.expect(Verdict.HANGS, share < _SPINS, words)


@fault("top_signals", "SIGTERM, SIGINT, SIGHUP to top: it ends, the terminal is as it was")
def _top_signals(bench: Bench) -> None:
    target = bench.target()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with _shown(target) as terminal:
            os.kill(terminal.process.pid, number)
            code = terminal.exit_code()
            is_fine = code in (0, -number, 128 + number)
            bench.expect(Verdict.AGENT_DIED, is_fine, f"exit code {code} after {number.name}")
            words = f"the terminal is not as it was after {number.name}"
            bench.expect(Verdict.LEAK, terminal.is_as_before, words)


_KEYS = (
    b"\xe4",
    b"\xff\xfe",
    b"\0",
    b"\x1b[200~\xc3\x28\x1b[201~",
    b"\x1b[999;999;9z",
    b"\xe2\x82",
)


@fault("top_odd_key", "bytes that are no UTF-8, and odd escapes, are typed: top goes on", half=True)
def _top_odd_key(bench: Bench) -> None:
    target = bench.target()
    for turn in bench.times(2, len(_KEYS)):
        with _shown(target) as terminal:
            os.write(terminal._master, _KEYS[turn])
            try:
                # It still does what keys say.
                terminal.press("?")
                # With its last line: what was there before is drawn over from the top. And escape
                # with a key right behind it would be another key.
                terminal.shows("Upper table", "esc back")
                terminal.press("\x1b")
                terminal.shows("contend.py", "work (", "q quit")
            except (AssertionError, OSError) as error:
                ended = terminal.process.poll()
                last = terminal.output[-200:].decode(errors="replace")
                words = f"after {_KEYS[turn]!r} (exit code {ended}): {last!a}"
                raise Failed(Verdict.AGENT_DIED, words) from error
            terminal.press("q")
            words = f"exit code of top after {_KEYS[turn]!r}"
            bench.equal(Verdict.AGENT_DIED, 0, terminal.exit_code(), words)
            is_said = b"Traceback" in terminal.output
            bench.equal(Verdict.UNCLEAR_MESSAGE, False, is_said, "whether a traceback is shown")


def _quits(terminal: Terminal) -> bool:
    terminal.press("q")
    terminal._read(0.2)
    return terminal.process.poll() is not None


@fault("top_resizes", "200 resizes down to 1x1 and up to 500x500, keys in between: ends with q")
def _top_resizes(bench: Bench) -> None:
    target = bench.target()
    chance = random.Random(17)
    with _shown(target) as terminal:
        for turn in bench.times(15, 200):
            sizes = (1, 2, 7, 24, 80, 200, 500)
            terminal.resize(chance.choice(sizes), chance.choice(sizes))
            terminal.press(chance.choice("jksrp?\t\r"))
            terminal._read(0.02)
            ended = terminal.process.poll()
            bench.equal(Verdict.AGENT_DIED, None, ended, f"exit code of top after {turn} resizes")
        terminal.resize(80, 24)
        terminal.press("\x1b")
        try:
            eventually(lambda: _quits(terminal), within_s=30)
        except AssertionError:
            bench.failures.append(Failed(Verdict.HANGS, "top does not end within 30 s of q"))


_NAMED = """
import threading, types
name = {name!r}
code = work.__code__.replace(co_name=name, co_filename=name)
for number in (2, 3):
    function = types.FunctionType(code, work.__globals__, name, work.__defaults__)
    threading.Thread(target=function, args=(counts, number), daemon=True).start()
"""


@fault("top_evil_names", "functions named by terminal control are shown: nothing raw reaches it")
def _top_evil_names(bench: Bench) -> None:
    target = bench.target()
    target.do(_NAMED.format(name="\x1b]0;owned\x07evil\r\u202e[/red]"))
    with in_terminal("top", "-p", str(target.pid), columns=200) as terminal:
        terminal.shows("evil")
        target.advances(5000)
        bench.equal(Verdict.UNCLEAR_MESSAGE, False, b"\x1b]0;owned" in terminal.output, "a title")
        is_raw = "\u202e".encode() in terminal.output
        bench.equal(Verdict.UNCLEAR_MESSAGE, False, is_raw, "a direction")
        found = not_plain(terminal.text)
        bench.expect(Verdict.UNCLEAR_MESSAGE, not found, found)
        terminal.press("q")
        terminal.exit_code()


@fault("top_target_ends", "the only target of top ends while it is shown: top goes on, ends with q")
def _top_target_ends(bench: Bench) -> None:
    target = bench.target(may_end=True)
    with _shown(target) as terminal:
        os.kill(target.pid, signal.SIGKILL)
        terminal.comes_to(lambda text: "work (" not in text or "ended" in text, "end")
        if terminal.process.poll() is None:
            terminal.press("q")
        code = terminal.exit_code()
        bench.expect(Verdict.AGENT_DIED, code in (0, 3), f"exit code {code}")
