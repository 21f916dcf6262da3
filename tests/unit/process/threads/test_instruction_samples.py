"""The instructions in samples of a perf event."""

import struct

from gilscope.process.threads.instruction_samples import parse_samples


def test_each_sample_has_an_instruction() -> None:
    """
    In their order; what is cut off has none.
    """
    assert [0x1000, 0x2000] == list(
        parse_samples([struct.pack("=Q", 0x1000), struct.pack("=QQ", 0x2000, 1), b"\0\0"])
    )
