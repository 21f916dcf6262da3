"""Starts a command and holds it at the moment when its interpreter is there but has not run yet.

The program that gilscope itself starts is the only one that it ever stops. It is stepped with
ptrace from exec to exec, so that wrappers (shells, version managers) lead to the Python behind
them, and is let go as soon as the probes are in place. Should gilscope die, the kernel lets it go.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gilscope.elf import ElfError, ElfImage
from gilscope.errors import NotPython
from gilscope.target import locate

__all__ = ["HeldCommand"]

_TRACEME, _CONT, _DETACH, _SYSCALL, _SETOPTIONS = 0, 7, 17, 24, 0x4200
_OPTION_SYSGOOD, _OPTION_EXEC = 1, 0x10
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_EXEC_STOP = signal.SIGTRAP | 4 << 8

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, pid: int, value: int = 0) -> None:
    if _libc.ptrace(request, pid, None, value) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class HeldCommand:
    """A command started by gilscope. All methods must be called by the thread that made it."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Start *argv* and hold it at its first instruction; raises OSError as exec does."""
        self._child = subprocess.Popen(
            list(argv),
            preexec_fn=lambda: _ptrace(_TRACEME, 0),  # noqa: PLW1509 - one system call
        )
        self.pid = self._child.pid
        self._held = True
        self._exit_status: int | None = None
        self._wait_for_stop()
        _ptrace(_SETOPTIONS, self.pid, _OPTION_SYSGOOD | _OPTION_EXEC)

    def run_to_interpreter(self) -> None:
        """Let it run until an interpreter is mapped, and hold it there.

        Raises NotPython if it ends before, or UnsupportedPython, NoGil, GilCodeNotFound or
        NotPermitted for an interpreter that cannot be traced; then it runs on by itself.
        """
        try:
            while not self._has_interpreter():
                self._run_to_exec()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let it run freely."""
        if self._held:
            self._held = False
            with contextlib.suppress(OSError):
                _ptrace(_DETACH, self.pid)

    def wait(self) -> int:
        """Wait for the end and return its exit code; 128 + N where signal N ended it."""
        if self._exit_status is None:
            _, self._exit_status = os.waitpid(self.pid, 0)
        self._child.returncode = 0  # reaped here, so that Popen does not look for it
        code = os.waitstatus_to_exitcode(self._exit_status)
        return 128 - code if code < 0 else code

    def _has_interpreter(self) -> bool:
        if _needs_libpython(self.pid):
            return self._step_until_located()
        try:
            locate(self.pid)
        except NotPython:
            return False
        return True

    def _step_until_located(self) -> bool:
        # The loader maps the library with a system call; nothing of it has run at that point.
        while True:
            with contextlib.suppress(NotPython):
                locate(self.pid)
                return True
            _ptrace(_SYSCALL, self.pid)
            self._wait_for_stop()

    def _run_to_exec(self) -> None:
        forwarded = 0
        while True:
            _ptrace(_CONT, self.pid, forwarded)
            status = self._wait_for_stop()
            if status >> 8 == _EXEC_STOP:
                return
            forwarded = os.WSTOPSIG(status)
            if forwarded in (signal.SIGTRAP, _SYSCALL_STOP):
                forwarded = 0

    def _wait_for_stop(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSTOPPED(status):
            return status
        self._held = False
        self._exit_status = status
        raise NotPython(
            "the command ended without having run Python itself",
            remedy="gilscope follows the command from exec to exec, not into its children. "
            "Give the Python command line itself, or trace the child with -p PID.",
        )


def _needs_libpython(pid: int) -> bool:
    try:
        image = ElfImage(Path(f"/proc/{pid}/exe").read_bytes())
        return any(name.startswith("libpython") for name in image.needed)
    except (OSError, ElfError):
        return False
