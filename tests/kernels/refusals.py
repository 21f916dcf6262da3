"""Why a kernel does not take a program: its verifier's last words, which gilscope itself leaves."""

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from gilscope.bpf import object_loader, syscalls
from gilscope.bpf.commands import Command

__all__ = ["explained"]

_LOG_BYTES = 16 << 20
_INSTRUCTION_BYTES = 8
_LAST_LINES = 60


@contextmanager
def explained() -> Iterator[dict[str, str]]:
    """Yield the verifier's last lines by program, of those that are refused in the block."""
    refused: dict[str, str] = {}

    def load(name: str, kind: int, attach_type: int, instructions: bytes, licence: str) -> int:
        try:
            return syscalls.load_program(name, kind, attach_type, instructions, licence)
        except OSError:
            refused[name] = _log(name, kind, attach_type, instructions, licence)
            raise

    class _Explaining:
        create_map = staticmethod(syscalls.create_map)
        load_program = staticmethod(load)

    before = vars(object_loader)["syscalls"]
    vars(object_loader)["syscalls"] = _Explaining
    try:
        yield refused
    finally:
        vars(object_loader)["syscalls"] = before


def _log(name: str, kind: int, attach_type: int, instructions: bytes, licence: str) -> str:
    held_instructions = ctypes.create_string_buffer(instructions, len(instructions))
    held_licence = ctypes.create_string_buffer(licence.encode())
    log = ctypes.create_string_buffer(_LOG_BYTES)
    # As in `syscalls.load_program`, with a log.
    attributes = struct.pack(
        "=IIQQIIQII16sII",
        kind,
        len(instructions) // _INSTRUCTION_BYTES,
        ctypes.addressof(held_instructions),
        ctypes.addressof(held_licence),
        1,
        _LOG_BYTES,
        ctypes.addressof(log),
        0,
        0,
        name.encode()[:15],
        0,
        attach_type,
    )
    try:
        syscalls._bpf(Command.PROG_LOAD, attributes)  # noqa: SLF001 - nobody else wants a log
    except OSError as error:
        lines = log.value.decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
        return "\n".join([*lines, str(error)])
    return "the second time it was taken"
