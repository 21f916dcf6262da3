"""Writes STM logs as PyPy-STM did, record by record, for tests that know what is in them."""

import struct
from typing import Self

__all__ = ["EVENTS", "HEADS", "MAGIC", "MS", "US", "LogWriter", "S", "marker"]

US, MS, S = 1_000, 1_000_000, 1_000_000_000

MAGIC = {
    "L7a": b"STMGC-C7-PROF01\n",
    "L7": b"STMGC-C7-PROF01\n",
    "L8": b"STMGC-C8-PROF01\n",
}
HEADS = {"L7a": 15, "L7": 19, "L8": 14}

_ENDS = ("START", "COMMIT", "ABORT")
_GC = ("GC_MINOR_START", "GC_MINOR_DONE", "GC_MAJOR_START", "GC_MAJOR_DONE")
_E16 = (
    *_ENDS,
    "DETACH",
    "REATTACH",
    "INEVITABLE",
    "WRITE_READ",
    "WAIT_FREE_SEGMENT",
    "WAIT_SYNCING",
    "WAIT_SYNC_PAUSE",
    "WAIT_OTHER_INEVITABLE",
    "WAIT_DONE",
    *_GC,
)
_DURATIONS = (
    "START_TRX",
    "WRITE_GC_ONLY",
    "WRITE_SLOWPATH",
    "VALIDATION",
    "CREATE_CLE",
    "COMMIT_EXCEPT_GC",
    "MINOR_GC",
    "MAJOR_GC_LOG_ONLY",
    "MAJOR_GC_FULL",
    "MODE_ON",
    "MODE_OFF",
    "MODE_ADAPTIVE",
)

EVENTS: dict[str, tuple[str, ...]] = {
    "C7": (
        *_ENDS,
        "WRITE_WRITE",
        "WRITE_READ",
        "CONTENTION_INEVITABLE",
        "ABORTING_OTHER",
        "WAIT_FREE_SEGMENT",
        "WAIT_SYNC_PAUSE",
        "WAIT_CONTENTION",
        "WAIT_DONE",
        *_GC,
    ),
    "A11": (
        *_ENDS,
        "WRITE_READ",
        "WAIT_FREE_SEGMENT",
        "WAIT_OTHER_INEVITABLE",
        "WAIT_DONE",
        *_GC,
    ),
    "B12": (
        *_ENDS,
        "WRITE_READ",
        "WAIT_FREE_SEGMENT",
        "WAIT_SYNC_PAUSE",
        "WAIT_OTHER_INEVITABLE",
        "WAIT_DONE",
        *_GC,
    ),
    "C13": (
        *_ENDS,
        "WRITE_READ",
        "INEVITABLE",
        "WAIT_FREE_SEGMENT",
        "WAIT_SYNC_PAUSE",
        "WAIT_OTHER_INEVITABLE",
        "WAIT_DONE",
        *_GC,
    ),
    "D14": (
        *_ENDS,
        "INEVITABLE",
        "WRITE_READ",
        "WAIT_FREE_SEGMENT",
        "WAIT_SYNCING",
        "WAIT_SYNC_PAUSE",
        "WAIT_OTHER_INEVITABLE",
        "WAIT_DONE",
        *_GC,
    ),
    "E16": _E16,
    "X28": (*_E16, *_DURATIONS),
    "X29": (*_E16, "WARMUP", *_DURATIONS),
}
"""Names by number, shortened."""


def marker(line: int, function: str = "f", file: str = "app.py", offset: int | None = None) -> str:
    """Return a position as PyPy writes it."""
    suffix = "" if offset is None else f" (#{offset})"
    return f'File "{file}", line {line}, in {function}{suffix}'


class LogWriter:
    """A log that grows record by record. Times are from its beginning on."""

    def __init__(self, layout: str = "L8", table: str = "", begin_ns: int = 5000 * S) -> None:
        self.layout = layout
        self._numbers = {
            name: number
            for number, name in enumerate(EVENTS[table or ("E16" if layout == "L8" else "C7")])
        }
        self._begin_ns = begin_ns
        self._content = bytearray(MAGIC[layout])

    def add(  # noqa: PLR0913, PLR0917 - the fields of a record
        self,
        time_ns: int,
        thread: int,
        event: str | int,
        first: str | bytes = "",
        second: str | bytes = "",
        other: int = 0,
    ) -> Self:
        """Add a record; *event* is a name or a number."""
        seconds, nanoseconds = divmod(self._begin_ns + time_ns, S)
        number = event if isinstance(event, int) else self._numbers[event]
        texts = [text.encode() if isinstance(text, str) else text for text in (first, second)]
        lengths = [len(text) for text in texts]
        if self.layout == "L8":
            assert not texts[1]
            head = struct.pack("<IIIBB", seconds, nanoseconds, thread, number, lengths[0])
        elif self.layout == "L7":
            head = struct.pack("<IIIIBBB", seconds, nanoseconds, thread, other, number, *lengths)
        else:
            head = struct.pack("<IIIBBB", seconds, nanoseconds, thread, number, *lengths)
        self._content += head + b"".join(texts)
        return self

    def raw(self, content: bytes) -> Self:
        """Add bytes that are no record."""
        self._content += content
        return self

    @property
    def content(self) -> bytes:
        """The log so far."""
        return bytes(self._content)

    @property
    def size(self) -> int:
        """Bytes of the log so far."""
        return len(self._content)
