"""Loaded programs in the processes that they observe, whatever it is that they count there."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, Self

from gilscope.bpf import syscalls
from gilscope.bpf.features import TRACEPOINTS, Features
from gilscope.bpf.loader import Loading
from gilscope.bpf.map import Table
from gilscope.bpf.programs import Programs
from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.bpf.uprobes.keeper import Keeper, WindowTable
from gilscope.bpf.uprobes.shared import FileIdentity, SharedProbes
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.values import dataclass

__all__ = ["Probe", "ProcessTables"]


@dataclass(frozen=True, slots=True)
class ProcessTables:
    """The tables that hold something of a process, by where its number is."""

    by_part_of_key: tuple[str, ...]
    """In the field ``tgid`` of the key."""
    by_key: tuple[str, ...]
    """It is the key."""
    by_thread: tuple[str, ...]
    """The key is a thread's; the records of the first of them say whose that is."""


class Probe:
    """All BPF programs and maps of one kind, shared by every traced process.

    Closing it, or the death of the agent, takes every probe out of every process: a process of its
    own holds them.
    """

    window_table = ""
    """The table with the ends of windows (``until_ns``), by what probes of windows have as cookie;
    empty: there is none."""

    def __init__(self, loading: Loading, features: Features, tables: ProcessTables) -> None:
        """Take over what *loading* has begun for *features*.

        Raises KernelOrBccMissing or NotPermitted.
        """
        self.features = features
        self.spans_a_second = loading.request.parameters.get("SPANS_A_SECOND") or None
        """How many spans are sent by themselves at most; None: all, if any are."""
        self._loaded = loading.finish()
        self._uprobes = Uprobes(
            self._loaded.programs, has_links=features.uprobe_links, start_keeper=self._start_keeper
        )
        self._shared = SharedProbes(self._uprobes)
        self._process_tables = tables
        self._hooks: dict[int, list[int]] = defaultdict(list)
        self._closing: dict[int, list[Future[None]]] = defaultdict(list)
        self._links: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sends_spans(self) -> bool:
        """Whether what happens is sent one by one, and not only counted."""
        return "spans" in self._loaded.rings

    @property
    def sends_all_spans(self) -> bool:
        """Whether all of it is, and not only what the worst moment is chosen among."""
        return self.sends_spans and self.spans_a_second is None

    def spans(self) -> Iterator[dict[str, Any]]:
        """Take and yield what has ended since the last call.

        There is nothing unless the programs were compiled to send it.
        """
        ring = self._loaded.rings.get("spans")
        return iter(()) if ring is None else ring.drain()

    def close(self) -> None:
        """Take all probes out."""
        for pid in {*self._hooks, *self._shared.pids}:
            self._take_out(pid)
        for fd in self._links:
            os.close(fd)
        self._links.clear()
        self._uprobes.shut_down()
        self._loaded.close()

    @property
    def bcc_version(self) -> str:
        """The version of BCC that compiled the programs."""
        return self._loaded.bcc_version

    @property
    def is_ahead(self) -> bool:
        """Whether the programs came with gilscope, compiled when it was built."""
        return self._loaded.is_ahead

    @property
    def programs(self) -> Programs:
        """The descriptors of the programs that are loaded so far, by name."""
        return self._loaded.programs

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables, by name."""
        return self._loaded.tables

    def detach(self, pid: int) -> None:
        """Take the probes out of *pid*; what was counted stays readable until it is forgotten."""
        self._take_out(pid)
        self._table("targets").delete({"value": pid})

    def leave_to_the_attached(self, hooks: Sequence[Hook]) -> None:
        """Let the kernel take *hooks* out of every process that is not attached to them.

        Raises as `Uprobes.open` does.
        """
        self._uprobes.leave_to_the_attached(hooks)

    @property
    def keeper_pid(self) -> int | None:
        """The process that holds the probes; None while there is none."""
        return self._uprobes.keeper_pid

    @property
    def keeper_losses(self) -> int:
        """How often all probes have gone because the process that holds them had ended."""
        return self._uprobes.losses

    @property
    def lapses(self) -> int:
        """How often all windows were closed because the agent was silent for too long."""
        return self._uprobes.lapses

    def beat(self) -> None:
        """Say that the agent is alive: without that windows are closed."""
        self._uprobes.beat()

    def await_closing(self, pid: int, closing: Sequence[Future[None]]) -> None:
        """Attach to *pid* again only when *closing* is done."""
        self._closing[pid] += closing

    def forget(self, pid: int) -> None:
        """Remove whatever the maps hold of *pid*."""
        for name in self._process_tables.by_part_of_key:
            self._table(name).delete_where("tgid", pid)
        for name in self._process_tables.by_key:
            self._table(name).delete({"value": pid})
        records, *others = map(self._table, self._process_tables.by_thread)
        for key in records.delete_where("tgid", pid, in_value=True):
            for table in others:
                table.delete_raw(key)

    def forget_thread(self, tid: int) -> bool:
        """Remove the record of a dead thread that has been counted; return whether it was there."""
        return self._table("threads").delete({"value": tid})

    def _attach_tracepoints(self) -> None:
        """Learn of ends and of children; raises as the constructor does."""
        for program, tracepoint in TRACEPOINTS.items():
            self._links.append(self._open_tracepoint(tracepoint, program))

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

    def _make_way(self, pid: int) -> None:
        """Wait for the end of an earlier attachment to *pid*, and forget it."""
        # What that has left there would count for the next one.
        wait(self._closing.pop(pid, ()))
        self.forget(pid)

    def _put_in_or_forget(
        self, pid: int, hooks: Sequence[Hook], cookie: int, shared_file: FileIdentity | None = None
    ) -> None:
        """Put *hooks* into *pid*, or leave nothing of it; raises as `Uprobes.open` does.

        With *shared_file*, the file that they are in, they are put into all processes that run it,
        unless they are there already.
        """
        try:
            if shared_file is None or self._shared.has_own(pid, shared_file, hooks):
                self._put_in(pid, hooks, cookie)
            else:
                self._shared.join(pid, shared_file, hooks)
        except BaseException:
            self.detach(pid)
            self.forget(pid)
            raise

    def _put_in(self, pid: int, hooks: Sequence[Hook], cookie: int) -> None:
        self._hooks[pid] += self._uprobes.open(pid, hooks, cookie)

    def _start_keeper(self) -> Keeper:
        if not self.window_table:
            return Keeper()
        table = self._table(self.window_table)
        return Keeper(WindowTable(table.fileno(), table.value_size, table.offset_of("until_ns")))

    def _take_out(self, pid: int) -> None:
        for other in [
            other
            for other, closing in self._closing.items()
            if all(each.done() for each in closing)
        ]:
            del self._closing[other]
        self._closing[pid] += self._uprobes.close(self._hooks.pop(pid, ()))
        self._closing[pid] += self._shared.leave(pid)

    def _table(self, name: str) -> Table:
        return self._loaded.tables[name]
