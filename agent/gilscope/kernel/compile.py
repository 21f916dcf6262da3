"""Compiles and loads BPF programs with BCC, passes their descriptors on, and exits.

Run as a script, in a process of its own: the one module that imports BCC, whose compiler takes a
hundred megabytes that a serving agent must not keep. It may be run by another Python than the
agent's (the distribution's, which has BCC), so it imports nothing of gilscope.

A request is one JSON object on standard input: ``text``, ``cflags``, ``programs`` (name to
``uprobe``, ``uprobe_multi`` or ``raw_tracepoint``), ``tables`` and ``rings`` (names). The answer is
one message on the socket whose number is the only argument: ``{"programs": [name…], "tables":
[{…}…]}`` with their descriptors in that order and the rings' behind them, or ``{"error": kind,
"message": …}``.
"""

import ctypes
import json
import socket
import sys
from typing import Any

__all__ = ["main"]

_BPF_TRACE_UPROBE_MULTI = 48

_CODES = {
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
        return {"error": "no-bcc", "message": str(error)}, []
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
    # The module must outlive the sending of its descriptors.
    request["module"] = module
    answer = {"programs": list(request["programs"]), "tables": tables, "bcc": bcc.__version__}
    return answer, descriptors


def main() -> int:
    """Serve the one request and return the exit code."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    request = json.load(sys.stdin)
    answer, descriptors = _load(request)
    socket.send_fds(channel, [json.dumps(answer).encode()], descriptors)
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
