"""The GIL probes in the kernel: loads them once, attaches them to processes, reads their maps."""

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Self

from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.gil.account import RawProcess, RawTotals
from gilscope.gil.losses import Loss, defines
from gilscope.kernel import syscalls
from gilscope.kernel.loader import Loading, Request
from gilscope.kernel.table import Queue, Table
from gilscope.model import CallerRule
from gilscope.procfs import in_initial_pid_namespace

__all__ = [
    "GilProbe",
    "Hook",
    "Limits",
    "Notice",
    "NoticeKind",
    "Plan",
    "ReturnSite",
    "TargetFlag",
    "begin_loading",
]

_CLOSERS = 16

_UPROBES = (
    "on_forced_drop",
    "on_forced_take",
    "on_wait",
    "on_wait_return",
    "on_yield",
    "on_yield_return",
)
_LIBC_UPROBES = ("on_libc_wait", "on_libc_yield")
_TRACEPOINTS = {"on_thread_exit": "sched_process_exit", "on_exec": "sched_process_exec"}


class TargetFlag(IntFlag):
    """``enum target_flag`` of the probe."""

    NONE = 0
    KNOWS_CALLERS = 1


class NoticeKind(IntEnum):
    """``enum notice_kind`` of the probe."""

    EXEC = 0
    THREAD = 1
    RETURN = 2


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a probe asks the agent to look at."""

    kind: NoticeKind
    pid: int
    tid: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of the maps: how much is counted before something is lost as ``table_full``."""

    targets: int = 4096
    gils: int = 8192
    threads: int = 65536
    caller_rules: int = 16384
    notices: int = 8192


@dataclass(frozen=True, slots=True)
class Hook:
    """One program at one place in one file."""

    program: str
    path: str
    """Under which the agent can open the file."""
    offset: int
    """In the file, bytes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to probe one process."""

    hooks: tuple[Hook, ...]
    load_bias: int
    """Run-time address less the file's own, for the file that *callers* speak of."""
    build_id: str
    callers: tuple[CallerRule, ...]
    conds: tuple[int, ...] = ()
    """Run-time addresses of its GILs, needed by the libc method only."""


@dataclass(frozen=True, slots=True)
class ReturnSite:
    """Libc method: an address that a wait for the GIL returns to."""

    address: int
    is_yield: bool


class GilProbe:
    """All BPF programs and maps of the GIL, shared by every traced process.

    Closing it, or the death of the agent, takes every probe out of every process.
    """

    def __init__(self, loading: Loading | None = None) -> None:
        """Take over what `begin_loading` has begun, or begin now.

        Raises KernelOrBccMissing or NotPermitted.
        """
        self._loaded = (loading or begin_loading()).finish()
        self._has_links = _has_uprobe_links()
        self._files: dict[str, int] = {}
        self._counted: set[int] = set()
        self._hooks: dict[int, list[int]] = defaultdict(list)
        # Taking a probe out takes up to 0.2 s, whatever is waited for meanwhile; several at once
        # take hardly longer than one.
        self._closers = ThreadPoolExecutor(_CLOSERS, "gilscope-close")
        self._closing: dict[int, list[Future[None]]] = {}
        self._links: list[int] = []
        for program, tracepoint in _TRACEPOINTS.items():
            self._links.append(self._open_tracepoint(tracepoint, program))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take all probes out."""
        for pid in list(self._hooks):
            self._close_hooks(pid)
        for fd in self._links:
            os.close(fd)
        self._links.clear()
        self._closers.shutdown()
        self._loaded.close()

    @property
    def bcc_version(self) -> str:
        """The version of BCC that compiled the programs."""
        return self._loaded.bcc_version

    def attach(self, pid: int, plan: Plan) -> None:
        """Probe process *pid* by *plan*, all or nothing.

        Raises NotPermitted, KernelOrBccMissing, or ProcessLookupError where the process has gone.
        """
        # What an earlier attachment has left there would count for this one.
        wait(self._closing.pop(pid, ()))
        self.forget(pid)
        self._counted.add(pid)
        flags = TargetFlag.KNOWS_CALLERS if plan.callers else TargetFlag.NONE
        target = {
            "load_bias": plan.load_bias,
            "file_id": self._file_id(plan.build_id, plan.callers),
            "flags": int(flags),
        }
        for cond in plan.conds:
            self.add_gil(pid, cond)
        self._table("targets").put({"value": pid}, target)
        try:
            self.add_hooks(pid, plan.hooks)
        except BaseException:
            self.detach(pid)
            self.forget(pid)
            raise

    def add_hooks(self, pid: int, hooks: Sequence[Hook]) -> None:
        """Put more probes into *pid*; raises as attach does."""
        offsets: dict[tuple[str, str], list[int]] = defaultdict(list)
        for hook in hooks:
            offsets[hook.program, hook.path].append(hook.offset)
        for (program, path), places in offsets.items():
            self._add_hooks(pid, self._loaded.programs[program], path, places)

    def _add_hooks(self, pid: int, program: int, path: str, offsets: list[int]) -> None:
        try:
            if self._has_links:
                self._hooks[pid].append(syscalls.open_uprobes(path, offsets, program, pid))
                return
            for offset in offsets:
                self._hooks[pid].append(syscalls.open_uprobe(path, offset, program, pid))
        except ProcessLookupError:
            raise
        except PermissionError as error:
            raise NotPermitted(
                f"the kernel refused uprobes in process {pid} ({error.strerror})"
            ) from error
        except OSError as error:
            places = ", ".join(f"{offset:#x}" for offset in offsets)
            raise KernelOrBccMissing(
                f"cannot put uprobes at {places} of {path}: {error.strerror}"
            ) from error

    def add_gil(self, pid: int, cond: int) -> None:
        """Libc method: count waits on the lock at *cond* of *pid*."""
        self._table("gils").put({"cond": cond, "tgid": pid}, {})

    def detach(self, pid: int) -> None:
        """Take the probes out of *pid*; what was counted stays readable until it is forgotten."""
        self._close_hooks(pid)
        self._table("targets").delete({"value": pid})

    def forget(self, pid: int) -> None:
        """Remove whatever the maps hold of *pid*."""
        if pid not in self._counted:
            return
        self._counted.discard(pid)
        for name in ("gils", "drop_requests", "histograms", "lost_events", "return_sites"):
            table = self._table(name)
            for key in [key for key, _ in table.items() if key["tgid"] == pid]:
                table.delete(key)
        threads = self._table("threads")
        for key in [key for key, record in threads.items() if record["tgid"] == pid]:
            threads.delete(key)

    def forget_thread(self, tid: int) -> None:
        """Remove the record of a dead thread that has been counted."""
        self._table("threads").delete({"value": tid})

    def notices(self) -> Iterator[Notice]:
        """Take and yield what the probes have noticed since the last call."""
        for record in self._queue("notices").drain():
            yield Notice(NoticeKind(record["kind"]), record["tgid"], record["tid"])

    def new_return_sites(self, pid: int) -> list[ReturnSite]:
        """Return the addresses that waits of *pid* return to and that are not probed yet."""
        return [
            ReturnSite(key["address"], bool(site["is_yield"]))
            for key, site in self._table("return_sites").items()
            if key["tgid"] == pid and not site["probed"]
        ]

    def mark_probed(self, pid: int, site: ReturnSite) -> None:
        """Let waits that return to *site* be counted from now on."""
        self._table("return_sites").put(
            {"address": site.address, "tgid": pid},
            {"is_yield": int(site.is_yield), "probed": 1},
        )

    def read(self) -> RawTotals:
        """Return what the maps hold of all processes now."""
        # The clock is read first: a wait that a record shows as in flight was so at this time.
        now_ns = time.monotonic_ns()
        processes: dict[int, RawProcess] = defaultdict(RawProcess)
        for key, record in self._table("threads").items():
            whole = self._whole_thread(key, record)
            if whole is not None:
                processes[whole["tgid"]].threads[key["value"]] = whole
        for key, record in self._table("gils").items():
            processes[key["tgid"]].gils[key["cond"]] = record
        for key, record in self._table("histograms").items():
            processes[key["tgid"]].histograms[key["cond"], key["quantity"]] = record
        losses = tuple(Loss)
        for key, record in self._table("lost_events").items():
            processes[key["tgid"]].lost[losses[key["reason"]]] = record["value"]
        return RawTotals(now_ns, dict(processes))

    def _whole_thread(self, key: dict[str, int], record: dict[str, int]) -> dict[str, int] | None:
        # The thread writes its record while it is copied; a torn copy shows two versions.
        again: dict[str, int] | None = record
        while again is not None and again["version_begin"] != again["version_end"]:
            again = self._table("threads").get(key)
        return again

    def _file_id(self, build_id: str, callers: Sequence[CallerRule]) -> int:
        if build_id not in self._files:
            file_id = len(self._files) + 1
            for rule in callers:
                self._table("callers").put(
                    {"pc": rule.pc, "file_id": file_id},
                    {
                        "cfa_offset": rule.cfa_offset,
                        "saved_fp_offset": rule.saved_frame_pointer_offset or 0,
                        "cfa_from_fp": int(rule.cfa_from_frame_pointer),
                        "made_to_yield": int(rule.made_to_yield),
                    },
                )
            self._files[build_id] = file_id
        return self._files[build_id]

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

    def _close_hooks(self, pid: int) -> None:
        self._closing = {
            other: closing
            for other, closing in self._closing.items()
            if not all(each.done() for each in closing)
        }
        closing = [self._closers.submit(os.close, fd) for fd in self._hooks.pop(pid, [])]
        self._closing.setdefault(pid, []).extend(closing)

    def _table(self, name: str) -> Table:
        return self._loaded.tables[name]

    def _queue(self, name: str) -> Queue:
        return self._loaded.queues[name]


def begin_loading(*, discover: bool = False, limits: Limits | None = None) -> Loading:
    """Begin to compile the programs; *discover* asks for a notice of every exec on the host."""
    return Loading(_request(limits or Limits(), discover=discover))


def _has_uprobe_links() -> bool:
    # Links came with Linux 6.6, but until commit 46ba0e49b642 ("bpf: fix multi-uprobe PID
    # filtering logic") (in v6.10) one with a pid saw the process' main thread only. Nothing but
    # the release tells that apart.
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and (int(release[1]), int(release[2])) >= (6, 10)


def _request(limits: Limits, *, discover: bool) -> Request:
    macros = {
        **defines(),
        "MAX_TARGETS": limits.targets,
        "MAX_GILS": limits.gils,
        "MAX_THREADS": limits.threads,
        "MAX_CALLER_RULES": limits.caller_rules,
        "MAX_NOTICES": limits.notices,
    }
    if discover:
        macros["DISCOVER"] = 1
    if not in_initial_pid_namespace():
        namespace = Path("/proc/self/ns/pid").stat()
        # The kernel's ids are the host's; inside a pid namespace, ask for the agent's own view.
        macros["PID_NAMESPACE_INODE"] = namespace.st_ino
        macros["PID_NAMESPACE_DEVICE"] = namespace.st_dev
    return Request(
        probe="gil_wait.bpf.c",
        defines=macros,
        programs={
            **dict.fromkeys(
                (*_UPROBES, *_LIBC_UPROBES), "uprobe_multi" if _has_uprobe_links() else "uprobe"
            ),
            **dict.fromkeys(_TRACEPOINTS, "raw_tracepoint"),
        },
        tables=(
            "targets",
            "gils",
            "drop_requests",
            "threads",
            "histograms",
            "lost_events",
            "callers",
            "return_sites",
            "notices",
        ),
    )
