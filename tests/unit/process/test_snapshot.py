"""Memory that is read a page at a time."""

import pytest

from gilscope.process.snapshot import Snapshot

_PAGE = 4096


class _Changing:
    """Memory of two pages, of which each read finds other bytes; behind them there is none."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def read(self, address: int, size: int) -> bytes:
        """Return bytes that say which read they are of."""
        if address >= 2 * _PAGE:
            raise OSError("nothing is mapped there")
        self.asked.append((address, size))
        return bytes([len(self.asked)]) * size


def test_a_page_is_of_one_instant() -> None:
    """
    Whatever is asked for in it, in whatever order; across pages both are read.
    """
    memory = _Changing()
    snapshot = Snapshot(memory)

    assert b"\1\1" == snapshot.read(10, 2)
    assert b"\1\1\2\2" == snapshot.read(_PAGE - 2, 4)
    assert b"\2" == snapshot.read(2 * _PAGE - 1, 1)
    assert [(0, _PAGE), (_PAGE, _PAGE)] == memory.asked


def test_a_page_that_is_not_there_is_an_error() -> None:
    """
    Also where only the last byte is in it.
    """
    with pytest.raises(OSError, match="nothing is mapped"):
        Snapshot(_Changing()).read(2 * _PAGE - 4, 5)
