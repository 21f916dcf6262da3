"""The probes of transactions in the kernel: loads them, attaches them, reads their maps."""

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, wait
from typing import Self

from gilscope.descriptors import moved_up
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.kernel import syscalls
from gilscope.kernel.features import TRACEPOINTS, Features, kernel_features
from gilscope.kernel.loader import Loading
from gilscope.kernel.table import Table
from gilscope.kernel.uprobes import Hook, Uprobes
from gilscope.model import Record
from gilscope.stm_live.account import RawStm
from gilscope.stm_live.losses import StmLoss
from gilscope.stm_live.request import begin_loading

__all__ = ["StmProbe"]

_KEYED_BY_PROCESS = ("transactions", "reasons", "lost_events")


class StmProbe:
    """All BPF programs and maps of transactions, shared by every traced process.

    Closing it, or the death of the agent, takes every probe out of every process.
    """

    def __init__(self, loading: Loading | None = None, *, features: Features | None = None) -> None:
        """Take over what `begin_loading` has begun for *features*, or begin now.

        Raises KernelOrBccMissing or NotPermitted.
        """
        features = features or kernel_features()
        self._loaded = (loading or begin_loading(features=features)).finish()
        self._uprobes = Uprobes(self._loaded.programs, has_links=features.uprobe_links)
        self._hooks: dict[int, list[int]] = {}
        self._closing: dict[int, list[Future[None]]] = {}
        self._links: list[int] = []
        for program, tracepoint in TRACEPOINTS.items():
            self._links.append(self._open_tracepoint(tracepoint, program))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take all probes out."""
        for pid in list(self._hooks):
            self.detach(pid)
        for fd in self._links:
            os.close(fd)
        self._links.clear()
        self._uprobes.shut_down()
        self._loaded.close()

    def attach(self, pid: int, hooks: Sequence[Hook], *, knows_events: bool) -> None:
        """Probe process *pid* at *hooks*, all or nothing.

        *knows_events*: the numbers of all events are known, not only of the first three. Raises
        NotPermitted, KernelOrBccMissing, or ProcessLookupError where the process has gone.
        """
        # What an earlier attachment has left there would count for this one.
        wait(self._closing.pop(pid, ()))
        self.forget(pid)
        key = {"value": pid}
        self._table("totals").put(key, {})
        self._table("targets").put(key, {"knows_events": int(knows_events)})
        try:
            self._hooks[pid] = [*map(moved_up, self._uprobes.open(pid, hooks, cookie=0))]
        except BaseException:
            self.detach(pid)
            self.forget(pid)
            raise

    def detach(self, pid: int) -> None:
        """Take the probes out of *pid*; what was counted stays readable until it is forgotten."""
        self._closing = {
            other: closing
            for other, closing in self._closing.items()
            if not all(each.done() for each in closing)
        }
        self._closing[pid] = self._uprobes.close(self._hooks.pop(pid, ()))
        self._table("targets").delete({"value": pid})

    def forget(self, pid: int) -> None:
        """Remove whatever the maps hold of *pid*."""
        self._table("totals").delete({"value": pid})
        for name in _KEYED_BY_PROCESS:
            table = self._table(name)
            for key in [key for key, _ in table.items() if key["tgid"] == pid]:
                table.delete(key)
        threads = self._table("threads")
        for key in [key for key, record in threads.items() if record["tgid"] == pid]:
            threads.delete(key)

    def forget_thread(self, tid: int) -> None:
        """Remove the record of a dead thread that has been taken over."""
        self._table("threads").delete({"value": tid})

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

    def _open_tracepoint(self, tracepoint: str, program: str) -> int:
        try:
            return syscalls.open_raw_tracepoint(tracepoint, self._loaded.programs[program])
        except PermissionError as error:
            raise NotPermitted(
                f"the kernel refused raw tracepoint {tracepoint} ({error.strerror})"
            ) from error
        except OSError as error:
            raise KernelOrBccMissing(
                f"cannot attach raw tracepoint {tracepoint}: {error.strerror}"
            ) from error

    def _table(self, name: str) -> Table:
        return self._loaded.tables[name]


def _text(raw: Sequence[int]) -> str:
    return bytes(raw).split(b"\0", 1)[0].decode(errors="replace")
