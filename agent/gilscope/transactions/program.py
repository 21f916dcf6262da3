"""Which programs and tables of software transactions are asked for."""

from dataclasses import dataclass

from gilscope.bpf.features import Features, kernel_features, namespace_macros, program_kinds
from gilscope.bpf.loader import Loading, Request
from gilscope.bpf.map import RecordLayout
from gilscope.transactions.abi import defines

__all__ = ["PROGRAMS", "StmLimits", "begin_loading"]

PROGRAMS = (
    "on_abort",
    "on_become_inevitable",
    "on_event",
    "on_itm_begin",
    "on_itm_cancel",
    "on_itm_commit",
    "on_itm_mode",
    "on_itm_restart",
    "on_start",
)
"""Those that sit in traced processes. The order is the number that they are compiled with."""

_NOTICE = RecordLayout(8, [("tgid", 0, "I", 0), ("is_fork", 4, "I", 0)])


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
            probe="stm.bpf.c",
            defines={
                **defines(),
                **{f"PROGRAM_{name.upper()}": number for number, name in enumerate(PROGRAMS)},
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
            rings={"notices": _NOTICE},
        )
    )
