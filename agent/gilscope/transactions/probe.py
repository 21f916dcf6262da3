"""The probes of transactions in the kernel: loads them, attaches them, reads their maps."""

import time
from collections import defaultdict
from collections.abc import Collection, Sequence

from gilscope.bpf.features import Features, kernel_features
from gilscope.bpf.loader import Loading
from gilscope.bpf.probe import ProcessTables
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.transactions.abi import EVENT_NUMBERS, Event, StmLoss
from gilscope.transactions.program import PROGRAMS, begin_loading
from gilscope.transactions.totals import RawStm
from gilscope.values import Record
from gilscope.windows.probe import WindowedProbe
from gilscope.windows.window import ProbeWindow

__all__ = ["StmProbe"]

_TABLES = ProcessTables(
    by_part_of_key=("transactions", "reasons", "lost_events"),
    by_key=("totals",),
    by_thread=("threads",),
)


class StmProbe(WindowedProbe):
    """All BPF programs and maps of transactions."""

    def __init__(self, loading: Loading | None = None, *, features: Features | None = None) -> None:
        """Take over what `begin_loading` has begun for *features*, or begin now.

        Raises KernelOrBccMissing or NotPermitted.
        """
        features = features or kernel_features()
        super().__init__(loading or begin_loading(features=features), features, _TABLES)
        self._attach_tracepoints()

    def window(
        self,
        pid: int,
        hooks: Sequence[Hook],
        *,
        events: Sequence[Event] = (),
        stepped: Collection[str] = (),
    ) -> ProbeWindow:
        """Return the closed window of process *pid*; while it is open the process has *hooks*.

        *events* are what the numbers of its events stand for. *stepped* are the programs whose
        traps the kernel has to single-step.
        """
        self._make_way(pid)
        # An array of bytes.
        terms = {"events": bytes(events).ljust(EVENT_NUMBERS, b"\0")}
        return self._closed_window(pid, hooks, terms, programs=PROGRAMS, stepped=stepped)

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
