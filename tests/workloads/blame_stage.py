"""What the workloads with known blame share: waits of which both ends are known to the letter.

A `Rounds` object lets waiters wait in calls of `KEEPING.blame_wait` for a holder that stands in
`KEEPING.blame_hold`. Each end says where it stands in the very line of its call, and the stack is
asked of the interpreter itself. `truth` has the waiting time of each pair of stacks by a clock in
C. The lines are marked `# waits here` and `# holds here`.
"""

import ctypes
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

from gilclock import build_directory
from handshake import next_command, ready, say
from priority import schedule

__all__ = [
    "DROPPING",
    "KEEPING",
    "MS",
    "Rounds",
    "no_python",
    "perform",
    "play",
    "stack_here",
]

MS = 1_000_000

_SOURCE = Path(__file__).resolve().parent / "blame_native.c"
_COMPILER = ("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")
_MOST_WAITERS = 8
_u64 = ctypes.c_uint64


def _build() -> str:
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    library = build_directory() / ("blame-%s.so" % digest)
    if not library.exists():
        unfinished = library.with_suffix(".%d" % os.getpid())
        subprocess.run([*_COMPILER, "-o", str(unfinished), str(_SOURCE), "-ldl"], check=True)
        unfinished.rename(library)
    return str(library)


_PATH = _build()
# Calls through the first keep the GIL, those through the second let go of it.
KEEPING, DROPPING = ctypes.PyDLL(_PATH), ctypes.CDLL(_PATH)
KEEPING.blame_waiter_size.restype = ctypes.c_size_t
KEEPING.blame_wait.argtypes = [ctypes.c_void_p]
for _name in ("blame_wake", "blame_let_go"):
    getattr(KEEPING, _name).argtypes = [ctypes.c_void_p]
for _name in ("blame_hold", "blame_keep"):
    getattr(KEEPING, _name).argtypes = [ctypes.c_void_p, _u64]
    getattr(KEEPING, _name).restype = None
DROPPING.blame_native_hold.argtypes = [ctypes.c_void_p, _u64, _u64]
DROPPING.blame_native_wait.argtypes = [ctypes.c_void_p]
DROPPING.blame_timer.argtypes = [_u64]


class _Waiter(ctypes.Structure):
    _fields_ = [
        ("waits", _u64),
        ("wait_ns", _u64),
        ("uncertain_ns", _u64),
        ("rest", ctypes.c_char * (KEEPING.blame_waiter_size() - 24)),
    ]


class _Group(ctypes.Structure):
    _fields_ = [("count", _u64), ("waiters", ctypes.POINTER(_Waiter) * _MOST_WAITERS)]


def stack_here(depth: int = 1) -> tuple:
    """Return the frames from the caller's on (or its caller's …), innermost first.

    Each is its function, file, first line and current line, as the interpreter states them.
    """
    frame, frames = sys._getframe(depth), []  # noqa: SLF001 - documented
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.append((name, code.co_filename, code.co_firstlineno, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


def no_python() -> tuple:
    """Return the stack of a thread that runs no Python code."""
    return ()


class End:
    """The waiter's end of the rounds."""

    def __init__(self) -> None:
        self.native = _Waiter()
        KEEPING.blame_prepare(ctypes.byref(self.native))
        self.stack = no_python()
        self.charged = (0, 0, 0)

    def waits(self) -> object:
        """Note that the caller waits in this line; return the argument of `blame_wait`."""
        self.stack = stack_here(2)
        return ctypes.addressof(self.native)

    def news(self) -> "list[int]":
        """Return the waits since the last time, how long they took, and what is uncertain."""
        native = self.native
        now = (native.waits, native.wait_ns, native.uncertain_ns)
        before, self.charged = self.charged, now
        return [new - old for new, old in zip(now, before)]  # noqa: B905 - Python 3.8


class Rounds:
    """Waits that are kept by one holder at a time, and what they add up to by their ends."""

    def __init__(self, waiters: int = 1) -> None:
        self.ends = [End() for _ in range(waiters)]
        self.group = _Group(waiters)
        for place, end in enumerate(self.ends):
            self.group.waiters[place] = ctypes.pointer(end.native)
        self._stacks: list[tuple] = []
        self._sums: dict[tuple, list[int]] = {}

    @property
    def address(self) -> int:
        """The argument of `blame_let_go`."""
        return ctypes.addressof(self.group)

    def holds(self) -> object:
        """Note that the caller holds in this line; return the first argument of `blame_hold`."""
        return self.held_by(stack_here(2))

    def held_by(self, holder: tuple) -> object:
        """Note that the next holder stands in the given stack."""
        self._charge()
        self._stacks = [(end.stack, holder) for end in self.ends]
        return self.address

    def truth(self) -> "dict[str, object]":
        """Return how long each pair of stacks has waited, for the answer."""
        self._charge()
        return {
            "edges": [
                {
                    "waiter": waiter,
                    "holder": holder,
                    "waits": waits,
                    "wait_ns": wait_ns,
                    "uncertain_ns": uncertain_ns,
                }
                for (waiter, holder), (waits, wait_ns, uncertain_ns) in self._sums.items()
            ]
        }

    def _charge(self) -> None:
        for end, pair in zip(self.ends, self._stacks):  # noqa: B905 - Python 3.8
            sums = self._sums.setdefault(pair, [0, 0, 0])
            for place, number in enumerate(end.news()):
                sums[place] += number
        self._stacks = []


def play(rounds: "Rounds", holder: object, *waiters: object) -> "dict[str, object]":
    """Let *holder* keep the *waiters*, each in a thread of its own; return the truth.

    A waiter is called with its end of the rounds and returns when `blame_wait` returns 0. The
    calling thread does without the GIL meanwhile.
    """
    threads = [
        threading.Thread(target=waiter, args=(end,))
        for waiter, end in zip(waiters, rounds.ends)  # noqa: B905 - Python 3.8
    ]
    for thread in threads:
        thread.start()
    if threads:
        DROPPING.blame_await_idle(ctypes.byref(rounds.group))
    holding = threading.Thread(target=_hold, args=(holder, rounds))
    holding.start()
    DROPPING.blame_play()
    holding.join()
    if threads:
        DROPPING.blame_end(ctypes.byref(rounds.group))
    for thread in threads:
        thread.join()
    return rounds.truth()


def _hold(holder: object, rounds: "Rounds") -> None:
    DROPPING.blame_await_begin()
    holder(rounds)
    DROPPING.blame_done()


def perform(scenarios: "dict[str, object]") -> None:
    """Run the scenario that each command names and answer with its truth, until stdin ends."""
    policy = schedule("auto")
    ready(scenarios=list(scenarios), policy=policy)
    while True:
        name = next_command()
        if name is None:
            os._exit(0)
        say({"done": True, "scenario": name, **scenarios[name]()})
