"""Puts uprobes into processes and takes them out again, without anybody waiting for that."""

import errno
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path

from gilscope.bpf.uprobes.keeper import EVERY_PROCESS, LEASE_S, Keeper, Place
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.process import procfs
from gilscope.system.rlimits import most_descriptors
from gilscope.values import dataclass

__all__ = ["Hook", "Uprobes"]

_UPROBE_TYPE = Path("/sys/bus/event_source/devices/uprobe/type")

_BEAT_NS = int(LEASE_S * 1e9 / 4)


@dataclass(frozen=True, slots=True)
class Hook:
    """One program at one place in one file."""

    program: str
    path: str
    """Under which the agent can open the file."""
    offset: int
    """In the file, bytes."""
    address: int = 0
    """Of the place in the memory of the process; 0: not known."""


class Uprobes:
    """Opens and closes groups of uprobes, which a keeper holds: see ``agent/native/keeper``.

    Any thread may call its methods.
    """

    def __init__(
        self,
        programs: Mapping[str, int],
        *,
        has_links: bool,
        start_keeper: Callable[[], Keeper] = Keeper,
    ) -> None:
        """Use the loaded *programs*, by name; *has_links*: as links, else as perf events.

        The keeper is started with the first probe.
        """
        self._programs = programs
        self.has_links = has_links
        self._start_keeper = start_keeper
        self._keeper: Keeper | None = None
        self._lock = threading.Lock()
        self._windows: set[int] = set()
        self._closing: set[Future[None]] = set()
        self._next_beat_ns = 0
        self._earlier_lapses = 0
        self._earlier_losses = 0

    @property
    def keeper_pid(self) -> int | None:
        """The process that holds the probes; None while there is none."""
        keeper = self._keeper
        return None if keeper is None or keeper.is_lost else keeper.pid

    @property
    def lapses(self) -> int:
        """How often the keeper has closed all windows because it heard nothing of the agent."""
        keeper = self._keeper
        return self._earlier_lapses + (0 if keeper is None else keeper.lapses)

    @property
    def losses(self) -> int:
        """How often a keeper has ended by itself, and taken all probes with it."""
        keeper = self._keeper
        return self._earlier_losses + (keeper is not None and keeper.is_lost)

    def open(
        self,
        pid: int,
        hooks: Iterable[Hook],
        cookie: int,
        *,
        is_window: bool = False,
        is_for_all: bool = False,
    ) -> list[int]:
        """Put *hooks* into *pid*, all or none; return the groups that hold them there.

        Those of a window the keeper also takes out by itself, when it hears nothing of the agent.
        With *is_for_all* they are put into every process that maps their file, now or later.
        Raises NotPermitted, KernelOrBccMissing, or ProcessLookupError where the process has gone.
        """
        opened: list[int] = []
        placed_in = EVERY_PROCESS if is_for_all else pid
        try:
            for place, offsets in _grouped(hooks).items():
                try:
                    wanted = self._place(placed_in, place, offsets, cookie, is_window=is_window)
                    opened.append(self._running().open(wanted))
                except OSError as error:
                    raise _refusal(error, pid, place[1], offsets) from error
        except BaseException:
            self.close(opened)
            raise
        if is_window:
            with self._lock:
                self._windows.update(opened)
        return opened

    def close(self, groups: Iterable[int]) -> list[Future[None]]:
        """Begin to take probes out; return what says when they are."""
        numbers = list(groups)
        keeper = self._keeper
        if not numbers or keeper is None:
            return []
        closing = keeper.close(numbers)
        with self._lock:
            self._windows.difference_update(numbers)
            self._closing = {each for each in self._closing if not each.done()} | {closing}
        return [closing]

    def leave_to_the_attached(self, hooks: Sequence[Hook]) -> None:
        """Let the kernel take *hooks* out of every process for which nobody has opened them.

        A child has its parent's breakpoints, which nobody asked for. Whenever a probe is taken out
        anywhere, the kernel goes through all processes that map the file and asks of each whether
        somebody wants it there; so one is put into the keeper, which never runs into it, and taken
        out again. Raises as `open` does.
        """
        self.close(self.open(self._running().pid, hooks, cookie=0))

    def beat(self) -> None:
        """Say that the agent is alive, without which windows are closed. Costs next to nothing."""
        now_ns = time.monotonic_ns()
        keeper = self._keeper
        if self._windows and keeper is not None and now_ns >= self._next_beat_ns:
            self._next_beat_ns = now_ns + _BEAT_NS
            keeper.beat()

    def shut_down(self) -> None:
        """Wait until all are out that are to be, and end the keeper."""
        wait(self._closing)
        if self._keeper is not None:
            self._keeper.end()
            self._keeper = None

    def _running(self) -> Keeper:
        with self._lock:
            if self._keeper is not None and self._keeper.is_lost:
                # Until then both would see what happens.
                self._keeper.await_end()
                self._earlier_lapses += self._keeper.lapses
                self._earlier_losses += 1
                self._windows.clear()
                self._keeper = None
            if self._keeper is None:
                self._keeper = self._start_keeper()
            return self._keeper

    def _place(
        self,
        pid: int,
        place: tuple[str, str],
        offsets: Sequence[int],
        cookie: int,
        *,
        is_window: bool,
    ) -> Place:
        program, path = self._programs[place[0]], place[1]
        perf_type = None if self.has_links else int(_UPROBE_TYPE.read_text())
        return Place(program, path, offsets, pid, cookie, perf_type, is_window=is_window)


def _grouped(hooks: Iterable[Hook]) -> dict[tuple[str, str], list[int]]:
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for hook in hooks:
        places[hook.program, hook.path].append(hook.offset)
    return places


def _refusal(error: OSError, pid: int, path: str, offsets: Sequence[int]) -> Exception:
    # Of a process that has ended, the files that it had are not there any more either.
    if isinstance(error, ProcessLookupError) or not procfs.is_alive(pid):
        return ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    if isinstance(error, PermissionError):
        return NotPermitted(f"the kernel refused uprobes in process {pid} ({error.strerror})")
    if error.errno == errno.EMFILE:
        return KernelOrBccMissing(
            f"no room for the probes of process {pid}: gilscope may have only "
            f"{most_descriptors()} files open (RLIMIT_NOFILE)",
            remedy="Raise the limit: ulimit -Hn, or LimitNOFILE= in a systemd unit.",
        )
    shown = ", ".join(f"{offset:#x}" for offset in offsets)
    return KernelOrBccMissing(f"cannot put uprobes at {shown} of {path}: {error.strerror}")
