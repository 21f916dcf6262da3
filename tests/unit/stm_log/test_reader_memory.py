"""What a log can take of the reader's memory, whatever is in it."""

import ctypes

from gilscope.stm_log.reader import LogReader
from support.stm_log.writer import LogWriter, S

_PARTS, _THREADS = 16, 8100
_MB = 1 << 20
_STEP = 1000
"""From one thread to the next: more at a time would be taken for damage."""


class _Allocations(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _allocated() -> int:
    """Return how many bytes are in use of what malloc has given to this process."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Allocations
    told = mallinfo2()
    return int(told.uordblks + told.hblkhd)


def _open_transactions(begin_ns: int) -> bytes:
    log = LogWriter(begin_ns=begin_ns)
    for number in range(_THREADS):
        # All over the numbers that there can be, and never ended.
        log.add(number, 1 + number * _STEP, "START")
        log.add(number, 1 + number * _STEP, "INEVITABLE")
    return log.content


def test_threads_of_a_part_are_forgotten_with_its_end() -> None:
    """
    Each part is a log of its own, with as many threads as there can be, but one comes at a time.
    """
    parts = [_open_transactions((9000 - 100 * part) * S) for part in range(_PARTS)]
    content = parts[0] + b"".join(part[16:] for part in parts[1:])
    before = _allocated()
    reader = LogReader("app.log")
    reader.feed(content)
    taken = _allocated() - before
    reader.finish()
    logs = reader.snapshot().logs

    assert [_THREADS] * _PARTS == [log.threads for log in logs]
    assert taken < 8 * _MB
