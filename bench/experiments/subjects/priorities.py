"""What helps a thread that waits for the GIL: priorities, other CPUs, processes, other GILs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.experiments.cells import Cell, Experiment, Results
from bench.experiments.echo import Echo
from bench.experiments.pages import shown, spread_of
from bench.experiments.runtimes import FREE_THREADED, MAIN, Runtime
from bench.markdown import table
from bench.svg import Bar, Chart, Group, draw

__all__ = ["EXPERIMENT"]

_SPIN = 2
_LIMIT_S = 1.0


@dataclass(frozen=True, slots=True)
class _Arm:
    key: str
    title: str
    arm: str = "none"
    cpus: str = "two"
    interval_ms: float = 0.0
    runtime: Runtime = MAIN


_ARMS = (
    _Arm("none", "nothing is done"),
    _Arm("nice_echo", "nice -10 for the echo thread", "nice_echo"),
    _Arm("nice_spin", "nice +10 for the computing threads", "nice_spin"),
    _Arm("rr_echo", "SCHED_RR for the echo thread", "rr_echo"),
    _Arm("rr_echo_one", "the same on one CPU", "rr_echo", cpus="one"),
    _Arm("one", "the process on one CPU", cpus="one"),
    _Arm("interval", "switch interval of 0.5 ms", interval_ms=0.5),
    _Arm("process", "computing in other processes", "process"),
    _Arm("interpreter", "computing in interpreters with GILs of their own", "interpreter"),
    _Arm("no_gil", "a build without a GIL, 3.14t", runtime=FREE_THREADED),
)

_TEXT = """\
The source changed the GIL so that threads have priorities, like feedback queues of an operating system; its rules and its result are lost, and the result was "impressive" (S26).
A reader asked whether priorities of the operating system would do, and the answer was no: the system does not schedule the GIL (S32).
Here is what can be done without a patch, for the echo of [the convoy](convoy_udp.md) beside two computing threads.

"""
_ADDS = """
## What gilscope adds

- Priorities of the system decide who gets a CPU, and with two CPUs both threads have one. What the echo thread waits for is the GIL, and its convoy waits say so: they are there under each priority.
- A real-time priority on one CPU wakes the echo thread at once, and it still has to wait until the holder has been asked to drop the GIL.
- What removes the convoy is that nobody computes under the same GIL, in another process or interpreter, or that the computing thread cannot run while the GIL is free, on one CPU.
- A free-threaded build has no convoy, and no GIL to wait for. The patched interpreter is not built: that arm is missing.
"""


def _cell(arm: _Arm, mode: str, limit_s: float, cpus: str) -> Cell:
    how = "traced" if mode else "untraced"
    return Cell(
        f"{arm.key}/{how}",
        {"arm": arm.key, "mode": how},
        cpus,
        limit_s + (1.8 if mode else 0.6),
        Echo(
            arm.runtime,
            cpus,
            _SPIN,
            mode=mode,
            arm=arm.arm,
            interval_ms=arm.interval_ms,
            limit_s=limit_s,
        ).measure,
        rounds=4,
    )


def _cells(is_quick: bool) -> Sequence[Cell]:
    if is_quick:
        quick = [each for each in _ARMS if each.key == "interpreter"]
        return [_cell(arm, "contention", 0.2, "one") for arm in quick]
    return [
        _cell(arm, mode, _LIMIT_S, arm.cpus)
        for arm in _ARMS
        for mode in ("", "contention")
        if not mode or arm.runtime is MAIN
    ]


def _body(results: Results) -> str:
    rows = [
        (
            arm.title,
            shown(results, "p50_ms", 2, " ms", arm=arm.key, mode="untraced"),
            shown(results, "p99_ms", 2, " ms", arm=arm.key, mode="untraced"),
            shown(results, "mb_per_s", 2, " MB/s", arm=arm.key, mode="untraced"),
            shown(results, "mb_per_s", 2, " MB/s", arm=arm.key, mode="traced"),
            shown(results, "convoy_waits", 0, arm=arm.key, mode="traced"),
            shown(results, "convoy_s", 3, " s", arm=arm.key, mode="traced"),
        )
        for arm in _ARMS
    ]
    header = [
        "what is done",
        "echo, half within",
        "99 % within",
        "speed",
        "the same, traced",
        "convoy waits",
        "time in them",
    ]
    return _TEXT + table(header, rows) + _ADDS


def _pictures(results: Results) -> Mapping[str, str]:
    groups = []
    for figure, title, mode in (
        ("p99_ms", "99 % of the echoes within, ms", "untraced"),
        ("convoy_waits", "convoy waits of the echo thread", "traced"),
    ):
        bars = [
            Bar(arm.title, *spread_of(results, figure, arm=arm.key, mode=mode), "ours")
            for arm in _ARMS
            if results.values(figure, arm=arm.key, mode=mode)
        ]
        if bars:
            groups.append(Group(title, bars))
    if not groups:
        return {}
    chart = Chart(
        "What helps a thread that waits for the GIL",
        f"{MAIN.title}, an echo beside {_SPIN} computing threads, median and range of the rounds",
        groups,
        2,
        own_scales=True,
    )
    return {"priorities.svg": draw(chart)}


def _found(results: Results) -> Mapping[str, tuple[str, str]]:
    usual, real_time, alone = (
        shown(results, "p99_ms", 1, " ms", arm=arm, mode="untraced")
        for arm in ("none", "rr_echo", "process")
    )
    text = f"99 % within {usual}; with SCHED_RR {real_time}; computing elsewhere {alone}"
    return {
        "S32": (text, "see the page"),
        "S26": (f"in other processes {alone}", "result lost"),
        "S29": ("the patch is lost and not built again", "-"),
    }


EXPERIMENT = Experiment(
    name="priorities",
    title="Priorities, and what helps instead",
    sources=("S26", "S29", "S32"),
    source={
        "S26": "impressive; rules and result are lost",
        "S32": "the system cannot schedule the GIL",
    },
    cells=_cells,
    body=_body,
    pictures=_pictures,
    found=_found,
)
