"""Says on a terminal how far something has come."""

import io
import sys

import pytest

from gilscope.commands import progress
from gilscope.commands.progress import Progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """Return a terminal on which a line is due at once."""
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_QUIET_S", 0.0)
    monkeypatch.setattr(progress, "_PAUSE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def test_time_is_told_and_wiped_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    With the whole, where that is known; other words take its place.
    """
    terminal = _terminal(monkeypatch)
    with Progress("Recording") as line:
        line.tell_time(10.0)
        line.tell_time(None)
        line.wipe()
        terminal.write("Tracing.\n")

    assert "\r\033[KRecording: 0 s of 10 s\r\033[KRecording: 0 s\r\033[KTracing.\n" == (
        terminal.getvalue()
    )


def test_what_is_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    As a share of the whole, and how fast.
    """
    terminal = _terminal(monkeypatch)
    with Progress("Reading") as line:
        line.tell(50, 200)

    assert terminal.getvalue().startswith("\r\033[KReading: 25 %, ")
    assert terminal.getvalue().endswith("\r\033[K")


def test_terminal_without_sequences_gets_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It could not be wiped away.
    """
    terminal = _terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with Progress("Recording") as line:
        line.tell_time(10.0)

    assert "" == terminal.getvalue()


def test_file_gets_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nor does a log.
    """
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setattr(progress, "_QUIET_S", 0.0)
    with Progress("Recording") as line:
        line.tell_time(10.0)

    assert "" == file.getvalue()
