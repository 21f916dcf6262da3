"""Which programs and tables on locks are asked for."""

from gilscope.bpf.features import Features, kernel_features, namespace_parameters, program_kinds
from gilscope.bpf.loader import Loading
from gilscope.bpf.request import Request
from gilscope.locks.abi import SPAN, LockLoss, Program
from gilscope.values import dataclass
from gilscope.windows.notices import NOTICE

__all__ = ["PROGRAMS", "LockLimits", "begin_loading", "whole_request"]

PROGRAMS = tuple(program.name.lower() for program in Program)
"""Those that sit in traced processes."""


@dataclass(frozen=True, slots=True)
class LockLimits:
    """Sizes of the tables: how much is counted before something is lost as ``table_full``."""

    targets: int = 256
    threads: int = 16384
    waits: int = 131072
    hand_overs: int = 4096
    """Of RLocks: the oldest are forgotten first, and none counts for longer than 10 ms."""
    stacks: int = 32768
    notice_pages: int = 1
    span_pages: int = 1024
    """Of the ring of the timeline, in which each part of a wait takes 128 bytes."""
    spans_a_second: int = 4000
    """Of all processes, where only the worst moment is asked for."""


def begin_loading(
    limits: LockLimits | None = None,
    features: Features | None = None,
    *,
    timeline: bool = False,
    moments: bool = False,
) -> Loading:
    """Begin to compile the programs.

    *timeline* asks for each wait by itself, *moments* for so many of them that the worst moment can
    be shown.
    """
    limits, features = limits or LockLimits(), features or kernel_features()
    return Loading(_request(limits, features, timeline=timeline, moments=moments))


def whole_request() -> Request:
    """Return a request with all programs, tables and rings that any other may ask for."""
    return _request(LockLimits(), Features(uprobe_links=True), timeline=False, moments=True)


def _request(sizes: LockLimits, kernel: Features, *, timeline: bool, moments: bool) -> Request:
    has_spans = timeline or moments
    rings = {"notices": NOTICE} | ({"spans": SPAN} if has_spans else {})
    parameters = {
        **namespace_parameters(),
        "TIMELINE": int(has_spans),
        # 0: all of them.
        "SPANS_A_SECOND": sizes.spans_a_second if moments and not timeline else 0,
    }
    return Request(
        probe="locks.bpf.c",
        constants={},
        parameters=parameters,
        entries={
            "targets": sizes.targets,
            "totals": sizes.targets,
            "pythons": sizes.targets,
            "threads": sizes.threads,
            # Those of dead threads stay no longer, and one is of all zeros.
            "works": sizes.threads + 1,
            "wakes": sizes.threads,
            "hand_overs": sizes.hand_overs,
            "waits": sizes.waits,
            # Of each stack, and of stacks that are not known, by two causes: never full.
            "stops": 2 * (sizes.stacks + sizes.targets),
            "stacks": sizes.stacks,
            "lost_events": len(LockLoss) * sizes.targets,
            "notices": sizes.notice_pages,
            # Nothing is written to it unless it is asked for.
            "spans": sizes.span_pages if has_spans else 1,
        },
        table_flags=kernel.table_flags,
        programs=program_kinds(PROGRAMS, kernel),
        tables=(
            "targets",
            "totals",
            "pythons",
            "threads",
            "works",
            "wakes",
            "hand_overs",
            "waits",
            "stops",
            "stacks",
            "lost_events",
        ),
        rings={name: record.layout() for name, record in rings.items()},
    )
