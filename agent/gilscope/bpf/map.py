"""BPF maps as Python sees them: records with the fields that the C declares."""

import errno
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gilscope.bpf import syscalls
from gilscope.bpf.info import map_statistics
from gilscope.bpf.map_entry import Change, Entry
from gilscope.values import Record, dataclass

__all__ = ["RecordLayout", "Table"]

_BYTE, _TEXT = "B", "s"
_BATCH_BYTES = 1 << 18
"""Of values: each thread that reads a table keeps as much memory."""
_LEAST_BATCH, _LARGEST_BATCH = 64, 1024
"""Entries. The least is more than one hash bucket holds."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    is_array: bool
    offset: int
    code: str
    first: int
    """Place of its first element among all elements of the record."""
    count: int
    default: int | bytes | tuple[int, ...] = 0
    zeros: bytes = b""
    """What an array is that has no other number."""


class RecordLayout:
    """The C layout of a key or a value, as the compiler of the probe stated it."""

    def __init__(self, size: int, fields: Iterable[tuple[str, int, str, int]]) -> None:
        """Each field is its name, offset, struct code, and element count (0: not an array).

        An array of bytes is one value of type bytes: a text, as a rule.
        """
        self.size = size
        self._fields: list[_Field] = []
        form, position, elements = "=", 0, 0
        for name, offset, code, count in fields:
            is_text = code == _BYTE and count > 0
            form += f"{offset - position}x{count or 1}{_TEXT if is_text else code}"
            position = offset + (count or 1) * struct.calcsize(f"={code}")
            is_array, elements_here = count > 0 and not is_text, 1 if is_text else count or 1
            default = b"" if is_text else (0,) * count if is_array else 0
            zeros = bytes(position - offset) if is_array else b""
            self._fields.append(
                _Field(name, is_array, offset, code, elements, elements_here, default, zeros)
            )
            elements += elements_here
        self._struct = struct.Struct(f"{form}{size - position}x")
        self._names = [field.name for field in self._fields]
        self._has_arrays = any(field.is_array for field in self._fields)

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> "RecordLayout":
        """Return the layout that the loader's answer describes."""
        fields = tuple(
            (field["name"], field["offset"], field["code"], field["count"])
            for field in description["fields"]
        )
        return cls(description["size"], fields)

    def unpack(self, raw: bytes) -> dict[str, Any]:
        """Return the fields of *raw*, which is ``size`` bytes long.

        Arrays of nothing but 0, as most histograms are, are one object.
        """
        elements = self._struct.unpack(raw)
        if not self._has_arrays:
            # As most are, and those of rings that come by the hundred.
            return dict(zip(self._names, elements, strict=True))
        return {
            field.name: elements[field.first]
            if not field.is_array
            else field.default
            if raw.startswith(field.zeros, field.offset)
            else elements[field.first : field.first + field.count]
            for field in self._fields
        }

    def place(self, name: str) -> tuple[int, str]:
        """Return the offset and the struct code of field *name*; raises KeyError."""
        for field in self._fields:
            if field.name == name:
                return field.offset, field.code
        raise KeyError(name)

    def pack(self, record: Record) -> bytes:
        """Return the bytes of *record*; fields that it lacks are 0."""
        elements: list[int | bytes] = []
        for field in self._fields:
            value = record.get(field.name, field.default)
            elements += value if field.is_array else (value,)
        return self._struct.pack(*elements)


class Table:
    """A hash or array map in the kernel, keyed by records. Owns its descriptor."""

    def __init__(self, name: str, fd: int, key: RecordLayout, value: RecordLayout) -> None:
        self.name = name
        self._fd = fd
        self._key = key
        self._value = value
        self._has_batch = True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    @property
    def entries(self) -> int:
        """How many entries it has room for."""
        return map_statistics(self._fd).max_entries

    @property
    def value_size(self) -> int:
        """How many bytes a value has."""
        return self._value.size

    def offset_of(self, name: str) -> int:
        """Return where field *name* is in a value, bytes; raises KeyError."""
        return self._value.place(name)[0]

    def close(self) -> None:
        """Give up the descriptor."""
        os.close(self._fd)

    def get(self, key: Record) -> dict[str, Any] | None:
        """Return the value under *key*, or None; raises OSError."""
        raw = syscalls.map_lookup(self._fd, self._key.pack(key), self._value.size)
        return None if raw is None else self._value.unpack(raw)

    def entry(self, key: Record, name: str) -> Entry:
        """Return what reads field *name*, which is no array, of the value under *key*."""
        return Entry(self._fd, self._key.pack(key), self._value.size, *self._value.place(name))

    def put(self, key: Record, value: Record) -> None:
        """Store *value* under *key*; raises OSError, E2BIG where the map is full."""
        syscalls.map_update(self._fd, self._key.pack(key), self._value.pack(value))

    def replace(self, key: Record, value: Record) -> bool:
        """Store *value* under *key* if there is such an entry, and return whether; raises OSError.

        What a probe has removed does not come back by that.
        """
        try:
            syscalls.map_update(
                self._fd, self._key.pack(key), self._value.pack(value), must_exist=True
            )
        except FileNotFoundError:
            return False
        return True

    def change(self, key: Record, value: Record, name: str) -> Change:
        """Return what stores *value* under *key* once field *name*, which is no array, is known."""
        packed = self._value.pack(value)
        return Change(self._fd, self._key.pack(key), packed, *self._value.place(name))

    def delete(self, key: Record) -> bool:
        """Remove *key* and return whether it was there."""
        return syscalls.map_delete(self._fd, self._key.pack(key))

    def delete_where(self, name: str, value: int, *, in_value: bool = False) -> list[bytes]:
        """Remove what has *value* in field *name*, which is no array, of its key or of its value.

        Returns the keys. Records are not unpacked: of thousands that takes milliseconds.
        """
        offset, code = (self._value if in_value else self._key).place(name)
        wanted = struct.pack(f"={code}", value)
        end = offset + len(wanted)
        found = [pair[0] for pair in self._raw_items() if pair[in_value][offset:end] == wanted]
        for key in found:
            syscalls.map_delete(self._fd, key)
        return found

    def delete_raw(self, key: bytes) -> bool:
        """Remove *key*, as another table of the same kind of key has it."""
        return syscalls.map_delete(self._fd, key)

    def items(
        self, wants: Callable[[Record], bool] = lambda _: True
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield every key that it *wants* with its value.

        What changes meanwhile may be old or new.
        """
        for raw_key, value in self._raw_items():
            key = self._key.unpack(raw_key)
            if wants(key):
                yield key, self._value.unpack(value)

    def _raw_items(self) -> Iterator[tuple[bytes, bytes]]:
        if self._has_batch:
            try:
                yield from self._batches()
            except OSError as error:
                # Before Linux 5.6. Nothing has been yielded in that case.
                if error.errno != errno.EINVAL:
                    raise
                self._has_batch = False
            else:
                return
        yield from self._one_by_one()

    def _batches(self) -> Iterator[tuple[bytes, bytes]]:
        cursor: bytes | None = None
        key_size, value_size = self._key.size, self._value.size
        count = min(max(_BATCH_BYTES // value_size, _LEAST_BATCH), _LARGEST_BATCH)
        while True:
            keys, values, cursor = syscalls.map_lookup_batch(
                self._fd, key_size, value_size, cursor, count
            )
            for index in range(len(keys) // key_size):
                yield (
                    keys[index * key_size : (index + 1) * key_size],
                    values[index * value_size : (index + 1) * value_size],
                )
            if cursor is None:
                return

    def _one_by_one(self) -> Iterator[tuple[bytes, bytes]]:
        key = syscalls.map_next_key(self._fd, None, self._key.size)
        while key is not None:
            value = syscalls.map_lookup(self._fd, key, self._value.size)
            if value is not None:
                yield key, value
            key = syscalls.map_next_key(self._fd, key, self._key.size)
