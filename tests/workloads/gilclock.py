"""Builds the C parts of the workloads and binds them with ctypes."""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

__all__ = [
    "CallClock",
    "CpuTimes",
    "CrunchClock",
    "ForeignClock",
    "ThreadClock",
    "build",
    "build_directory",
    "load",
    "thread_truth",
]

_HERE = Path(__file__).resolve().parent
_SOURCES = (
    "gilclock.c",
    "scheduling.c",
    "contended_takes.c",
    "foreign_condvars.c",
    "hold_cycles.c",
)
_HEADERS = ("gilclock.h",)
_COMPILER = ("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")
# Some of the exported names are short: none of them may be taken from another library.
_LINKER = ("-Wl,-Bsymbolic", "-ldl")

_u64 = ctypes.c_uint64


class CallClock(ctypes.Structure):
    """The calls of one kind that a thread made, and the nanoseconds they took."""

    _fields_ = [
        ("calls", _u64),
        ("ns", _u64),
        ("over_calls", _u64),
        ("over_ns", _u64),
        ("slept_calls", _u64),
        ("slept_ns", _u64),
        ("long_calls", _u64),
        ("longest_ns", _u64),
        ("disturbed_calls", _u64),
        ("disturbed_ns", _u64),
    ]

    def as_dict(self) -> "dict[str, int]":
        """Return the members by name."""
        return {name: getattr(self, name) for name, _ in self._fields_}


class ThreadClock(ctypes.Structure):
    """What one thread did with the GIL, measured in C."""

    _fields_ = [
        ("tid", _u64),
        ("take", CallClock),
        ("drop", CallClock),
        ("holds", _u64),
        ("hold_ns", _u64),
        ("hold_began_ns", _u64),
        ("began_ns", _u64),
        ("ended_ns", _u64),
        ("thread_state", ctypes.c_void_p),
    ]


class Scheduling(ctypes.Structure):
    """What the scheduler did to a thread up to one moment."""

    _fields_ = [("voluntary", _u64), ("involuntary", _u64), ("run_delay_ns", _u64)]


class CpuTimes(ctypes.Structure):
    """Where a thread's time went up to one moment."""

    _fields_ = [("wall_ns", _u64), ("cpu_ns", _u64), ("scheduling", Scheduling)]


class CrunchClock(ctypes.Structure):
    """What a thread of pure Python saw of its waits."""

    _fields_ = [
        ("until_ns", _u64),
        ("waits", _u64),
        ("wait_ns", _u64),
        ("longest_ns", _u64),
        ("long_waits", _u64),
        ("disturbed_waits", _u64),
        ("disturbed_ns", _u64),
        ("other_jumps", _u64),
        ("other_ns", _u64),
        ("last_ns", _u64),
        ("last", Scheduling),
    ]

    def as_dict(self) -> "dict[str, int]":
        """Return what was counted, by name."""
        names = [name for name, _ in self._fields_]
        return {name: getattr(self, name) for name in names[1 : names.index("last_ns")]}


class ForeignClock(ctypes.Structure):
    """The timed waits of one thread on a condition variable that is not a GIL's."""

    _fields_ = [("tid", _u64), ("waits", _u64), ("wait_ns", _u64)]


def build_directory() -> "Path":
    """Return $GILSCOPE_WORKLOADS_BUILD, or a directory of the user's own among temporary files."""
    default = os.path.join(tempfile.gettempdir(), "gilscope-workloads-%d" % os.getuid())
    directory = Path(os.environ.get("GILSCOPE_WORKLOADS_BUILD", default))
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def build() -> str:
    """Compile the shared library unless it is there already; return its path.

    It needs no Python headers and serves every version.
    """
    digest = hashlib.sha256()
    for name in (*_SOURCES, *_HEADERS):
        digest.update((_HERE / name).read_bytes())
    # Such as those for another C library than that of this machine.
    more = os.environ.get("GILSCOPE_WORKLOADS_CFLAGS", "").split()
    compiler = [*_COMPILER, *more]
    digest.update(" ".join([*compiler, *_LINKER]).encode())
    directory = build_directory()
    library = directory / ("gilclock-%s.so" % digest.hexdigest()[:16])
    if not library.exists():
        unfinished = directory / ("%s.%d" % (library.name, os.getpid()))
        sources = [str(_HERE / name) for name in _SOURCES]
        linker = [] if "-nostdlib" in more else _LINKER
        subprocess.run([*compiler, "-o", str(unfinished), *sources, *linker], check=True)
        unfinished.rename(library)
    return str(library)


def load() -> "tuple[ctypes.PyDLL, ctypes.CDLL]":
    """Return the library twice: as one whose calls keep the GIL, and as one whose calls drop it."""
    path = build()
    keeping, dropping = ctypes.PyDLL(path), ctypes.CDLL(path)
    keeping.gilclock_tight.restype = _u64
    keeping.contended_waiter_size.restype = ctypes.c_size_t
    keeping.contended_turn_size.restype = ctypes.c_size_t
    return keeping, dropping


def thread_truth(name: str, role: "str | None", clock: "ThreadClock") -> "dict[str, object]":
    """Return the true waits of a thread whose every take and drop went through *clock*.

    A call counts as a wait if the thread slept in it: a take that found the GIL locked comes back
    from a blocking call, a drop that slept was made to yield. An uncontended call does not sleep.
    `uncertain_ns` is the part of `wait_ns` that the thread spent ready but without a CPU in waits
    that the scheduler interrupted: nobody can say whether the GIL or the CPU kept it. The true
    wait lies between `wait_ns - uncertain_ns` and `wait_ns`.
    """
    take, drop = clock.take, clock.drop
    wait_ns = take.slept_ns + drop.slept_ns
    return {
        "tid": clock.tid,
        "name": name,
        "role": role,
        "wait_ns": wait_ns,
        "waits": take.slept_calls + drop.slept_calls,
        "truth_wait_s": wait_ns / 1e9,
        "truth_waits": take.slept_calls + drop.slept_calls,
        "uncertain_ns": take.disturbed_ns + drop.disturbed_ns,
        "convoy_waits": take.long_calls,
        "blocking_call": {"wait_ns": take.slept_ns, "waits": take.slept_calls},
        "preemption": {"wait_ns": drop.slept_ns, "waits": drop.slept_calls},
        "hold_ns": clock.hold_ns,
        "holds": clock.holds,
        "wall_ns": clock.ended_ns - clock.began_ns,
        "take": take.as_dict(),
        "drop": drop.as_dict(),
    }
