"""Runs gilscope in a real pseudo-terminal, and shows what a person would see there."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyte

from support.commands.gilscope import command_line, environment

__all__ = ["Terminal", "in_terminal"]

_PATIENCE_S = 60.0
_CHUNK = 65536
_PRIVATE = 5
"""pyte keeps the number of a private mode shifted by so many bits."""


@dataclass(slots=True)
class Terminal:
    """A terminal with a command in it."""

    process: subprocess.Popen[bytes]
    screen: pyte.Screen
    output: bytearray
    """Everything that was written to it."""
    _stream: pyte.ByteStream = field(repr=False)
    _master: int = field(repr=False)
    _slave: int = field(repr=False)
    _attributes: list[Any] = field(repr=False)
    _modes: frozenset[int] = field(repr=False)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    @property
    def marked(self) -> str:
        """What is shown in reverse: the cursor's row."""
        cells = (
            cell.data
            for _, line in sorted(self.screen.buffer.items())
            for _, cell in sorted(line.items())
            if cell.reverse
        )
        return "".join(cells)

    def shows(self, *words: str) -> str:
        """Wait until all *words* are on the screen at once, and return what is."""
        return self.comes_to(lambda text: all(word in text for word in words), words)

    def comes_to(self, is_it: Callable[[str], bool], wanted: object = "") -> str:
        """Wait until *is_it* holds for what is on the screen, and return that."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while not is_it(self.text):
            left_s = deadline_s - time.monotonic()
            has_ended = self.process.poll() is not None
            if not self._read(0.0 if has_ended else max(0.0, left_s)):
                raise AssertionError(f"no {wanted} on the screen:\n{self.text}")
        return self.text

    def press(self, keys: str) -> None:
        """Type *keys*."""
        os.write(self._master, keys.encode())

    def type_bytes(self, keys: bytes) -> None:
        """Type what need not be text."""
        os.write(self._master, keys)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size, and tell the command so."""
        self.screen.resize(lines, columns)
        # What is there from now on has been drawn for the new size.
        self.screen.erase_in_display(2)
        _set_size(self._slave, columns, lines)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        os.close(self._slave)
        os.close(self._master)
        self._slave = self._master = -1

    def exit_code(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while self.process.poll() is None:
            if self._master < 0:
                return self.process.wait(_PATIENCE_S)
            self._read(0.05)
            assert time.monotonic() < deadline_s, f"it does not end:\n{self.text}"
        while self._master >= 0 and self._read(0.0):
            pass
        return self.process.returncode

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal is in the state in which the command found it.

        The line discipline, the alternate screen, the cursor, the mouse, pasting and wrapping.
        """
        is_same_line = self._attributes == termios.tcgetattr(self._slave)
        is_same_mode = self._modes == frozenset(self.screen.mode)
        return is_same_line and is_same_mode and not self.screen.cursor.hidden

    def has_mode(self, number: int) -> bool:
        """Return whether the DEC private mode *number* is on."""
        return number << _PRIVATE in self.screen.mode

    def close(self) -> None:
        """Give up the terminal."""
        for descriptor in (self._slave, self._master):
            if descriptor >= 0:
                os.close(descriptor)

    def _read(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout_s)
        if not ready:
            return False
        written = os.read(self._master, _CHUNK)
        self.output += written
        self._stream.feed(written)
        return True


@contextmanager
def in_terminal(
    *arguments: str,
    columns: int = 80,
    lines: int = 24,
    extra: Mapping[str, str] | None = None,
    program: Sequence[str] = (),
) -> Iterator[Terminal]:
    """Start gilscope in a terminal of this size; it has ended when the block has.

    *program* is what to start in place of gilscope.
    """
    master, slave = pty.openpty()
    _set_size(slave, columns, lines)
    screen = pyte.Screen(columns, lines)
    variables = environment(**{"TERM": "xterm-256color", **(extra or {})})
    for name in ("COLUMNS", "LINES", "COLORTERM", "NO_COLOR"):
        if name not in (extra or {}):
            variables.pop(name, None)
    # As a login shell does: without it, signals of the terminal would reach nobody. What the test
    # itself was told to ignore, by nohup or by a shell's &, is not what the command inherits.
    wrapper = ("env", "--default-signal=HUP,INT,QUIT,TERM", "setsid", "--ctty")
    own = [*wrapper, *program, *arguments] if program else None
    with subprocess.Popen(
        own or command_line(*arguments, wrapper=wrapper),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=variables,
    ) as process:
        terminal = Terminal(
            process=process,
            screen=screen,
            output=bytearray(),
            _stream=pyte.ByteStream(screen),
            _master=master,
            _slave=slave,
            _attributes=termios.tcgetattr(slave),
            _modes=frozenset(screen.mode),
        )
        try:
            yield terminal
        finally:
            if process.poll() is None:
                process.kill()
            terminal.close()


def _set_size(terminal: int, columns: int, lines: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
