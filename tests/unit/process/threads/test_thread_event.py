"""The records of a perf event, of which only samples are of interest."""

import struct

from gilscope.process.threads.thread_event import records

_SAMPLE, _LOST = 9, 2


def _record(kind: int, *words: int) -> bytes:
    return struct.pack(f"=IHH{len(words)}Q", kind, 0, 8 + 8 * len(words), *words)


def test_samples_are_taken_out_of_other_records() -> None:
    """
    In their order.
    """
    content = _record(_SAMPLE, 0x1000) + _record(_LOST, 1, 2) + _record(_SAMPLE, 0x2000, 3)

    assert [struct.pack("=Q", 0x1000), struct.pack("=QQ", 0x2000, 3)] == list(records(content))


def test_what_is_cut_off_ends_it() -> None:
    """
    The kernel may have been writing: a record that has no end is left out.
    """
    whole = _record(_SAMPLE, 0x1000)

    assert [whole[8:]] == list(records(whole + _record(_SAMPLE, 0x2000)[:-1]))
    assert [whole[8:]] == list(records(whole + bytes(8)))
