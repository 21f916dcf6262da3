"""Starts a command and holds it at the moment when its interpreter is there but has not run yet.

The program that gilscope itself starts is the only one that it ever stops. It is stepped with
ptrace from exec to exec, so that wrappers (shells, version managers) lead to the Python behind
them, and is let run as soon as the probes are in place. Should gilscope die, the kernel lets it
run.
"""

import contextlib
import ctypes
import errno
import os
import select
import signal
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import NoReturn

from gilscope.elf.image import ElfError
from gilscope.errors import NotPermitted, NotPython
from gilscope.process.files.mapped_file import open_program
from gilscope.process.view import ProcessView, view_of
from gilscope.runtimes.registry import detect
from gilscope.system import ending

__all__ = ["HeldCommand"]

_CONT, _DETACH, _SYSCALL, _SEIZE = 7, 17, 24, 0x4206
_OPTION_SYSGOOD, _OPTION_EXEC = 1, 0x10
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_EXEC_STOP = signal.SIGTRAP | 4 << 8
_REMEDY = (
    "gilscope follows the command from exec to exec, and its children unless --no-children is "
    "given. To trace what runs already: -p PID, or --match REGEX."
)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, pid: int, value: int = 0) -> None:
    if _libc.ptrace(request, pid, None, value) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class HeldCommand:
    """A command started by gilscope.

    All methods but `give_up` must be called by the thread that made it.
    """

    def __init__(
        self,
        argv: Sequence[str],
        is_wanted: Callable[[ProcessView], bool] = lambda _: False,
    ) -> None:
        """Start *argv* and hold it at its first instruction; raises OSError as exec does.

        What is no interpreter with a GIL counts as one if it *is_wanted*.
        """
        self._is_wanted = is_wanted
        self.pid = _start_seized(argv)
        # For `give_up`, whenever it comes: the number may be another process's by then.
        self._pidfd = os.pidfd_open(self.pid)
        weakref.finalize(self, os.close, self._pidfd)
        self._held = True
        self._exit_status: int | None = None
        self._untold = 0
        """The signal that it was stopped for last, of those that it is to get."""
        self.is_given_up = False
        """Whether `run_to_interpreter` was not to wait any longer."""
        self._wait_for_stop()

    @property
    def has_ended(self) -> bool:
        """Whether its end has been seen: its number may be another process's since."""
        return self._exit_status is not None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, whatever program it is by now."""
        return not self.has_ended and not select.select([self._pidfd], [], [], 0)[0]

    def run_to_interpreter(self, within_s: float | None = None) -> None:
        """Let it run until an interpreter is mapped, and hold it there.

        Raises NotPython if it ends before, has not come so far *within_s*, or is given up; or
        UnsupportedPython, NoGil, GilCodeNotFound or NotPermitted for an interpreter that cannot be
        traced. Then it runs on by itself.
        """
        timer = None if within_s is None else threading.Timer(within_s, self.give_up)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            while not self._has_interpreter():
                self._run_to_exec()
        except BaseException:
            self.release()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def give_up(self) -> None:
        """End `run_to_interpreter`, which may wait for a program that never runs Python.

        Any thread may call it.
        """
        self.is_given_up = True
        # Of a program that is traced every signal stops it, and this one, which is not passed on,
        # does nothing to most programs even if it should be.
        if self._held:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGCONT)

    def release(self) -> None:
        """Let it run freely."""
        if self._held:
            self._held = False
            with contextlib.suppress(OSError):
                _ptrace(_DETACH, self.pid, self._untold)

    def wait(self) -> int:
        """Wait for the end and return its exit code; 128 + N where signal N ended it."""
        if self._exit_status is None:
            _, self._exit_status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(self._exit_status)
        return 128 - code if code < 0 else code

    def _has_interpreter(self) -> bool:
        if _needs_libpython(self.pid):
            return self._step_until_located()
        try:
            view = view_of(self.pid)
        except NotPython:
            return False
        try:
            detect(view).close()
        except NotPython:
            return self._is_wanted(view)
        return True

    def _step_until_located(self) -> bool:
        # The loader maps the library with a system call; nothing of it has run at that point.
        forwarded = 0
        while True:
            with contextlib.suppress(NotPython):
                detect(view_of(self.pid)).close()
                return True
            self._resume(_SYSCALL, forwarded)
            forwarded = _signal_of(self._wait_for_stop())

    def _run_to_exec(self) -> None:
        forwarded = 0
        while True:
            self._resume(_CONT, forwarded)
            status = self._wait_for_stop()
            if status >> 8 == _EXEC_STOP:
                return
            forwarded = _signal_of(status)

    def _resume(self, request: int, forwarded: int) -> None:
        # One that was killed while it was held is no tracee any more; its end is waited for next.
        with contextlib.suppress(ProcessLookupError):
            _ptrace(request, self.pid, forwarded)

    def _wait_for_stop(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSTOPPED(status):
            if self.is_given_up:
                number = _signal_of(status)
                self._untold = 0 if number == signal.SIGCONT else number
                raise NotPython(
                    "the command had not run Python itself when it was time to end", remedy=_REMEDY
                )
            return status
        self._held = False
        self._exit_status = status
        raise NotPython(
            "the command ended without having run Python itself",
            remedy=_REMEDY,
        )


def _signal_of(status: int) -> int:
    # What the command was stopped for: a signal that it is to get, or an event of ptrace's own.
    number = os.WSTOPSIG(status)
    return 0 if status >> 16 or number == _SYSCALL_STOP else number


def _start_seized(argv: Sequence[str]) -> int:
    if not argv[0]:
        # Python would not even ask the kernel for a program without a name.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    # With TRACEME the first stop would be a SIGTRAP, which kills the command if gilscope dies
    # meanwhile. So the child is seized before its exec, whose stop is then an event.
    go, let_go = os.pipe()
    failure, fail = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(let_go)
        _become(argv, go, fail)
    for fd in (go, fail):
        os.close(fd)
    try:
        _ptrace(_SEIZE, pid, _OPTION_SYSGOOD | _OPTION_EXEC)
        os.write(let_go, b".")
    except OSError as error:
        os.close(let_go)
        os.close(failure)
        os.waitpid(pid, 0)
        if isinstance(error, (ProcessLookupError, BrokenPipeError)):
            raise NotPython("the command was killed before it had run") from error
        if isinstance(error, PermissionError):
            raise NotPermitted(
                f"the kernel forbids to hold a command by ptrace ({error.strerror})",
                remedy="Start it by itself and trace it with -p PID.",
            ) from error
        raise
    os.close(let_go)
    with os.fdopen(failure, "rb") as pipe:
        number = pipe.read()
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)))
    return pid


def _become(argv: Sequence[str], go: int, fail: int) -> NoReturn:
    try:
        if os.read(go, 1):
            os.closerange(3, fail)
            os.closerange(fail + 1, os.sysconf("SC_OPEN_MAX"))
            signal.pthread_sigmask(signal.SIG_SETMASK, ending.inherited_mask())
            for number in _IGNORED_BY_PYTHON:
                signal.signal(number, signal.SIG_DFL)
            os.execvp(argv[0], list(argv))  # noqa: S606 - the user gave words, not a line
    except OSError as error:
        os.write(fail, str(error.errno).encode())
    finally:
        os._exit(127)


def _needs_libpython(pid: int) -> bool:
    try:
        with contextlib.closing(open_program(pid)) as file:
            return any(name.startswith(("libpython", "libpypy")) for name in file.image().needed)
    except (OSError, ElfError):
        return False
