"""The probes of transactions in the kernel: loads them, attaches them, reads their maps."""

import time
from collections import defaultdict
from collections.abc import Sequence

from gilscope.kernel.features import Features, kernel_features
from gilscope.kernel.loader import Loading
from gilscope.kernel.probe import Probe, ProcessTables
from gilscope.kernel.uprobes import Hook
from gilscope.model import Record
from gilscope.stm_live.account import RawStm
from gilscope.stm_live.losses import StmLoss
from gilscope.stm_live.request import begin_loading

__all__ = ["StmProbe"]

_TABLES = ProcessTables(
    by_part_of_key=("transactions", "reasons", "lost_events"),
    by_key=("totals",),
    by_thread=("threads",),
)


class StmProbe(Probe):
    """All BPF programs and maps of transactions."""

    def __init__(self, loading: Loading | None = None, *, features: Features | None = None) -> None:
        """Take over what `begin_loading` has begun for *features*, or begin now.

        Raises KernelOrBccMissing or NotPermitted.
        """
        features = features or kernel_features()
        super().__init__(loading or begin_loading(features=features), features, _TABLES)
        self._attach_tracepoints()

    def attach(self, pid: int, hooks: Sequence[Hook], *, knows_events: bool) -> None:
        """Probe process *pid* at *hooks*, all or nothing.

        *knows_events*: the numbers of all events are known, not only of the first three. Raises
        NotPermitted, KernelOrBccMissing, or ProcessLookupError where the process has gone.
        """
        self._make_way(pid)
        key = {"value": pid}
        self._table("totals").put(key, {})
        self._table("targets").put(key, {"knows_events": int(knows_events)})
        self._put_in_or_forget(pid, hooks, cookie=0)

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
        for key, count in self._table("reasons").items():
            reasons[key["tgid"]][_text(key["reason"])] = count["value"]
        lost: dict[int, dict[str, int]] = defaultdict(dict)
        losses = tuple(StmLoss)
        for key, count in self._table("lost_events").items():
            lost[key["tgid"]][losses[key["reason"]].value] = count["value"]
        for pid, raw in found.items():
            raw.threads, raw.reasons, raw.lost = threads[pid], reasons[pid], lost[pid]
        return found


def _text(raw: Sequence[int]) -> str:
    return bytes(raw).split(b"\0", 1)[0].decode(errors="replace")
