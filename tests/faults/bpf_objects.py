"""The programs, maps and links that the kernel holds, and those that a process holds."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from gilscope.system.syscall import attempt

__all__ = ["BpfObject", "all_objects", "objects_of"]

BpfObject = tuple[str, int]
"""Its kind (``prog``, ``map`` or ``link``) and its id, which the kernel gives out once."""

_NEXT_ID = {"prog": 11, "map": 12, "link": 31}
"""The commands BPF_PROG_GET_NEXT_ID and so on."""
_ATTRIBUTES_BYTES = 128


def all_objects() -> set[BpfObject]:
    """Return what the kernel holds now, of whomever."""
    return {(kind, number) for kind in _NEXT_ID for number in _ids(kind)}


def objects_of(pid: int) -> set[BpfObject]:
    """Return what process *pid* has descriptors of; nothing where it has ended."""
    found: set[BpfObject] = set()
    try:
        infos = list(Path(f"/proc/{pid}/fdinfo").iterdir())
    except OSError:
        return found
    for info in infos:
        try:
            lines = info.read_text().splitlines()
        except OSError:
            continue
        found |= set(_named(lines))
    return found


def _named(lines: list[str]) -> Iterator[BpfObject]:
    values = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    # A link's entry names its program too.
    for kind in ("link", "map", "prog"):
        if f"{kind}_id" in values:
            yield kind, int(values[f"{kind}_id"])


def _ids(kind: str) -> Iterator[int]:
    number = 0
    while True:
        attributes = ctypes.create_string_buffer(struct.pack("=II", number, 0), _ATTRIBUTES_BYTES)
        error = -attempt("bpf", _NEXT_ID[kind], attributes, _ATTRIBUTES_BYTES)
        if error == errno.ENOENT:
            return
        if error:
            raise OSError(error, f"cannot list BPF {kind}s: {os.strerror(error)}")
        _, number = struct.unpack_from("=II", attributes)
        yield number
