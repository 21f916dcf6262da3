"""Recordings made by hand, for the tests of reports and collectors."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gilscope.model.gil import (
    Edge,
    Gil,
    GilObservation,
    GilTotals,
    HeldBy,
    HeldUp,
    HolderSamples,
    HoldTotals,
    Process,
    ProcessTotals,
    Recording,
    SlowDrop,
    Tally,
    ThreadTotals,
    TracingCost,
)
from gilscope.model.histogram import EMPTY, Histogram
from gilscope.model.kinds import Cause, Kind
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.model.session import Session
from gilscope.model.stack import Frame, Stack, StackState
from gilscope.model.timeline import Moment, Span, Timeline
from gilscope.model.traces import RouteWait, TraceHold, TraceHolds, Traces, TraceWait
from support.recordings.durations import histogram

__all__ = [
    "CRUNCHING",
    "MATCHING",
    "MS",
    "PROCESS",
    "SERVING",
    "convoy",
    "full_mode",
    "gil",
    "held_up_of",
    "histogram",
    "observation",
    "session_of",
    "stack",
    "thread",
    "with_edges",
    "with_holders",
    "with_listings",
    "with_moment",
    "with_timeline",
    "with_traces",
]

MS = 1_000_000

PROCESS = Process(
    pid=4711, name="app.py", python="3.11.2", build_id="571d98e01096ffff", method="sites"
)


def thread(
    tid: int, role: str | None, lost: Mapping[Kind, Tally], *, waiting_ns: int = 0
) -> ThreadTotals:
    """Return a thread that has lost what *lost* says, and nothing else."""
    whole = {kind: lost.get(kind, Tally()) for kind in Kind}
    return ThreadTotals(tid, role, whole, drop_requests=0, waiting_ns=waiting_ns)


def session_of(*recordings: Recording) -> Session:
    """Return what one command has recorded of each of *recordings*, and of nothing else."""
    longest_ns = max(recording.duration_ns for recording in recordings)
    return Session(longest_ns, recordings[0].mode, recordings)


def gil(interpreter_id: int = 0, **waits: Histogram) -> GilTotals:
    """Return a lock with the given histograms by cause."""
    return GilTotals(
        gil=Gil(4096 + interpreter_id, interpreter_id),
        interval_ns=5 * MS,
        waits={cause: waits.get(cause.value, EMPTY) for cause in Cause},
        drop_latency=EMPTY,
        convoy_waits=0,
        forced_switches=0,
        drop_requests=0,
    )


def observation(
    threads: tuple[ThreadTotals, ...] = (),
    gils: tuple[GilTotals, ...] = (),
    lost_events: Mapping[str, int] | None = None,
) -> GilObservation:
    """Return what was seen of one process in a second."""
    return GilObservation(
        process=PROCESS,
        since_ns=0,
        totals=ProcessTotals(1000 * MS, threads, gils, lost_events or {}),
    )


def convoy() -> Recording:
    """Return two seconds of a server thread that waits behind two that compute."""
    threads = (
        thread(
            1,
            "serve (app.py:8)",
            {Kind.CONVOY: Tally(1500 * MS, 100), Kind.BLOCKING_CALL: Tally(30 * MS, 25)},
        ),
        thread(2, "crunch (app.py:2)", {Kind.PREEMPTION: Tally(200 * MS, 50)}),
        thread(3, "crunch (app.py:2)", {Kind.PREEMPTION: Tally(210 * MS, 60)}, waiting_ns=3 * MS),
    )
    lock = replace(
        gil(
            blocking_call=histogram(*[15 * MS] * 100, *[MS] * 25),
            preemption=histogram(*[4 * MS] * 110),
        ),
        drop_latency=histogram(*[90_000] * 200),
        convoy_waits=100,
        forced_switches=110,
        drop_requests=230,
    )
    seen = observation(threads, (lock,), {"began_unseen": 2})
    return Recording(seen, mode="contention", duration_ns=2000 * MS)


def stack(*frames: tuple[str, str, int, int], state: StackState = StackState.WHOLE) -> Stack:
    """Return a stack of (function, file, first line, line), innermost first."""
    return Stack(tuple(Frame(*frame) for frame in frames), state)


_THREADING = "/usr/lib/python3.11/threading.py"
_BOOTSTRAP = (
    ("Thread.run", _THREADING, 952, 975),
    ("Thread._bootstrap_inner", _THREADING, 1016, 1038),
    ("Thread._bootstrap", _THREADING, 972, 995),
)
SERVING = stack(("handle", "/srv/app.py", 11, 13), ("serve", "/srv/app.py", 8, 9), *_BOOTSTRAP)
CRUNCHING = stack(("crunch", "/srv/app.py", 2, 4), *_BOOTSTRAP)
MATCHING = stack(
    ("Pattern.scan <café>", "/srv/lib/match.py", 20, 27),
    ("crunch", "/srv/app.py", 2, 5),
    *_BOOTSTRAP[:1],
    state=StackState.CUT,
)


def held_up_of(
    edges: Iterable[Edge],
    state: HoldState = HoldState(State.PYTHON),  # noqa: B008 - frozen
) -> tuple[HeldUp, ...]:
    """Return what *edges* come to by holder and kind, where every holder is in one *state*."""
    lost_ns: Counter[tuple[Stack, Kind]] = Counter()
    for edge in edges:
        lost_ns[edge.holder, edge.kind] += edge.lost.ns
    return tuple(HeldUp(holder, kind, state, ns) for (holder, kind), ns in lost_ns.items())


def with_edges() -> Recording:
    """Return `convoy` with both ends of every wait, a slow_drop, and a few source lines.

    It has every state of a stack. The edges' times add up to those of the threads.
    """
    recording = convoy()
    seen = recording.observation
    unknown = Stack((), StackState.UNKNOWN)
    no_python = Stack((), StackState.NO_PYTHON)
    torn = replace(CRUNCHING, state=StackState.TORN)
    edges = (
        Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(1100 * MS, 90)),
        Edge(Kind.CONVOY, SERVING, MATCHING, Tally(350 * MS, 30)),
        Edge(Kind.PREEMPTION, CRUNCHING, torn, Tally(340 * MS, 90)),
        Edge(Kind.PREEMPTION, CRUNCHING, no_python, Tally(70 * MS, 20)),
        Edge(Kind.CONVOY, SERVING, unknown, Tally(50 * MS, 5)),
        Edge(Kind.BLOCKING_CALL, SERVING, CRUNCHING, Tally(30 * MS, 25)),
    )
    slow_drops = (
        SlowDrop(MATCHING, Tally(260 * MS, 12), longest_ns=41 * MS),
        SlowDrop(no_python, Tally(30 * MS, 1), longest_ns=30 * MS),
    )
    totals = replace(seen.totals, edges=edges, slow_drops=slow_drops, held_up=held_up_of(edges))
    sources = {
        ("/srv/app.py", 13): "os.read(fd, 1)",
        ("/srv/app.py", 4): "total += sum(range(20000))",
    }
    return replace(recording, observation=replace(seen, totals=totals), sources=sources)


def with_listings() -> Recording:
    """Return `with_edges` with the text of the function that held the GIL, and what comes next."""
    text = (
        "def crunch():",
        "    total = 0",
        "    total += sum(range(20000))",
        "    total += scan(total)",
        "",
        "def serve():",
    )
    listings = {("/srv/app.py", number): line for number, line in enumerate(text, 2)}
    return replace(with_edges(), listings=listings)


def with_holders() -> Recording:
    """Return `with_edges` with samples of who held the GIL: 1.6 s of 2 s, of 200 samples."""
    recording = with_edges()
    seen = recording.observation
    holders = (HeldBy(CRUNCHING, 1000 * MS), HeldBy(MATCHING, 400 * MS), HeldBy(SERVING, 200 * MS))
    samples = HolderSamples(200, 2000 * MS, holders)
    totals = replace(seen.totals, holder_samples=samples)
    return replace(recording, observation=replace(seen, totals=totals))


def with_native_calls() -> Recording:
    """Return `with_holders`; `CRUNCHING` was in C code for 0.6 s, whose calls are known."""
    recording = with_holders()
    seen = recording.observation
    samples = seen.totals.holder_samples
    assert samples is not None
    first, *others = samples.holders
    calls = ("libz.so.1 deflate", "zlib.so", "python3.11 _PyObject_MakeTpCall")
    native = HoldState(State.NATIVE, "libz.so.1 longest_match", calls)
    holders = (replace(first, held_ns=600 * MS, state=native), *others)
    totals = replace(seen.totals, holder_samples=replace(samples, holders=holders))
    return replace(recording, observation=replace(seen, totals=totals))


def with_traces() -> Recording:
    """Return the convoy with stacks, of a program that publishes which requests it serves."""
    recording = with_edges()
    worst = (
        TraceWait(
            "4bf92f3577b34da6a3ce929d0e0e4736",
            31 * MS,
            3,
            20 * MS,
            1_790_000_000_000 * MS,
            "00f067aa0ba902b7",
            CRUNCHING,
            Cause.BLOCKING_CALL,
            recording.observation.totals.gils[0].gil.cond,
        ),
        TraceWait(
            "0af7651916cd43dd8448eb211c80319c",
            9 * MS,
            1,
            9 * MS,
            1_790_000_001_000 * MS,
            "b7ad6b7169203331",
            CRUNCHING,
            Cause.BLOCKING_CALL,
            recording.observation.totals.gils[0].gil.cond,
        ),
    )
    routes = (
        RouteWait("POST /checkout", 2, 62 * MS, 8, 20 * MS, CRUNCHING),
        RouteWait(None, 5, 8 * MS, 3, 4 * MS, SERVING),
    )
    cond = recording.observation.totals.gils[0].gil.cond
    slow = TraceHold(
        worst[1].trace_id,
        "/report",
        400 * MS,
        2,
        300 * MS,
        1_790_000_002_000 * MS,
        "0102" * 4,
        cond,
    )
    long = replace(slow, trace_id=worst[0].trace_id, route=None, ns=90 * MS, times=1)
    traces = Traces(
        7,
        70 * MS,
        11,
        worst=worst,
        routes=routes,
        recent=worst,
        slow_drops=TraceHolds(400 * MS, 2, (slow,), (slow,)),
        long_holds=TraceHolds(90 * MS, 1, (long,), (long,)),
    )
    totals = replace(recording.observation.totals, traces=traces)
    return replace(recording, observation=replace(recording.observation, totals=totals))


def full_mode() -> Recording:
    """Return the two seconds of `convoy` with every hold: the lock was held 1.8 s of them.

    Windows covered all of it. One hold of 3 ms is in flight, of a thread in `crunch`.
    """
    recording = convoy()
    seen = recording.observation
    serve, crunch, other = seen.totals.threads
    threads = (
        replace(serve, held=Tally(50 * MS, 125)),
        replace(crunch, held=Tally(900 * MS, 180)),
        replace(other, held=Tally(850 * MS, 170)),
    )
    holds = HoldTotals(
        finished=histogram(*[400_000] * 125, *[4_991_428] * 350),
        switch_latency=histogram(*[12_000] * 235),
        held_ns=1800 * MS,
        holding_ns=3 * MS,
    )
    lock = replace(seen.totals.gils[0], holds=holds, held_ns=1800 * MS)
    totals = replace(
        seen.totals,
        at_ns=2000 * MS,
        threads=threads,
        gils=(lock,),
        observed_ns=2000 * MS,
        throttled_ns=0,
        cost=TracingCost(2_400_000, recent_ratio=0.0013, traps=1420, stack_share=0.25),
    )
    return replace(recording, observation=replace(seen, totals=totals), mode="full")


def with_moment() -> Recording:
    """Return `with_edges` with its worst moment: 40 ms from a second on, by waits alone.

    Thread 1 waits for 18 ms behind thread 2, runs for 2 ms, and waits again at the end.
    """
    recording = with_edges()
    began_ns = 1000 * MS
    spans = (
        Span(2, 0, began_ns - 9 * MS, began_ns - 5 * MS, Kind.PREEMPTION, CRUNCHING, SERVING),
        Span(1, 0, began_ns, began_ns + 18 * MS, Kind.CONVOY, SERVING, CRUNCHING),
        Span(2, 0, began_ns + 18 * MS, began_ns + 20 * MS, Kind.PREEMPTION, CRUNCHING, SERVING),
        Span(1, 0, began_ns + 30 * MS, began_ns + 60 * MS, Kind.CONVOY, SERVING, CRUNCHING),
    )
    moment = Moment(began_ns, began_ns + 40 * MS, spans, chosen_among=200)
    return replace(recording, worst=moment)


def with_timeline() -> Recording:
    """Return `full_mode` with a few of its waits and holds one by one, and three that are lost.

    Thread 2 is made to yield to thread 1: it waits from a moment before it lets go. Thread 9 ended
    before it could be asked for its role.
    """
    recording = full_mode()
    seen = recording.observation
    began_ns = 7_000_000_000
    spans = (
        Span(2, 0, began_ns, began_ns + 8_000_003, None),
        Span(
            1,
            0,
            began_ns + 2_000_001,
            began_ns + 8_015_000,
            Kind.CONVOY,
            SERVING,
            replace(CRUNCHING, state=StackState.TORN),
        ),
        Span(1, 0, began_ns + 8_016_000, began_ns + 8_116_000, None),
        Span(2, 0, began_ns + 8_000_000, began_ns + 8_120_999, Kind.PREEMPTION, CRUNCHING, SERVING),
        Span(9, 0, began_ns + 8_130_000, began_ns + 8_130_000, Kind.UNKNOWN),
    )
    return replace(
        recording,
        observation=replace(seen, since_ns=began_ns - 1000),
        timeline=Timeline(spans, dropped=3),
    )
