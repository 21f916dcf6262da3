"""Standard error of a service: never waited for, and what it does not take is counted."""

import fcntl
import os
from pathlib import Path

from gilscope.system.log_output import LogOutput

_LINE = b"x" * 99 + b"\n"


def test_lines_come_in_their_order() -> None:
    """
    Whoever reads gets all of them.
    """
    reader, writer = os.pipe()
    output = LogOutput(writer)
    for word in (b"one\n", b"two\n"):
        output.write(word)
    output.finish(30)

    assert (b"one\ntwo\n", 0) == (os.read(reader, 100), output.lost_lines)
    os.close(reader)


def test_pipe_that_nobody_reads_holds_up_nobody() -> None:
    """
    What the pipe and the bound do not hold is counted line by line, and the rest comes later.
    """
    reader, writer = os.pipe()
    room = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    output = LogOutput(writer, most_bytes=10_000)
    for _ in range(1000):
        output.write(_LINE)
    lost = output.lost_lines
    assert 1000 - (10_000 + room) // 100 - 1 <= lost < 1000

    received = bytearray()
    while len(received) < (1000 - lost) * len(_LINE):
        received += os.read(reader, 65536)

    assert _LINE * (1000 - lost) == received
    assert lost == output.lost_lines
    os.close(reader)


def test_full_disk_and_a_reader_that_has_gone_are_losses() -> None:
    """
    Each line counts, and writing goes on.
    """
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("wb") as full:
        for descriptor in (writer, full.fileno()):
            output = LogOutput(descriptor)
            output.write(b"one\ntwo\n")
            output.finish(30)

            assert 2 == output.lost_lines
    os.close(writer)
