"""The probes on locks in the kernel: loads them, attaches them, reads their maps."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from gilscope.bpf.features import Features, kernel_features
from gilscope.bpf.loader import Loading
from gilscope.bpf.probe import ProcessTables
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.locks.abi import LockLoss
from gilscope.locks.program import PROGRAMS, begin_loading
from gilscope.locks.totals import RawLocks
from gilscope.values import Record, dataclass
from gilscope.windows.probe import WindowedProbe
from gilscope.windows.window import ProbeWindow

__all__ = ["LockProbe", "RawPlace"]

_TABLES = ProcessTables(
    by_part_of_key=("waits", "wakes", "hand_overs", "stops", "stacks", "lost_events"),
    by_key=("pythons", "totals"),
    by_thread=("threads", "works"),
)
_NOBODY = {"value": 0}


@dataclass(frozen=True, slots=True)
class RawPlace:
    """The frames of a stack, innermost first."""

    places: tuple[tuple[int, int], ...]
    """Code object and instruction."""
    identities: tuple[int, ...]
    """Of the code objects."""
    is_cut: bool
    """Whether there are more of them."""


class LockProbe(WindowedProbe):
    """All BPF programs and maps on locks."""

    def __init__(self, loading: Loading | None = None, *, features: Features | None = None) -> None:
        """Take over what `begin_loading` has begun for *features*, or begin now.

        Raises KernelOrBccMissing or NotPermitted.
        """
        features = features or kernel_features()
        super().__init__(loading or begin_loading(features=features), features, _TABLES)
        self._attach_tracepoints()
        self._table("works").put(_NOBODY, {})

    def window(
        self,
        pid: int,
        hooks: Sequence[Hook],
        *,
        target: Record,
        python: Record,
        stepped: Collection[str] = (),
    ) -> ProbeWindow:
        """Return the closed window of process *pid*; while it is open the process has *hooks*.

        *target* and *python* are its records. *stepped* are the programs whose traps the kernel
        has to single-step.
        """
        self._make_way(pid)
        self._table("pythons").put({"value": pid}, python)
        return self._closed_window(pid, hooks, target, programs=PROGRAMS, stepped=stepped)

    def new_stacks(
        self, known: Mapping[int, Collection[int]]
    ) -> Mapping[int, Mapping[int, RawPlace]]:
        """Return the stacks of the processes in *known* by pid and id, but for those it has."""
        found: dict[int, dict[int, RawPlace]] = defaultdict(dict)

        def is_new(key: Record) -> bool:
            ids = known.get(key["tgid"])
            return ids is not None and key["id"] not in ids

        for key, record in self._table("stacks").items(is_new):
            depth = record["depth"]
            codes, instructions = record["codes"][:depth], record["instructions"][:depth]
            places = tuple(zip(codes, instructions, strict=True))
            found[key["tgid"]][key["id"]] = RawPlace(
                places, record["identities"][:depth], bool(record["is_cut"])
            )
        return found

    def read(self) -> dict[int, RawLocks]:
        """Return what the maps hold of all processes now, by pid."""
        found: dict[int, RawLocks] = defaultdict(lambda: RawLocks(time.monotonic_ns()))
        for key, record in self._table("totals").items():
            found[key["value"]].traps = record["traps"]
        for key, record in self._table("stops").items():
            found[key["tgid"]].stops.append((key, record))
        for key, record in self._table("threads").items():
            found[record["tgid"]].threads[key["value"]] = record
        for key, record in self._table("waits").items():
            found[key["tgid"]].waits.append((key, record))
        losses = {loss.number: loss for loss in LockLoss}
        for key, count in self._table("lost_events").items():
            found[key["tgid"]].lost[losses[key["reason"]].value] = count["value"]
        return found

    def forget_waits(self, keys: Sequence[Record]) -> None:
        """Remove what dead threads have waited for, once it has been counted."""
        for key in keys:
            self._table("waits").delete(key)
