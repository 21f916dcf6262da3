"""The probes of transactions in the kernel: loads them, attaches them, reads their maps."""

import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gilscope.bpf.features import Features, kernel_features
from gilscope.bpf.loader import Loading
from gilscope.bpf.probe import Probe, ProcessTables
from gilscope.bpf.ringbuf import Ring
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.model.gil import Record
from gilscope.transactions.abi import Event, StmLoss
from gilscope.transactions.program import begin_loading
from gilscope.transactions.totals import RawStm
from gilscope.transactions.window import StmKernel, StmWindow

__all__ = ["Notices", "StmProbe"]

_TABLES = ProcessTables(
    by_part_of_key=("transactions", "reasons", "lost_events"),
    by_key=("totals",),
    by_thread=("threads",),
)


@dataclass(frozen=True, slots=True)
class Notices:
    """Processes that something is to be done about."""

    ended_windows: frozenset[int]
    """Whose windows have used up their allowance."""
    forked: frozenset[int]
    """That have a child with a copy of their memory."""


class StmProbe(Probe):
    """All BPF programs and maps of transactions."""

    window_table = "targets"

    def __init__(self, loading: Loading | None = None, *, features: Features | None = None) -> None:
        """Take over what `begin_loading` has begun for *features*, or begin now.

        Raises KernelOrBccMissing or NotPermitted.
        """
        features = features or kernel_features()
        super().__init__(loading or begin_loading(features=features), features, _TABLES)
        self._attach_tracepoints()

    @property
    def notice_ring(self) -> Ring:
        """Becomes readable when a window has used up its allowance, or a process has forked."""
        return self._loaded.rings["notices"]

    def window(
        self,
        pid: int,
        hooks: Sequence[Hook],
        *,
        events: Sequence[Event] = (),
        stepped: Collection[str] = (),
    ) -> StmWindow:
        """Return the closed window of process *pid*; while it is open the process has *hooks*.

        *events* are what the numbers of its events stand for. *stepped* are the programs whose
        traps the kernel has to single-step.
        """
        self._make_way(pid)
        kernel = StmKernel(self._table("targets"), self._table("totals"), self._uprobes)
        self._table("totals").put({"value": pid}, {})
        return StmWindow(pid, hooks, kernel, events=events, stepped=stepped)

    def take_notices(self) -> Notices:
        """Take and return what the probes have noticed since the last call."""
        notices = list(self.notice_ring.drain())
        return Notices(
            frozenset(notice["tgid"] for notice in notices if not notice["is_fork"]),
            frozenset(notice["tgid"] for notice in notices if notice["is_fork"]),
        )

    def read(self) -> dict[int, RawStm]:
        """Return what the maps hold of all processes now, by pid."""
        now_ns = time.monotonic_ns()
        found = {
            key["value"]: RawStm(now_ns, record) for key, record in self._table("totals").items()
        }
        threads: dict[int, dict[int, Record]] = defaultdict(dict)
        for key, record in self._table("threads").items():
            threads[record["tgid"]][key["value"]] = record
        reasons: dict[int, dict[str, int]] = defaultdict(dict)
        places: dict[int, dict[int, int]] = defaultdict(dict)
        for key, count in self._table("reasons").items():
            if key["place"]:
                places[key["tgid"]][key["place"]] = count["value"]
            else:
                reasons[key["tgid"]][_text(key["reason"])] = count["value"]
        lost: dict[int, dict[str, int]] = defaultdict(dict)
        losses = {loss.number: loss for loss in StmLoss}
        for key, count in self._table("lost_events").items():
            lost[key["tgid"]][losses[key["reason"]].value] = count["value"]
        for pid, raw in found.items():
            raw.threads, raw.lost = threads[pid], lost[pid]
            raw.reasons, raw.places = reasons[pid], places[pid]
        return found


def _text(raw: Sequence[int]) -> str:
    return bytes(raw).split(b"\0", 1)[0].decode(errors="replace")
