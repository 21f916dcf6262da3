"""Which programs and tables of the GIL are asked for."""

from collections.abc import Mapping

from gilscope.bpf.features import Features, kernel_features, namespace_parameters, program_kinds
from gilscope.bpf.loader import Loading
from gilscope.bpf.request import Request
from gilscope.gil.abi import NOTICE, SPAN, STACK, NextProgram
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from gilscope.values import dataclass

__all__ = ["NEXT_OF_TURNS", "Limits", "begin_loading", "whole_request"]

_UPROBES = (
    "on_acquire",
    "on_forced_drop",
    "on_forced_take",
    "on_libc_wait",
    "on_libc_yield",
    "on_nothing",
    "on_release",
    "on_turn_given",
    "on_turn_taken",
    "on_turn_wait",
    "on_semaphore_acquire",
    "on_semaphore_release",
    "on_semaphore_sleep",
    "on_semaphore_taken",
    "on_semaphore_wait",
    "on_wait",
    "on_wait_return",
    "on_yield",
    "on_yield_return",
)

_NEXT_PROGRAMS = tuple(each.name.lower() for each in NextProgram)
"""What the programs jump to."""
NEXT_OF_TURNS = (NextProgram.WALK_TURN, NextProgram.WALK_TURN_HOLDER)
"""Of these what those of PyPy's lock jump to, and no others."""

_OF_FEW_PROCESSES = ("on_libc_", "on_semaphore_", "on_turn_", "walk_turn")
"""How programs are called for locks of PyPy and of Python 2.7, and for ``--method libc``: a third
of what the kernel has to check."""

_ONE_A_PROCESS = ("targets", "pythons", "pypys", "turns", "semaphores", "contexts")
_ONE_A_LOCK = ("gils", "drop_requests", "return_sites", "other_locks")
_ONE_A_SLOT = ("locks", "windows", "wait_windows", "stack_shares", "returned")
_HISTOGRAMS_OF_LOCK = 4
_REASONS_OF_LOSS = 16
"""At most, of a process."""
_PAGE_BYTES = 4096
_RING_HEADER_BYTES = 8
"""What the ring puts before each record."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of the tables: how much is counted before something is lost as ``table_full``."""

    targets: int = 4096
    gils: int = 8192
    threads: int = 65536
    caller_rules: int = 16384
    locks: int = 4096
    stacks: int = 16384
    edges: int = 32768
    traces: int = 32768
    notice_pages: int = 64
    """Of the ring buffer; a power of two. A notice takes 24 bytes there."""
    stack_pages: int = 256
    """The same for stacks, of which each takes 544 bytes."""
    span_pages: int = 1024
    """The same for the timeline, of which each wait and each hold takes 64 bytes."""
    spans_a_second: int = 4000
    """Of all processes, where only the worst moment is asked for; a convoy has some hundreds."""
    least_hold_ns: int = 100_000
    """Shorter ones are not sent then: the picture has no room for them."""

    region_processes: int = 1024
    """That read their own waits; each takes 64 KiB."""

    # What one process may have of the tables that all share; then it loses as ``quota``.
    threads_of_process: int = 16384
    gils_of_process: int = 256
    """Locks that threads have waited for; Python itself is asked for as many."""
    return_sites_of_process: int = 256
    edges_of_process: int = 8192
    traces_of_process: int = 16384
    stacks_of_process: int = 960
    """In the ring at a time; what does not fit is sent the next time that it is seen."""


def begin_loading(  # noqa: PLR0913 - all have defaults
    *,
    discover: bool = False,
    timeline: bool = False,
    moments: bool = False,
    regions: bool = False,
    limits: Limits | None = None,
    features: Features | None = None,
) -> Loading:
    """Begin to compile the programs.

    *discover* asks for a notice of every exec on the host, *timeline* for each wait and each hold
    by itself, *moments* for so many of them that the worst moment can be shown,
    *regions* for what processes read of their own waits.
    """
    limits = limits or Limits()
    spans = _span_parameters(limits, timeline=timeline, moments=moments)
    features = features or kernel_features()
    return Loading(_request(limits, features, spans, discover=discover, regions=regions))


def whole_request() -> Request:
    """Return a request with all programs, tables and rings that any other may ask for."""
    features = Features(uprobe_links=True)
    spans = _span_parameters(Limits(), timeline=False, moments=True)
    return _request(Limits(), features, spans, discover=True, regions=True)


def _span_parameters(limits: Limits, *, timeline: bool, moments: bool) -> Mapping[str, int]:
    ring_bytes = limits.span_pages * _PAGE_BYTES
    return {
        "TIMELINE": int(timeline or moments),
        # 0: all of them.
        "SPANS_A_SECOND": limits.spans_a_second if moments and not timeline else 0,
        "LEAST_HOLD_NS": limits.least_hold_ns,
        # Of a quarter of the ring.
        "SPANS_A_NOTICE": ring_bytes // 4 // (SPAN.layout().size + _RING_HEADER_BYTES),
    }


def _request(
    limits: Limits, features: Features, spans: Mapping[str, int], *, discover: bool, regions: bool
) -> Request:
    grows = features.tables_may_grow
    blames = limits.threads if grows else min(limits.threads, 4096)
    # Of 2 KB each.
    histograms = _HISTOGRAMS_OF_LOCK * (limits.gils if grows else min(limits.gils, 1024))
    blames_of_process = limits.threads_of_process if grows else min(limits.threads_of_process, 1024)
    traces = limits.traces if grows else min(limits.traces, 4096)
    traces_of_process = limits.traces_of_process if grows else min(limits.traces_of_process, 1024)
    rings = {"notices": NOTICE, "stacks": STACK} | ({"spans": SPAN} if spans["TIMELINE"] else {})
    return Request(
        probe="gil.bpf.c",
        constants=GLIBC_X86_64.macros(),
        parameters={
            "MAX_THREADS_OF_PROCESS": limits.threads_of_process,
            "MAX_BLAMES_OF_PROCESS": blames_of_process,
            "MAX_GILS_OF_PROCESS": limits.gils_of_process,
            "MAX_RETURN_SITES_OF_PROCESS": limits.return_sites_of_process,
            "MAX_EDGES_OF_PROCESS": limits.edges_of_process,
            "MAX_TRACES_OF_PROCESS": traces_of_process,
            "MAX_STACKS_OF_PROCESS": limits.stacks_of_process,
            "DISCOVER": int(discover),
            "HAS_COOKIES": int(features.uprobe_links),
            "REGIONS": int(regions),
            **spans,
            **namespace_parameters(),
        },
        entries={
            **dict.fromkeys(_ONE_A_PROCESS, limits.targets),
            **dict.fromkeys(_ONE_A_LOCK, limits.gils),
            **dict.fromkeys(_ONE_A_SLOT, limits.locks),
            "threads": limits.threads,
            "blames": blames,
            "callers": limits.caller_rules,
            "edges": limits.edges,
            "slow_drops": limits.edges,
            "traces": traces,
            "held_traces": traces,
            "histograms": histograms,
            "lost_events": _REASONS_OF_LOSS * limits.targets,
            "sent_stacks": limits.stacks,
            "stacks": limits.stack_pages,
            "notices": limits.notice_pages,
            "spans": limits.span_pages if spans["TIMELINE"] else 1,
            "region_maps": limits.region_processes if regions else 1,
            "region_owners": limits.threads if regions else 1,
        },
        table_flags=features.table_flags,
        programs=program_kinds((*_UPROBES, *_NEXT_PROGRAMS), features),
        tables=(
            "targets",
            "gils",
            "drop_requests",
            "threads",
            "histograms",
            "lost_events",
            "callers",
            "return_sites",
            "locks",
            "windows",
            "wait_windows",
            "other_locks",
            "pythons",
            "pypys",
            "turns",
            "semaphores",
            "stack_shares",
            "returned",
            "blames",
            "sent_stacks",
            "edges",
            "slow_drops",
            "contexts",
            "traces",
            "held_traces",
            "settings",
            "next_program",
            *(("span_budget",) if spans["SPANS_A_SECOND"] else ()),
            *(("region_prototype", "region_maps", "region_owners") if regions else ()),
        ),
        rings={name: record.layout() for name, record in rings.items()},
        later=frozenset(
            each for each in (*_UPROBES, *_NEXT_PROGRAMS) if each.startswith(_OF_FEW_PROCESSES)
        ),
        inner_of={"region_maps": "region_prototype"} if regions else {},
    )
