"""Ends the process when SIGINT or SIGTERM asks for it, whatever it is waiting for.

A thread of its own takes the signals, because the others may hang where no handler runs: in a read
of a process' memory that nobody answers, or on a lock that is held meanwhile.

- Before a command has begun what it is for, the process ends at once, by the signal's own action.
  The main thread does that, so that no probe is being put in or taken out just then.
- A command that has begun is told, in a block of `told`, and ends itself.
- What has not ended after `PATIENCE_S`, or when a second signal comes, is ended by force, which no
  traced process notices: the kernel takes probes out at the end of whoever has put them in.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["PATIENCE_S", "Told", "inherited_mask", "told", "watch"]

PATIENCE_S: Final = 2.0
"""Timeout for the end of a command."""

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_NUDGE = signal.SIGURG
"""Wakes the main thread. Without a handler it does nothing, whenever it comes."""
_FROM_KERNEL = 0x80
"""SI_KERNEL: keys of the terminal, not a process, have made the signal."""
_LAST_ACT_S = 0.2
_SHELL_BASE = 128
"""A shell's exit code for a program that signal N has ended is this and N."""


class Told:
    """Whether the command has been asked to end."""

    def __init__(self, on_signal: Callable[[int], None]) -> None:
        self.number: int | None = None
        """Of the signal that has come."""
        self._on_signal = on_signal
        self._is_from_terminal = False
        self._patience_s: float | None = PATIENCE_S
        self._terminal_patience_s: float | None = PATIENCE_S
        self._deadline_s: float | None = None

    @property
    def is_set(self) -> bool:
        """Return whether a signal has come."""
        return self.number is not None

    def allow(self, patience_s: float, *, from_terminal_s: float | None = PATIENCE_S) -> None:
        """Let the way out take *patience_s* from now on, or from the signal if none has come yet.

        After Ctrl-C in the terminal it may take *from_terminal_s* if that is longer; None: as long
        as it wants.
        """
        self._patience_s = patience_s
        self._terminal_patience_s = from_terminal_s and max(patience_s, from_terminal_s)
        if self.number is not None:
            self._deadline_s = self._deadline()

    def end(self) -> None:
        """End the process by the signal that has come, if one has."""
        if self.number is not None:
            _die(self.number)

    def left_s(self) -> float | None:
        """Return how long the way out may take yet, at least 0."""
        deadline_s = self._deadline_s
        return None if deadline_s is None else max(0.0, deadline_s - time.monotonic())

    def tell(self, number: int, *, is_from_terminal: bool) -> None:
        """Note the signal *number*, which has come just now."""
        self._is_from_terminal = is_from_terminal
        self._deadline_s = self._deadline()
        self.number = number
        self._on_signal(number)

    def _deadline(self) -> float | None:
        patience_s = self._terminal_patience_s if self._is_from_terminal else self._patience_s
        return None if patience_s is None else time.monotonic() + patience_s


class _Watcher:
    """The thread that takes the signals."""

    def __init__(self, numbers: set[signal.Signals]) -> None:
        self._numbers = numbers
        self._main = threading.get_ident()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="ending", daemon=True)
        self.told: Told | None = None

    def start(self) -> None:
        """Begin; raises RuntimeError where no thread can be started."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the signals alone from now on."""
        self._is_over = True
        if self._thread.ident is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pthread_kill(self._thread.ident, min(self._numbers))
        self._thread.join()

    def _run(self) -> None:
        signalled = signal.sigwaitinfo(self._numbers)
        if self._is_over:
            return
        number = signalled.si_signo
        told = self.told
        if told is None:
            told = Told(self._end_by_main_thread)
        told.tell(number, is_from_terminal=signalled.si_code == _FROM_KERNEL)
        while True:
            # Short turns: the command may be given more time meanwhile.
            left_s = told.left_s()
            if left_s is not None and left_s <= 0:
                _say(f"error: gilscope did not end in time after {_name(number)}, and is ended now")
                _die(number)
            second = signal.sigtimedwait(self._numbers, min(0.1, left_s or 0.1))
            if self._is_over:
                return
            if second is not None:
                _die(second.si_signo)

    def _end_by_main_thread(self, number: int) -> None:
        _pending.append(number)
        signal.pthread_kill(self._main, _NUDGE)


_watchers: list[_Watcher] = []
"""The one that there is, if any."""
_pending: list[int] = []
_last_acts: list[Callable[[], None]] = []
_mask: set[int] = set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


@contextlib.contextmanager
def watch() -> Iterator[None]:
    """Take SIGINT and SIGTERM inside of the block, of which there is one, in the main thread."""
    # One that was ignored when gilscope started stays ignored, as for any background job.
    numbers = {each for each in _NUMBERS if signal.getsignal(each) is signal.SIG_DFL}
    watcher = _Watcher(numbers)
    if not numbers or threading.current_thread() is not threading.main_thread():
        yield
        return
    nudged_before = signal.signal(_NUDGE, _on_nudge)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        try:
            watcher.start()
        except RuntimeError:
            # Where there can be no other thread, the signals have their default action.
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield
            return
        _watchers.append(watcher)
        try:
            yield
        finally:
            _watchers.remove(watcher)
            watcher.stop()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(_NUDGE, nudged_before)


@contextlib.contextmanager
def told(
    on_signal: Callable[[int], None] = lambda _: None, *, last_act: Callable[[], None] | None = None
) -> Iterator[Told]:
    """Have a signal tell the block that it is to end, by *on_signal* in another thread.

    The block has `PATIENCE_S` for that, and more where it asks for it. If it does not end in time,
    *last_act* is called before the process is ended.
    """
    asked = Told(on_signal)
    if last_act is not None:
        _last_acts.append(last_act)
    for watcher in _watchers:
        watcher.told = asked
    try:
        yield asked
    finally:
        for watcher in _watchers:
            watcher.told = None
        if last_act is not None:
            _last_acts.remove(last_act)


def inherited_mask() -> set[int]:
    """Return the signals that were blocked when gilscope started, as programs of its user get."""
    return set(_mask)


def _on_nudge(*_: object) -> None:
    if _pending:
        _die(_pending[0])


def _die(number: int) -> None:
    for act in _last_acts:
        _attempt(act)
    # Nobody has put a handler in the place of the default action, so whoever waits for gilscope, a
    # shell for example, sees what has ended it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    # Process 1 of a container is not ended by that.
    os._exit(_SHELL_BASE + number)


def _say(words: str) -> None:
    _attempt(lambda: print(words, file=sys.stderr))  # noqa: T201 - to its user


def _attempt(act: Callable[[], None]) -> None:
    """Do *act*, and do not wait for it if it hangs, as writing to a terminal may."""

    def attempt() -> None:
        with contextlib.suppress(Exception):
            act()

    thread = threading.Thread(target=attempt, daemon=True)
    with contextlib.suppress(RuntimeError):
        thread.start()
        thread.join(_LAST_ACT_S)


def _name(number: int) -> str:
    return signal.Signals(number).name
