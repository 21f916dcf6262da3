"""Starts a tracing tool, waits until its probes are in place, and ends it."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from bench.footprint import expects_signal

from gilscope.bpf.compile.headers import find_headers

__all__ = ["Tool", "ToolFailed", "tool_environment", "tool_started"]

_READY_WITHIN_S = 60.0
_LOOK_S = 0.005
_INTERRUPTS = 20
_INTERRUPT_AGAIN_S = 10.0
"""A second signal ends gilscope at once, and on a busy machine its report takes some seconds."""
_LAST_LINES = 4


class ToolFailed(Exception):
    """A tool did not get ready or did not end well; the message has its last words."""


class Tool:
    """A running tool whose probes are in place."""

    def __init__(self, process: subprocess.Popen[str], marker: str) -> None:
        self.pid = process.pid
        self.attach_ns = 0
        """From just before its start to its word that the probes are in place."""
        self.detach_ns = 0
        """From the signal to its end; 0 while it runs."""
        self._process = process
        self._marker = marker
        self._is_ready = threading.Event()
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, args=(_pipe(process),), daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """Return all that it has printed, on both channels."""
        return "".join(self._lines)

    def await_ready(self, began_ns: int) -> None:
        """Return when the probes are in place and it can be interrupted; raises ToolFailed."""
        self._is_ready.wait(_READY_WITHIN_S)
        if not self.attach_ns:
            raise ToolFailed(self._last_words("did not attach"))
        self.attach_ns -= began_ns
        # py-spy speaks before it is prepared for its end.
        deadline_s = time.monotonic() + _READY_WITHIN_S
        while self._process.poll() is None and not expects_signal(self.pid, signal.SIGINT):
            if time.monotonic() > deadline_s:
                raise ToolFailed(self._last_words("cannot be interrupted"))
            time.sleep(_LOOK_S)

    def end(self) -> None:
        """Interrupt it as a user would, and return when it has ended; raises ToolFailed."""
        began_ns = time.monotonic_ns()
        code = self._interrupt()
        self.detach_ns = time.monotonic_ns() - began_ns
        self._reader.join()
        if code != 0:
            raise ToolFailed(self._last_words(f"ended with {code}"))

    def _interrupt(self) -> int:
        # Again and again: bpftrace 0.17 misses a signal that does not come while it sleeps.
        for _ in range(_INTERRUPTS):
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(_INTERRUPT_AGAIN_S)
        raise ToolFailed(self._last_words("did not end"))

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.append(line)
                if self._marker in line and not self.attach_ns:
                    self.attach_ns = time.monotonic_ns()
                    self._is_ready.set()
        self._is_ready.set()

    def _last_words(self, what: str) -> str:
        lines = [line.strip() for line in self._lines if line.strip()]
        return f"{what}: {' '.join(lines[-_LAST_LINES:]) if lines else 'it said nothing'}"


def tool_environment(cache: str) -> dict[str, str]:
    """Return the environment of the tools: headers for BCC, and a *cache* of their own."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    headers = find_headers(os.environ, os.uname().release)
    if headers is not None:
        environment["BCC_KERNEL_SOURCE"] = str(headers)
    return environment


def _pipe(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        raise ToolFailed("was started without a pipe")
    return process.stdout


@contextmanager
def tool_started(
    command: Sequence[str], marker: str, environment: Mapping[str, str]
) -> Iterator[Tool]:
    """Start *command*; it is ready when it prints *marker*, and has ended when the block has.

    Raises ToolFailed.
    """
    began_ns = time.monotonic_ns()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    try:
        tool = Tool(process, marker)
        tool.await_ready(began_ns)
        yield tool
        tool.end()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
