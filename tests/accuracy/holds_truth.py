"""Who held each GIL of a workload and when, as a witness inside the process has noted it."""

import hashlib
import mmap
import os
import struct
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from pathlib import Path

from gilscope.model.histogram import Histogram, bound_ns
from support.paths import WORKLOADS

__all__ = [
    "Hold",
    "Holds",
    "Switch",
    "Wait",
    "Witness",
    "assert_same_lengths",
    "held_ns",
]

_SOURCE = WORKLOADS / "hold_witness.c"
_COMPILER = ("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")

# As in hold_witness.c.
_COUNT = struct.Struct("<Q24x")
_NOTE = struct.Struct("<QQIIII")
_MAX_NOTES = 4 << 20
# drop_gil signals the one, take_gil the other: members of struct _gil_runtime_state, and in 3.6
# variables, which the debug information of pyenv's build has there.
_SWITCH_COND_OFFSETS = (88, -128)


class _Kind(IntEnum):
    SIGNALLED = 1
    WAITS = 2
    WOKEN = 3
    BEGAN = 4


@dataclass(frozen=True, slots=True)
class _Note:
    at_ns: int
    cond: int
    pid: int
    tid: int
    kind: int


@dataclass(frozen=True, slots=True)
class Hold:
    """From an acquisition to the release by the same thread."""

    cond: int
    """Which lock, by the address that gilscope knows it by too."""
    tid: int
    from_ns: int
    """CLOCK_MONOTONIC."""
    until_ns: int | None
    """None: the program ended, or was read, before the lock was released."""

    @property
    def ns(self) -> int:
        """The length of a hold that is over."""
        assert self.until_ns is not None
        return self.until_ns - self.from_ns

    def part_ns(self, from_ns: int, until_ns: int) -> int:
        """Return how much of the hold lies between two instants."""
        end_ns = until_ns if self.until_ns is None else min(self.until_ns, until_ns)
        return max(0, end_ns - max(self.from_ns, from_ns))


@dataclass(frozen=True, slots=True)
class Switch:
    """From a release to an acquisition by a thread that was waiting for the lock already."""

    cond: int
    tid: int
    """Of the thread that has it now."""
    released_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class Wait:
    """From where a thread finds the lock taken to where it goes on, whatever woke it in between."""

    cond: int
    tid: int
    from_ns: int
    until_ns: int
    is_yield: bool
    """It waited to hear that another thread has taken the lock that it had just let go."""
    calls: int
    """How often it has asked libc: once more each time that it was woken and could not go on."""

    @property
    def ns(self) -> int:
        """The length."""
        return self.until_ns - self.from_ns


@dataclass(frozen=True, slots=True)
class Holds:
    """All holds of one process, and what lay between them."""

    finished: tuple[Hold, ...]
    open: tuple[Hold, ...]
    switches: tuple[Switch, ...]
    waits: tuple[Wait, ...]
    """Those that are over."""

    @property
    def all(self) -> tuple[Hold, ...]:
        """The holds that are over, and those that are not."""
        return self.finished + self.open

    @property
    def conds(self) -> set[int]:
        """The locks."""
        return {hold.cond for hold in self.all}

    def of(self, tid: int) -> tuple[Hold, ...]:
        """Return the finished holds of one thread."""
        return tuple(hold for hold in self.finished if hold.tid == tid)

    def calls_ns(self, tid: int) -> list[int]:
        """Return how long each wait of a thread has lasted that only lets go in blocking calls."""
        return [wait.ns for wait in self.waits if wait.tid == tid and not wait.is_yield]

    def yields_ns(self, tid: int) -> list[int]:
        """Return how long such a thread has waited to hear that the lock has gone to another."""
        return [wait.ns for wait in self.waits if wait.tid == tid and wait.is_yield]

    def first_wait_ns(self, tid: int) -> list[int]:
        """Return how long a thread has waited before its first hold, if it has."""
        (first, *_) = self.of(tid)
        return [
            wait.ns
            for wait in self.waits
            if wait.tid == tid and not wait.is_yield and wait.from_ns < first.from_ns
        ]

    def gaps_ns(self, tid: int) -> list[int]:
        """Return how long a thread was without the lock each time that it was made to yield.

        It must be one that never lets go of its own will, except at last.
        """
        holds = self.of(tid)
        return [
            later.from_ns - earlier.until_ns
            for earlier, later in pairwise(holds)
            if earlier.until_ns is not None
        ]

    def since(self, at_ns: int) -> "Holds":
        """Return the holds that began at *at_ns* or later, and the switches between them."""
        return Holds(
            tuple(hold for hold in self.finished if hold.from_ns >= at_ns),
            tuple(hold for hold in self.open if hold.from_ns >= at_ns),
            tuple(switch for switch in self.switches if switch.released_ns >= at_ns),
            tuple(wait for wait in self.waits if wait.from_ns >= at_ns),
        )


def held_ns(holds: Iterable[Hold], from_ns: int, until_ns: int) -> int:
    """Return how long a lock was held between two instants."""
    return sum(hold.part_ns(from_ns, until_ns) for hold in holds)


def assert_same_lengths(truth_ns: Sequence[int], seen: Histogram, *, slack_ns: int) -> None:
    """Assert that *seen* has as many values as there are lengths, and the same ones.

    One value of a hundred may be off by more than *slack_ns*: a machine may stall between an event
    and its note. Within the slack, a length near the bound of a slot may be in either.
    """
    assert len(truth_ns) == seen.count, f"{seen.count} were seen of {len(truth_ns)}"
    outliers = len(truth_ns) // 100
    counted = 0
    for slot, count in enumerate(seen.slots[:-1]):
        counted += count
        upto_ns = bound_ns(slot)
        certain = sum(ns + slack_ns <= upto_ns for ns in truth_ns)
        possible = sum(ns - slack_ns <= upto_ns for ns in truth_ns)

        assert certain - outliers <= counted <= possible + outliers, f"up to {upto_ns} ns"


class Witness:
    """A library to be preloaded, and the file that it writes its notes to."""

    def __init__(self, folder: Path) -> None:
        """Keep the notes in *folder*."""
        self._library = _build()
        self._path = folder / "witness"

    def command(self, command: Sequence[str]) -> list[str]:
        """Return *command* with a witness in the process; to be used once."""
        return ["env", f"LD_PRELOAD={self._library}", f"HOLD_WITNESS={self._path}", *command]

    def holds(self, pid: int) -> Holds:
        """Return what has been noted until now of the program that *pid* runs, or ran last."""
        return self.programs(pid)[-1]

    def programs(self, pid: int) -> list[Holds]:
        """Return the same of every program that *pid* has run, one after the other."""
        programs: list[list[_Note]] = []
        for note in self._notes():
            if note.pid == pid and note.kind == _Kind.BEGAN:
                programs.append([])
            elif note.pid == pid:
                programs[-1].append(note)
        return [_holds(notes) for notes in programs]

    def _notes(self) -> Iterator[_Note]:
        with (
            self._path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as all_,
        ):
            (count,) = _COUNT.unpack_from(all_, 0)
            assert count <= _MAX_NOTES, "the witness has run out of paper"
            notes = memoryview(all_)[_COUNT.size : _COUNT.size + count * _NOTE.size]
            try:
                for at_ns, cond, pid, tid, kind, is_written in _NOTE.iter_unpack(notes):
                    if is_written:
                        yield _Note(at_ns, cond, pid, tid, kind)
            finally:
                notes.release()


def _build() -> Path:
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"gilscope-witness-{os.getuid()}-{digest}.so"
    if not library.exists():
        unfinished = library.with_suffix(f".{os.getpid()}")
        subprocess.run([*_COMPILER, "-o", unfinished, _SOURCE, "-ldl"], check=True)
        unfinished.rename(library)
    return library


def _gils(notes: Iterable[_Note]) -> dict[int, int]:
    """Return the locks by their second condition variable, which tells of acquisitions."""
    # Of no other pair of variables both are signalled, at this distance.
    signalled = {note.cond for note in notes if note.kind == _Kind.SIGNALLED}
    for offset in _SWITCH_COND_OFFSETS:
        found = {cond + offset: cond for cond in signalled if cond + offset in signalled}
        if found:
            return found
    return {}


def _holds(notes: Sequence[_Note]) -> Holds:
    """Return the holds that the notes of one program tell of, in the order they were taken in.

    The notes on one lock are taken with its mutex held, so their order is that of the events.
    """
    switch_conds = _gils(notes)
    gils = set(switch_conds.values())
    finished: list[Hold] = []
    switches: list[Switch] = []
    opened: dict[int, Hold] = {}
    released: dict[int, _Note] = {}
    waits_since_ns: dict[tuple[int, int], int] = {}
    for note in notes:
        if note.kind == _Kind.WAITS and note.cond in gils:
            waits_since_ns.setdefault((note.cond, note.tid), note.at_ns)
        elif note.kind == _Kind.SIGNALLED and note.cond in switch_conds:
            cond = switch_conds[note.cond]
            since_ns = waits_since_ns.pop((cond, note.tid), None)
            opened[cond] = Hold(cond, note.tid, note.at_ns, None)
            last = released.get(cond)
            if last and last.tid != note.tid and since_ns and since_ns < last.at_ns:
                switches.append(Switch(cond, note.tid, last.at_ns, note.at_ns - last.at_ns))
        elif note.kind == _Kind.SIGNALLED and note.cond in gils:
            released[note.cond] = note
            begun = opened.pop(note.cond, None)
            if begun is not None:
                assert begun.tid == note.tid, "released by a thread that did not hold it"
                finished.append(Hold(begun.cond, begun.tid, begun.from_ns, note.at_ns))
    return Holds(
        tuple(finished), tuple(opened.values()), tuple(switches), _waits(notes, switch_conds)
    )


def _waits(notes: Sequence[_Note], switch_conds: Mapping[int, int]) -> tuple[Wait, ...]:
    """Return the waits for the locks of `_gils` that the notes of one program tell of."""
    waits: list[Wait] = []
    # By condition variable and thread.
    calls_ns: dict[tuple[int, int], list[int]] = defaultdict(list)
    woken_ns: dict[tuple[int, int], int] = {}
    for note in notes:
        waiter = (note.cond, note.tid)
        if note.kind == _Kind.WAITS:
            calls_ns[waiter].append(note.at_ns)
        elif note.kind == _Kind.WOKEN and note.cond in switch_conds:
            calls = calls_ns.pop(waiter)
            cond = switch_conds[note.cond]
            waits.append(Wait(cond, note.tid, calls[0], note.at_ns, True, len(calls)))
        elif note.kind == _Kind.WOKEN:
            # It may have been the time that has run out. Then the same wait goes on.
            woken_ns[waiter] = note.at_ns
        elif note.kind == _Kind.SIGNALLED and note.cond in switch_conds:
            waiter = (switch_conds[note.cond], note.tid)
            if calls := calls_ns.pop(waiter, []):
                waits.append(Wait(*waiter, calls[0], woken_ns[waiter], False, len(calls)))
    return tuple(waits)
