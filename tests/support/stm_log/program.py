"""Plays a program under PyPy-STM and returns its log: threads, conflicts, waits, collections."""

from random import Random

from support.stm_log.writer import MS, US, LogWriter, marker

__all__ = ["played_log"]

_LINES = 12


def played_log(
    table: str, records: int, seed: int = 1, layout: str = "", threads: int = 4
) -> LogWriter:
    """Return a log of some more than *records* records that break no rule of their *table*."""
    random = Random(seed)  # noqa: S311 - has to be the same each time
    log = LogWriter(layout or ("L7" if table == "C7" else "L8"), table)
    play = _C7(log, random) if table == "C7" else _C8(log, random, table)
    while play.records < records:
        play.transaction(1 + random.randrange(threads))
    return log


class _Play:
    def __init__(self, log: LogWriter, random: Random) -> None:
        self.records = 0
        self.log = log
        self.random = random
        self.now_ns = 0

    def add(
        self, thread: int, event: str, first: str = "", second: str = "", other: int = 0
    ) -> None:
        self.now_ns += self.random.randrange(1, 40) * US
        self.records += 1
        self.log.add(self.now_ns, thread, event, first, second, other)

    def place(self) -> str:
        line = self.random.randrange(_LINES)
        return marker(line, f"function_{line % 3}", offset=3 * line)

    def collect(self, thread: int) -> None:
        kind = "MAJOR" if self.random.random() < 0.1 else "MINOR"
        self.add(thread, f"GC_{kind}_START")
        self.add(thread, f"GC_{kind}_DONE")


class _C7(_Play):
    def transaction(self, thread: int) -> None:
        """Write one transaction of *thread*, from its start to its end."""
        chance = self.random.random()
        self.add(thread, "START")
        self.now_ns += self.random.randrange(5) * MS
        if chance < 0.2:
            self.add(thread, "WRITE_WRITE", self.place(), self.place(), thread % 4 + 1)
            self.add(thread, "ABORT")
            return
        if chance < 0.4:
            self.add(thread, "CONTENTION_INEVITABLE", self.place(), self.place(), thread % 4 + 1)
            self.add(thread, "WAIT_CONTENTION")
            self.add(thread, "WAIT_DONE")
        elif chance < 0.5:
            self.add(thread, "WRITE_READ", self.place(), "", thread % 4 + 1)
            self.add(thread, "ABORTING_OTHER")
        self.collect(thread)
        self.add(thread, "COMMIT")


class _C8(_Play):
    def __init__(self, log: LogWriter, random: Random, table: str) -> None:
        super().__init__(log, random)
        self.table = table

    def transaction(self, thread: int) -> None:
        """Write one transaction of *thread*, from its start to its end."""
        chance = self.random.random()
        if chance < 0.05:
            self.add(thread, "WAIT_FREE_SEGMENT")
            self.add(thread, "WAIT_DONE")
        self.add(thread, "START")
        self.now_ns += self.random.randrange(5) * MS
        if chance < 0.3:
            self.add(thread, "WRITE_READ", self.place())
            self.add(thread, "ABORT")
            return
        if self.table not in {"A11", "B12"}:
            self.add(thread, "INEVITABLE", self.place())
        if chance < 0.5:
            self.add(thread, "WAIT_OTHER_INEVITABLE", self.place() if self.is_early else "")
            self.add(thread, "WAIT_DONE")
        if self.table in {"E16", "X28", "X29"}:
            self.add(thread, "DETACH")
            self.add(thread, "REATTACH")
        if self.table in {"X28", "X29"}:
            self.add(thread, "START_TRX", f"s0n{self.random.randrange(1000)}")
        self.collect(thread)
        self.add(thread, "COMMIT")

    @property
    def is_early(self) -> bool:
        """Whether a wait for an inevitable transaction says where."""
        return self.table in {"A11", "B12"}
