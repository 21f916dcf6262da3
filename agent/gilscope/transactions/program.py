"""Which programs and tables of software transactions are asked for."""

from dataclasses import dataclass

from gilscope.bpf.features import Features, kernel_features, namespace_macros, program_kinds
from gilscope.bpf.loader import Loading, Request
from gilscope.transactions.abi import NOTICE, Program

__all__ = ["PROGRAMS", "StmLimits", "begin_loading"]

PROGRAMS = tuple(program.name.lower() for program in Program)
"""Those that sit in traced processes."""


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
    sizes, kernel = limits or StmLimits(), features or kernel_features()
    return Loading(
        Request(
            probe="transactions.bpf.c",
            defines={
                "MAX_TARGETS": sizes.targets,
                "MAX_THREADS": sizes.threads,
                "MAX_REASONS": sizes.reasons,
                "MAX_REASONS_OF_PROCESS": sizes.reasons_of_process,
                "NOTICE_PAGES": sizes.notice_pages,
                "TABLE_FLAGS": kernel.table_flags,
                **namespace_macros(),
            },
            programs=program_kinds(PROGRAMS, kernel),
            tables=("targets", "totals", "transactions", "threads", "reasons", "lost_events"),
            rings={"notices": NOTICE.layout()},
        )
    )
