"""Reads keys from the terminal and draws on it, also on one that misbehaves or goes away."""

import codecs
import contextlib
import os
import select
import sys
from typing import TextIO

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

__all__ = ["TerminalDriver"]

_READ_BYTES = 4096
_TURN_MS = 100
"""How often it is asked whether to end, and whether an escape was a key of its own."""


class _Screen:
    """Standard error of a terminal. What is drawn on one that has gone is given up."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()


class TerminalDriver(LinuxDriver):
    """textual's own, which a byte that is no UTF-8 ends, and which reads without end at the end."""

    def __init__(
        self,
        app: App[None],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Drive the terminal that the process has for *app*."""
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if sys.__stderr__ is not None:
            self._file = _Screen(sys.__stderr__)  # type: ignore[assignment]

    def run_input_thread(self) -> None:
        """Pass on what is typed, until the view or the terminal has ended."""
        parser = XTermParser(self._debug)
        # A key of a terminal with another encoding is no key that means anything here.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        try:
            while not self.exit_event.is_set():
                if poll.poll(_TURN_MS):
                    typed = self._read()
                    if not typed:
                        self._loop.call_soon_threadsafe(self._app.exit)
                        return
                    # The beginning of a character is no text yet, and no text means the end.
                    for event in parser.feed(text) if (text := decode(typed)) else ():
                        self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)
        finally:
            with contextlib.suppress(EOFError, ParseError):
                for _ in parser.feed(""):
                    pass

    def _read(self) -> bytes:
        """Return what was typed; nothing: there is no terminal any more."""
        with contextlib.suppress(OSError):
            return os.read(self.fileno, _READ_BYTES)
        return b""
