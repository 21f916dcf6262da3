"""A file whose pages never come: a file system in user space (FUSE) that does not answer reads."""

import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FILE", "hanging_file"]

FILE = "hangs"
_SIZE = 1 << 20
_ROOT_NODE, _FILE_NODE = 1, 2
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _RELEASE, _FLUSH, _INIT = 1, 2, 3, 14, 15, 18, 25, 26
_ENOENT, _ENOSYS = -2, -38
_HEADER = struct.Struct("<IIQQIIII")
_ANSWER = struct.Struct("<IiQ")
_VERSION, _READ_AHEAD, _LARGEST_WRITE = (7, 31), 4096, 4096
_NO_END_S = 3600
_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def hanging_file(folder: Path) -> Iterator[None]:
    """Mount the file system, with `FILE` in it, on *folder*. In the end every read of it fails."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if _libc.mount(b"hanging", os.fsencode(folder), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), "cannot mount")
    server = threading.Thread(target=_serve, args=(device,), daemon=True)
    server.start()
    try:
        yield
    finally:
        _abort(folder)
        _libc.umount2(os.fsencode(folder), _DETACH)
        server.join()
        os.close(device)


def _abort(folder: Path) -> None:
    """Let all that waits for an answer fail."""
    number = os.minor(folder.stat().st_dev)
    control = Path("/sys/fs/fuse/connections")
    if not (control / str(number)).exists():
        _libc.mount(b"fusectl", os.fsencode(control), b"fusectl", 0, None)
    (control / str(number) / "abort").write_text("1")


def _serve(device: int) -> None:
    while True:
        try:
            request = os.read(device, 1 << 16)
        except OSError:
            return  # it is not mounted any more
        _, operation, unique, node, *_ = _HEADER.unpack_from(request)
        if operation in (_READ, _FORGET):
            continue
        error, content = _answer(operation, node, request[_HEADER.size :])
        header = _ANSWER.pack(_ANSWER.size + len(content), error, unique)
        os.write(device, header + content)


def _answer(operation: int, node: int, argument: bytes) -> tuple[int, bytes]:
    if operation == _INIT:
        more = struct.pack("<HHIIHH8I", 12, 9, _LARGEST_WRITE, 1, 1, 0, *[0] * 8)
        return 0, struct.pack("<IIII", *_VERSION, _READ_AHEAD, 0) + more
    if operation == _LOOKUP:
        if argument.rstrip(b"\0") != FILE.encode():
            return _ENOENT, b""
        valid = struct.pack("<QQQQII", _FILE_NODE, 1, _NO_END_S, _NO_END_S, 0, 0)
        return 0, valid + _attributes(_FILE_NODE)
    if operation == _GETATTR:
        return 0, struct.pack("<QII", _NO_END_S, 0, 0) + _attributes(node)
    if operation == _OPEN:
        return 0, struct.pack("<QII", 1, 0, 0)
    return (0 if operation in (_RELEASE, _FLUSH) else _ENOSYS), b""


def _attributes(node: int) -> bytes:
    is_root = node == _ROOT_NODE
    mode, size = (0o40755, 0) if is_root else (0o100755, _SIZE)
    times = (0,) * 6
    return struct.pack(
        "<QQQQQQIIIIIIIIII", node, size, size // 512, *times, mode, 1, 0, 0, 0, 4096, 0
    )
