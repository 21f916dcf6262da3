"""Which programs and tables of software transactions are asked for."""

from gilscope.bpf.features import Features, kernel_features, namespace_parameters, program_kinds
from gilscope.bpf.loader import Loading
from gilscope.bpf.request import Request
from gilscope.transactions.abi import Program
from gilscope.values import dataclass
from gilscope.windows.notices import NOTICE

__all__ = ["PROGRAMS", "StmLimits", "begin_loading", "whole_request"]

PROGRAMS = tuple(program.name.lower() for program in Program)
"""Those that sit in traced processes."""
_REASONS_OF_LOSS = 8
"""At most, of a process."""


@dataclass(frozen=True, slots=True)
class StmLimits:
    """Sizes of the tables: how much is counted before something is lost as ``table_full``."""

    targets: int = 256
    threads: int = 16384
    reasons: int = 4096
    notice_pages: int = 1
    reasons_of_process: int = 64
    """What comes later has no name of its own; roughly, where threads find new ones at once."""


def begin_loading(limits: StmLimits | None = None, features: Features | None = None) -> Loading:
    """Begin to compile the programs."""
    return Loading(_request(limits or StmLimits(), features or kernel_features()))


def whole_request() -> Request:
    """Return a request with all programs, tables and rings that any other may ask for."""
    return _request(StmLimits(), Features(uprobe_links=True))


def _request(sizes: StmLimits, kernel: Features) -> Request:
    return Request(
        probe="transactions.bpf.c",
        constants={},
        parameters={
            "MAX_REASONS_OF_PROCESS": sizes.reasons_of_process,
            **namespace_parameters(),
        },
        entries={
            "targets": sizes.targets,
            "totals": sizes.targets,
            "transactions": sizes.threads,
            "threads": sizes.threads,
            "reasons": sizes.reasons,
            "lost_events": _REASONS_OF_LOSS * sizes.targets,
            "notices": sizes.notice_pages,
        },
        table_flags=kernel.table_flags,
        programs=program_kinds(PROGRAMS, kernel),
        tables=("targets", "totals", "transactions", "threads", "reasons", "lost_events"),
        rings={"notices": NOTICE.layout()},
    )
