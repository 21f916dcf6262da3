"""A table as the probes share it with user space, in memory."""

from collections.abc import Callable, Iterator
from typing import Any

from gilscope.values import Record

__all__ = ["MemoryTable"]


class MemoryTable:
    """A hash table whose entries are found in the order in which they came."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries = 256
        self.records: dict[tuple[tuple[str, int], ...], dict[str, Any]] = {}
        self.when_read: Callable[[], None] = lambda: None
        """What a thread of the process does while the table is read."""

    def put(self, key: Record, value: Record) -> None:
        """Let *key* have *value*."""
        self.records[tuple(key.items())] = dict(value)

    def get(self, key: Record) -> dict[str, Any] | None:
        """Return a copy of what *key* has, or None."""
        record = self.records.get(tuple(key.items()))
        return None if record is None else dict(record)

    def delete(self, key: Record) -> bool:
        """Take *key* away; return whether it was there."""
        return self.records.pop(tuple(key.items()), None) is not None

    def items(self) -> Iterator[tuple[dict[str, int], dict[str, Any]]]:
        """Yield copies of all entries, as they were before `when_read`."""
        found = [(dict(key), dict(record)) for key, record in self.records.items()]
        self.when_read()
        yield from found
