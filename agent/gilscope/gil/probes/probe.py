"""The GIL probes in the kernel: loads them once, attaches them to processes, reads their maps."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from gilscope.bpf.features import Features, kernel_features
from gilscope.bpf.loader import Loading
from gilscope.bpf.map_entry import Entry
from gilscope.bpf.probe import Probe, ProcessTables
from gilscope.bpf.ringbuf import Ring
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.errors import KernelOrBccMissing
from gilscope.gil.abi import NextProgram, Quota
from gilscope.gil.probes.blame_maps import BlameTables
from gilscope.gil.probes.counts import CountTables
from gilscope.gil.probes.libc_method import ReturnSite
from gilscope.gil.probes.notices import Notice, take_notices
from gilscope.gil.probes.plan import Plan
from gilscope.gil.probes.program import NEXT_OF_TURNS, begin_loading
from gilscope.gil.probes.quotas import Quotas
from gilscope.gil.probes.slots import SlotPool
from gilscope.gil.probes.window import Window, WindowKernel
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.totals.raw import RawTotals
from gilscope.gil.waits.window import Parts, WaitKernel, WaitWindow, put_always
from gilscope.runtimes.base import Locks
from gilscope.runtimes.sites import CallerRule
from gilscope.values import Record

__all__ = ["SLOW_DROP_NS", "GilProbe"]


SLOW_DROP_NS = 10_000_000
"""Twice the usual switch interval."""

_MOST_OTHER_LOCKS = 127
"""Of a process whose holds are seen, beside its first: all processes share the places."""

_LOTS = 1 << 32
"""From which the programs draw one for each wait."""

_TABLES = ProcessTables(
    by_part_of_key=(
        "gils",
        "drop_requests",
        "histograms",
        "lost_events",
        "return_sites",
        "other_locks",
        "edges",
        "slow_drops",
        "traces",
        "held_traces",
        "sent_stacks",
        "turns",
    ),
    by_key=("pythons", "pypys", "semaphores", "contexts"),
    by_thread=("threads", "blames"),
)


class GilProbe(Probe):
    """All BPF programs and maps of the GIL."""

    window_table = "windows"

    def __init__(
        self,
        loading: Loading | None = None,
        *,
        features: Features | None = None,
        slow_drop_ns: int = SLOW_DROP_NS,
        long_wait_ns: int = 0,
    ) -> None:
        """Take over what `begin_loading` has begun for *features*, or begin now.

        Who takes *slow_drop_ns* or longer to release the GIL when asked is noted, and there is a
        notice of a wait that lasts *long_wait_ns*, while it lasts; 0: of none. Raises
        KernelOrBccMissing or NotPermitted.
        """
        features = features or kernel_features()
        loading = loading or begin_loading(features=features)
        super().__init__(loading, features, _TABLES)
        self._files: dict[tuple[str, tuple[CallerRule, ...]], int] = {}
        self._slots = SlotPool(self._table("windows").entries)
        self._slot_of: dict[int, int] = {}
        self._other_slots: dict[int, list[int]] = defaultdict(list)
        self._switch_conds: dict[int, int] = {}
        """Where the condition variable of switches is in each process, from `cond`."""
        self.before_detach: Callable[[int], None] = lambda _pid: None
        """Called with each process before its probes are taken out, or when they have gone."""
        self._attachments = 0
        self._entries: dict[tuple[int, str], Entry] = {}
        """Where the traps of a process are read, which is done often."""
        self._waiting: dict[tuple[int, int], Entry] = {}
        """The same for the threads that wait for a lock, by process and lock."""
        self._is_ready_for_turns = False
        self._put_next(each for each in NextProgram if each not in NEXT_OF_TURNS)
        self._quotas = Quotas(self._table("returned"))
        self.blame = BlameTables(
            self.tables,
            self._loaded.rings["stacks"],
            self._quotas,
            slow_drop_ns=slow_drop_ns,
            long_wait_ns=long_wait_ns,
        )
        self._counts = CountTables(self.tables, self.blame)
        self._attach_tracepoints()

    @property
    def notice_ring(self) -> Ring:
        """Becomes readable when the probes have noticed something."""
        return self._loaded.rings["notices"]

    @property
    def stack_ring(self) -> Ring:
        """Becomes readable when the probes have met a stack for the first time."""
        return self._loaded.rings["stacks"]

    def attach(self, pid: int, plan: Plan) -> int:
        """Probe process *pid* by *plan*, all or nothing.

        Return when the first probe was about to be placed, in monotonic nanoseconds: whatever is
        counted has happened since.
        Raises NotPermitted, KernelOrBccMissing, or ProcessLookupError where the process has gone.
        """
        self._load_for(plan)
        self._make_way(pid)
        self._switch_conds[pid] = plan.lock_parts["switch_cond_at"]
        slot = self._take_slot(pid, plan.conds[0] if plan.conds else 0)
        self._slot_of[pid] = slot
        self._quotas.begin(pid, slot)
        self.read_stacks_of(pid, 1.0)
        target = {
            "load_bias": plan.load_bias,
            "file_id": self._file_id(plan.build_id, plan.callers),
            "flags": int(plan.flags),
            "slot": slot,
            **plan.lock_parts,
        }
        if plan.waits_only_on_conds:
            for cond in plan.conds:
                self.add_gil(pid, cond)
        if plan.frame_walk is not None:
            self._attachments += 1
            python = {**plan.frame_walk, "attachment": self._attachments}
            self._table("pythons").put({"value": pid}, python)
        for table, record in plan.records.items():
            self._table(table).put({"value": pid}, record)
        since_ns = time.monotonic_ns()
        # Where it shares its probes, they may be in place already.
        self._table("targets").put({"value": pid}, target)
        self._put_in_or_forget(pid, plan.hooks, slot, plan.shared_file)
        return since_ns

    def add_hooks(self, pid: int, hooks: Sequence[Hook]) -> None:
        """Put more probes into *pid*; raises as attach does."""
        self._put_in(pid, hooks, self._slot_of.get(pid, 0))

    def put_back(self, pid: int, hooks: Sequence[Hook]) -> None:
        """Have *hooks*, which all share, in the code of *pid* again; raises as attach does.

        A process may have dropped, or written over, the page that they were in. Whenever a probe is
        placed somewhere the kernel sees to its breakpoint, and leaves that for who still wants it.
        """
        nothing = [replace(hook, program="on_nothing") for hook in hooks]
        self._uprobes.close(self._uprobes.open(pid, nothing, cookie=0))

    def hold(self, pid: int, hooks: Sequence[Hook]) -> list[int]:
        """Put *hooks* into *pid* for as long as the descriptors that are returned stay open."""
        return self._uprobes.open(pid, hooks, cookie=0)

    def release(self, descriptors: Sequence[int]) -> list[Future[None]]:
        """Begin to take out what `hold` has put there; return what says when it is out."""
        return self._uprobes.close(descriptors)

    def window(self, pid: int, sites: WindowSites, reader: Locks) -> Window:
        """Return the closed window of *pid*, which is attached; see `Window`."""
        kernel = WindowKernel(self._table("windows"), self._table("locks"), self._uprobes)
        return Window(pid, self._slot_of[pid], kernel, sites, reader)

    def wait_window(self, pid: int, hooks: Sequence[Hook], parts: Parts) -> WaitWindow:
        """Return what puts *hooks*, the probes of *pid* on its waits, in and takes them out.

        They are in; where others share them, until `split`.
        """
        kernel = WaitKernel(
            self._table("wait_windows"),
            self._table("threads"),
            self._table("gils"),
            self._table("drop_requests"),
            self._uprobes,
            self._hooks,
        )
        return WaitWindow(pid, self._slot_of[pid], kernel, hooks, parts)

    def shares_with(self, pid: int) -> set[int]:
        """Return which processes have the probes on their waits together with *pid*, itself too."""
        return self._shared.sharing(pid)

    def put_own(self, pid: int, hooks: Sequence[Hook]) -> None:
        """Put *hooks* into *pid* alone, where it has shared them so far; raises as attach does."""
        self._put_in(pid, hooks, self._slot_of[pid])

    def drop_own(self, pids: Iterable[int]) -> None:
        """Begin to take out again what `put_own` has put into *pids*, who still share theirs."""
        for pid in pids:
            self.await_closing(pid, self._uprobes.close(self._hooks.pop(pid, ())))

    def split(self, pid: int) -> list[Future[None]]:
        """Begin to take out the probes that *pid* shares with others, who have their own by now.

        What is attached later does not share them either. Return what says when they are out.
        """
        return self._shared.split(pid)

    def add_other_lock(self, pid: int, cond: int, window: Window) -> None:
        """Let *window* count the lock of a further interpreter; raises KernelOrBccMissing."""
        if len(self._other_slots[pid]) >= _MOST_OTHER_LOCKS:
            raise KernelOrBccMissing(
                f"process {pid} has more interpreters than one process may have places for: "
                f"{_MOST_OTHER_LOCKS + 1}"
            )
        slot = self._take_slot(pid, cond, released_ns=time.monotonic_ns())
        self._other_slots[pid].append(slot)
        self._table("other_locks").put({"cond": cond, "tgid": pid}, {"value": slot})
        window.add_lock(cond, slot)

    def add_gil(self, pid: int, cond: int) -> None:
        """Libc method: count waits on the lock at *cond* of *pid*."""
        self._table("gils").put({"cond": cond, "tgid": pid}, {})

    def read_stacks_of(self, pid: int, share: float) -> None:
        """Read the stacks of so large a *share* of the waits of *pid*, which is attached."""
        drawn = min(_LOTS, max(1, round(share * _LOTS)))
        self._table("stack_shares").put({"value": self._slot_of[pid]}, {"value": drawn - 1})

    def read_contexts_of(self, pid: int, place: Record) -> None:
        """Let the waits of *pid* be told by trace: its threads publish that at *place*.

        Called again where what is known of it has changed.
        """
        self._table("contexts").put({"value": pid}, place)

    def detach(self, pid: int) -> None:
        """Take the probes out of *pid*; what was counted stays readable until it is forgotten."""
        self.before_detach(pid)
        super().detach(pid)

    def forget(self, pid: int) -> None:
        """Remove whatever the maps hold of *pid*."""
        if pid not in self._slot_of:
            return
        for field in ("traps", "walking_ns", "seen_wait_ns", "ended_waits"):
            self._entries.pop((pid, field), None)
        for key in [key for key in list(self._waiting) if key[0] == pid]:
            self._waiting.pop(key, None)
        self._quotas.forget(pid)
        self._switch_conds.pop(pid, None)
        self._slots.give_back(self._slot_of.pop(pid))
        for slot in self._other_slots.pop(pid, ()):
            self._slots.give_back(slot)
        super().forget(pid)

    def forget_thread_of(self, pid: int, tid: int) -> None:
        """Remove the record of a dead thread of *pid* that has been counted."""
        if self.forget_thread(tid):
            self._quotas.give_back(pid, Quota.THREADS, 1)

    def notices(self) -> Iterator[Notice]:
        """Take and yield what the probes have noticed since the last call."""
        return take_notices(self.notice_ring)

    def forget_spans(self) -> None:
        """Give up what was sent so far, and let as many be sent in this second as in others."""
        for _ in self.spans():
            pass
        if self.spans_a_second is not None:
            self._table("span_budget").put({"value": 0}, {"second": 0, "asked": 0})

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

    def stop(self) -> None:
        """Let the probes count nothing any more, of any process, before they are taken out."""
        self._counts.stop()

    def read(self, windows: Mapping[int, Window]) -> RawTotals:
        """Return what the maps hold of all processes now; *windows* are by pid."""
        return self._counts.read(windows)

    @property
    def table_fill(self) -> Mapping[str, int]:
        """How many entries the tables held when they were last read; not all of them are."""
        slots = len(self._slot_of)
        others = sum(map(len, list(self._other_slots.values())))
        return {
            **self._counts.fill,
            "targets": slots,
            "windows": slots,
            "locks": slots + others,
            "other_locks": others,
        }

    def traps(self, pid: int) -> int:
        """Return how often *pid* has run into a probe on the contended path so far."""
        return self._of_target(pid, "traps")

    def walking_ns(self, pid: int) -> int:
        """Return the time for which these probes have read stacks in *pid* so far."""
        return self._of_target(pid, "walking_ns")

    def waiting(self, pid: int, cond: int) -> int:
        """Return how many threads of *pid* wait for the lock at *cond*, whose waits count.

        One thread may ask for it.
        """
        entry = self._waiting.get((pid, cond))
        if entry is None:
            key = {"cond": cond, "tgid": pid}
            entry = self._waiting[pid, cond] = self._table("gils").entry(key, "waiting")
        return entry.read() or 0

    def seen_wait_ns(self, pid: int) -> int:
        """Return how long the waits of *pid* have lasted that have ended, and were counted."""
        return self._of_target(pid, "seen_wait_ns")

    def ended_waits(self, pid: int) -> int:
        """Return how many waits of *pid* have ended, whether they were counted or not."""
        return self._of_target(pid, "ended_waits")

    def _of_target(self, pid: int, field: str) -> int:
        if (pid, field) not in self._entries:
            self._entries[pid, field] = self._table("targets").entry({"value": pid}, field)
        return self._entries[pid, field].read() or 0

    def _file_id(self, build_id: str, callers: tuple[CallerRule, ...]) -> int:
        # Of one build, a process with a shadow stack, or one whose file could not be searched in
        # time, has no rules, and another has.
        if (build_id, callers) not in self._files:
            file_id = len(self._files) + 1
            for rule in callers:
                self._table("callers").put(
                    {"pc": rule.pc, "file_id": file_id},
                    {
                        "cfa_offset": rule.cfa_offset,
                        "saved_fp_offset": rule.saved_frame_pointer_offset or 0,
                        "return_at": rule.return_address_offset,
                        "cfa_from_fp": int(rule.cfa_from_frame_pointer),
                        "made_to_yield": int(rule.made_to_yield),
                    },
                )
            self._files[build_id, callers] = file_id
        return self._files[build_id, callers]

    def _load_for(self, plan: Plan) -> None:
        """Load what few processes need, before anything is counted; raises as attach does."""
        for hook in plan.hooks:
            self._loaded.programs[hook.program]  # to ask for it is to load it
        if "pypys" in plan.records and not self._is_ready_for_turns:
            self._put_next(NEXT_OF_TURNS)
            self._is_ready_for_turns = True

    def _put_next(self, programs: Iterable[NextProgram]) -> None:
        """Let programs jump to these, before any that does is attached."""
        for each in programs:
            fd = self._loaded.programs[each.name.lower()]
            self._table("next_program").put({"value": each.value}, {"value": fd})

    def _take_slot(self, pid: int, cond: int, released_ns: int = 0) -> int:
        slot = self._slots.take()
        if slot is None:
            raise KernelOrBccMissing(
                f"process {pid} is one too many: there is room for {self._table('locks').entries} "
                "interpreters at a time"
            )
        # Whoever had it before may have left something.
        self._table("windows").put({"value": slot}, {})
        put_always(self._table("wait_windows"), slot)
        lock = {
            "cond": cond,
            "tgid": pid,
            "released_ns": released_ns,
            "switch_cond_at": self._switch_conds[pid],
        }
        self._table("locks").put({"value": slot}, lock)
        return slot
