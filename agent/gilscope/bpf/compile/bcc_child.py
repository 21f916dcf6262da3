"""Compiles and loads BPF programs with BCC, passes their descriptors on, and exits.

Run as a script, in a process of its own: the one module that imports BCC, whose compiler takes a
hundred megabytes that a serving agent must not keep. It may be run by another Python than the
agent's (the distribution's, which has BCC), so it imports nothing of gilscope.

A request is one JSON object on standard input: ``text``, ``cflags``, ``programs`` (name to
``uprobe``, ``uprobe_multi`` or ``raw_tracepoint``; or to null: not to be loaded), ``tables`` and
``rings`` (names). The answer is one message on the socket whose number is the only argument:
``{"programs": [name…], "tables": [{…}…]}`` with their descriptors in that order (none for those
that are not loaded) and the rings' behind them, or ``{"error": kind, "message": …}``.

So that they can be loaded again without BCC, the answer says more under ``compiled``: the size of
each program in bytes, the licence, ``maps``: the numbers in this process of all maps, and
``map_of``: those of the tables and rings, by name. Behind the other descriptors are those of these
maps and of a file in memory that holds the instructions of one program after the other. The whole
is null where that is impossible.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from typing import Any

__all__ = ["main"]

_BPF_TRACE_UPROBE_MULTI = 48

# struct bpf_insn: operation, registers (source in the high half), offset, immediate. The address
# of a map is loaded by an instruction that has the map's descriptor in it.
_INSTRUCTION = "<BBhi"
_LOAD_64, _MAP = 0x18, 1

_CODES = {
    ctypes.c_ushort: "H",
    ctypes.c_byte: "b",
    ctypes.c_ubyte: "B",
    ctypes.c_int: "i",
    ctypes.c_uint: "I",
    ctypes.c_long: "q",
    ctypes.c_ulong: "Q",
    ctypes.c_longlong: "q",
    ctypes.c_ulonglong: "Q",
}


def _field(name: str, offset: int, kind: Any) -> dict[str, Any]:
    count = 0
    if issubclass(kind, ctypes.Array):
        kind, count = kind._type_, kind._length_
    if issubclass(kind, ctypes.Structure):
        # Of records inside of records, user space reads none.
        kind, count = ctypes.c_ubyte, max(1, count) * ctypes.sizeof(kind)
    return {"name": name, "offset": offset, "code": _CODES[kind], "count": count}


def _record(kind: Any) -> dict[str, Any]:
    if issubclass(kind, ctypes.Structure):
        fields = [_field(name, getattr(kind, name).offset, of) for name, of in kind._fields_]
    else:
        fields = [_field("value", 0, kind)]
    return {"size": ctypes.sizeof(kind), "fields": fields}


def _load(request: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    try:
        import bcc  # noqa: PLC0415 - whether that works is the question
    except (ImportError, OSError) as error:  # OSError: its own library is missing
        is_there = not isinstance(error, ModuleNotFoundError)
        return {"error": "no-bcc", "message": str(error), "is_there": is_there}, []
    if not hasattr(bcc, "BPF"):
        return {"error": "not-bcc", "message": bcc.__file__}, []
    kinds = {
        "uprobe": (bcc.BPF.KPROBE, {}),
        # BCC knows the argument since 0.25.
        "uprobe_multi": (bcc.BPF.KPROBE, {"attach_type": _BPF_TRACE_UPROBE_MULTI}),
        "raw_tracepoint": (bcc.BPF.RAW_TRACEPOINT, {}),
    }
    try:
        module = bcc.BPF(text=request["text"].encode(), cflags=request["cflags"])
    except Exception as error:  # noqa: BLE001 - BCC raises nothing more specific
        return {"error": "compile", "message": str(error), "errno": ctypes.get_errno()}, []
    descriptors = []
    for name, kind in request["programs"].items():
        if kind is None:
            continue
        try:
            program_type, options = kinds[kind]
            function = module.load_func(name, program_type, **options)
            descriptors.append(function.fd)
        except Exception as error:  # noqa: BLE001 - nor here
            refusal = {"error": "load", "message": f"{name}: {error}", "errno": ctypes.get_errno()}
            return refusal, []
    tables = []
    for name in request["tables"]:
        table = module[name]
        tables.append({"name": name, "key": _record(table.Key), "value": _record(table.Leaf)})
        descriptors.append(table.map_fd)
    descriptors += [module[name].map_fd for name in request["rings"]]
    compiled, more = _compiled(bcc, module, request)
    # The module must outlive the sending of its descriptors.
    request["module"] = module
    answer = {
        "programs": list(request["programs"]),
        "tables": tables,
        "bcc": bcc.__version__,
        "compiled": compiled,
    }
    return answer, descriptors + more


def _compiled(
    bcc: Any, module: Any, request: dict[str, Any]
) -> tuple[dict[str, Any] | None, list[int]]:
    """Return what is needed to load the programs again, with its descriptors."""
    try:
        instructions = [module.dump_func(name) for name in request["programs"]]
        licence = bcc.lib.bpf_module_license(module.module).decode()
        memory = os.memfd_create("instructions", os.MFD_CLOEXEC)
        with open(memory, "wb", closefd=False) as file:
            file.write(b"".join(instructions))
    except Exception:  # noqa: BLE001 - the programs are loaded, and this only saves time
        return None, []
    map_of = {name: module[name].map_fd for name in (*request["tables"], *request["rings"])}
    maps = sorted(set(map_of.values()).union(*map(_maps_in, instructions)))
    sizes = [len(code) for code in instructions]
    compiled = {"sizes": sizes, "licence": licence, "maps": maps, "map_of": map_of}
    return compiled, [*maps, memory]


def _maps_in(instructions: bytes) -> set[int]:
    # The second half of an instruction of double length is all zeros but for a number.
    return {
        number
        for operation, registers, _, number in struct.iter_unpack(_INSTRUCTION, instructions)
        if operation == _LOAD_64 and registers >> 4 == _MAP
    }


def _end_with(channel: socket.socket) -> None:
    """End this process when nobody waits for its answer any more."""

    def wait() -> None:
        poll = select.poll()
        poll.register(channel, 0)
        poll.poll()
        os._exit(1)

    # Without a thread it compiles to the end, for nobody.
    with contextlib.suppress(RuntimeError):
        threading.Thread(target=wait, daemon=True).start()


def main() -> int:
    """Serve the one request and return the exit code."""
    # The agent keeps them from its own threads.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    channel = socket.socket(fileno=int(sys.argv[1]))
    _end_with(channel)
    request = json.load(sys.stdin)
    try:
        answer, descriptors = _load(request)
    except MemoryError:
        answer, descriptors = {"error": "memory", "message": "memory is short"}, []
    socket.send_fds(channel, [json.dumps(answer).encode()], descriptors)
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
