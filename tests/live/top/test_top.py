"""``gilscope top`` in a real terminal: what it shows, how keys work, and what it leaves behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from accuracy.truth import Workload, started
from support.commands.gilscope import gilscope
from support.commands.terminal import Terminal, in_terminal

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_ALTERNATE_SCREEN = 1049
_MOUSE = 1000
_CONVOY = re.compile(r"GIL_CONVOY +serve_echo \(.*\n +held by +crunch \(")


@contextmanager
def _convoy_in_view(*arguments: str, **variables: str) -> Iterator[tuple[Terminal, Workload]]:
    """Yield a terminal that shows the convoy program and its roles, and the program."""
    with (
        started([_PYTHON], "convoy.py", "--client") as workload,
        in_terminal("top", "-p", str(workload.pid), *arguments, extra=variables) as terminal,
    ):
        terminal.shows("convoy.py", "crunch (", "serve_echo (")
        yield terminal, workload


def _row(text: str, pid: int) -> str:
    """Return the row of process *pid*; empty where it has none."""
    return next((line for line in text.splitlines() if re.search(rf"^\S+ +{pid} ", line)), "")


def _lost_ms(text: str, pid: int) -> float:
    """Return the time that process *pid* loses, in milliseconds a second; 0 where it has no row."""
    found = re.search(r"[\d.]+", _row(text, pid).partition(f" {pid} ")[2])
    return float(found[0]) if found else 0.0


def test_view_of_a_convoy() -> None:
    """
    At 80x24 it shows the process with its figures, and its roles below; keys do what they say.
    """
    with _convoy_in_view("--interval", "0.2") as (terminal, workload):
        # Two of the three threads always wait.
        text = terminal.comes_to(lambda text: 1000 < _lost_ms(text, workload.pid), "convoy")
        lines = text.splitlines()

        assert lines[0] == "gilscope top  by time lost  contention mode, every 0.2 s"
        assert lines[2].startswith("process                    pid    lost convoy threads held")
        assert all(f"({folder}convoy.py:" not in text for folder in ("/", "tests/"))
        assert "q quit" in lines[23]
        assert not terminal.has_mode(_MOUSE)
        terminal.press("s")
        terminal.shows("by convoy share")
        terminal.press("S")
        terminal.shows("by convoy share, reversed")
        terminal.press("r")
        terminal.comes_to(lambda text: "2x crunch (" not in text, "screen without roles")
        terminal.press("?")
        terminal.shows("Upper table", "esc back")
        terminal.press("\x1b")
        terminal.shows("gilscope top")
        terminal.press("/no such program\r")
        terminal.shows("only: no such program", "No Python that was chosen is running.")
        terminal.press("\x1b")
        terminal.shows(f"Who keeps whom waiting in convoy.py ({workload.pid})")


def test_worst_pair_of_a_convoy() -> None:
    """
    The lower pane shows serve_echo in a convoy held by crunch, and enter opens both stacks.
    """
    with _convoy_in_view("--interval", "0.2") as (terminal, _):
        # In flight, and not looked at yet, a wait may be held by something unknown.
        terminal.comes_to(lambda text: _CONVOY.search(text) is not None, "convoy held by crunch")
        terminal.press("p")
        text = terminal.shows("PAUSED")
        pair = _CONVOY.search(text)
        assert pair is not None
        # Each pair has such a line; that of all holders, which begins with the words, is none.
        above = len(re.findall(r"^ +held by ", text[: pair.start()], re.MULTILINE))
        terminal.press("\t" + "j" * above)
        terminal.comes_to(lambda _: "GIL_CONVOY" in terminal.marked, "cursor on the convoy")
        terminal.press("\r")
        text = terminal.shows("waiting", "held by", "Thread._bootstrap")

        assert re.search(r"in (1 wait|\d+ waits) total", text)
        assert "serve_echo (" in text[: text.index("held by")]
        assert "crunch (" in text[text.index("held by") :]
        assert "    sum(range(20000))" in text.splitlines()


def test_view_follows_the_terminals_size() -> None:
    """
    A larger terminal is filled, and a tiny one harms nothing.
    """
    with _convoy_in_view() as (terminal, _):
        terminal.resize(120, 40)
        terminal.comes_to(lambda text: "q quit" in text.split("\n")[39], "keys in line 40")
        terminal.comes_to(
            lambda text: 118 < max(len(line) for line in text.split("\n")), "line of 119 cells"
        )
        terminal.resize(20, 5)
        terminal.comes_to(lambda text: text.split("\n")[0].endswith("…"), "first line that is cut")
        terminal.resize(80, 24)
        terminal.shows("serve_echo (", "q quit")


@pytest.mark.parametrize("end", ["q", "\x03", signal.SIGTERM, signal.SIGINT])
def test_terminal_is_as_before(end: str | signal.Signals) -> None:
    """
    After q, Ctrl-C and the signals the exit code is 0, and the terminal as it was.
    """
    with _convoy_in_view() as (terminal, workload):
        assert terminal.has_mode(_ALTERNATE_SCREEN)
        assert not terminal.is_as_before
        if isinstance(end, str):
            terminal.press(end)
        else:
            terminal.process.send_signal(end)

        assert 0 == terminal.exit_code()
        assert terminal.is_as_before
        assert b"Traceback" not in terminal.output
        os.kill(workload.pid, 0)


def test_terminal_is_as_before_a_failure() -> None:
    """
    A fault in the view itself ends it with 1 and a traceback, on a terminal that can be used.
    """
    fault = (
        "import sys; from gilscope.cli import main; from gilscope.top import main_screen\n"
        "def fail(*_): raise RuntimeError('made up')\n"
        "main_screen.totals_line = fail; sys.exit(main())"
    )
    with (
        started([_PYTHON], "convoy.py") as workload,
        in_terminal(
            "top", "-p", str(workload.pid), program=(sys.executable, "-c", fault)
        ) as terminal,
    ):
        assert 1 == terminal.exit_code()
        assert terminal.is_as_before
        assert b"made up" in terminal.output


def test_lost_connection_ends_it() -> None:
    """
    When the terminal goes away, so does gilscope, and takes its probes along.
    """
    with _convoy_in_view() as (terminal, _):
        terminal.hang_up()

        assert -signal.SIGHUP == terminal.exit_code()


@pytest.mark.parametrize("kind", ["xterm-256color", "screen", "linux", "vt100"])
def test_kinds_of_terminals(kind: str) -> None:
    """
    The text is the same everywhere, and what an old terminal could print as text is not sent.
    """
    with _convoy_in_view(TERM=kind, LANG="C") as (terminal, _):
        lines = terminal.shows("serve_echo (", "q quit").splitlines()

        assert lines[0].startswith("gilscope top  by time lost  contention mode, every 1 s")
        assert b"\x1b[>" not in terminal.output
        terminal.press("q")
        assert 0 == terminal.exit_code()


def test_no_colours() -> None:
    """
    With NO_COLOR nothing is coloured, and the cursor can be seen all the same.
    """
    with _convoy_in_view(NO_COLOR="1") as (terminal, _):
        # A screen is drawn piece by piece: the cursor may come after the words.
        terminal.comes_to(
            lambda text: "Who keeps whom waiting" in text and bool(terminal.marked), "cursor"
        )
        cells = [cell for line in terminal.screen.buffer.values() for cell in line.values()]

        assert {("default", "default")} == {(cell.fg, cell.bg) for cell in cells}


def test_process_that_ends_is_still_there() -> None:
    """
    Its last state stays for a while, and says that it has ended.
    """
    with _convoy_in_view("--interval", "0.2") as (terminal, workload):
        os.kill(workload.pid, signal.SIGTERM)
        terminal.comes_to(lambda text: "  ended" in _row(text, workload.pid), "row that says ended")
        terminal.shows("2 ended")  # it has ended its client, too


@pytest.mark.parametrize("arguments", [("--interval", "0"), ("--interval", "x"), ("--match", "(")])
def test_usage_errors(arguments: tuple[str, ...]) -> None:
    """
    What cannot be meant is refused with exit code 2 and a reason.
    """
    outcome = gilscope("top", *arguments)

    assert (2, "") == (outcome.exit_code, outcome.output)
    assert "error: " in outcome.messages


def test_pipe_is_no_terminal() -> None:
    """
    Without a terminal the exit code is 2, and the message says what to use instead.
    """
    outcome = gilscope("top")

    assert (2, "") == (outcome.exit_code, outcome.output)
    assert [
        "error: top needs a terminal, but standard input is none",
        "For a report of one process use: gilscope record -p PID -d SECONDS",
        "For figures all the time use: gilscope serve --all",
    ] == outcome.messages.splitlines()


def test_terminal_without_a_cursor() -> None:
    """
    TERM=dumb cannot show it.
    """
    with in_terminal("top", extra={"TERM": "dumb"}) as terminal:
        assert 2 == terminal.exit_code()
        assert "TERM is 'dumb', which cannot move its cursor" in terminal.text
        assert terminal.is_as_before


def test_process_that_does_not_exist() -> None:
    """
    A named process must be there: exit code 3 says which is not, before the view opens.
    """
    with subprocess.Popen([_PYTHON, "-c", ""]) as gone:
        pass
    with in_terminal("top", "-p", str(gone.pid)) as terminal:
        assert 3 == terminal.exit_code()
        assert f"error: there is no process {gone.pid}" in terminal.text
        assert b"\x1b[?1049h" not in terminal.output


def test_byte_that_is_no_text_is_no_key() -> None:
    """
    What a Latin-1 terminal sends for an umlaut is passed over, and the next key is taken.
    """
    with _convoy_in_view() as (terminal, _):
        terminal.type_bytes(b"\xe9j\xff\xfek")
        terminal.press("p")
        terminal.shows("PAUSED")
        terminal.press("q")

        assert 0 == terminal.exit_code()
        assert b"Traceback" not in terminal.output


def test_terminal_that_goes_away_without_a_signal_ends_it() -> None:
    """
    With SIGHUP ignored, as by nohup, it ends all the same and keeps no processor busy.
    """
    with started([_PYTHON], "convoy.py") as workload:
        line = f"trap '' HUP; exec {sys.executable} -m gilscope top -p {workload.pid}"
        with in_terminal(program=("sh", "-c", line)) as terminal:
            terminal.shows("convoy.py")
            terminal.hang_up()

            assert 0 == terminal.exit_code()
