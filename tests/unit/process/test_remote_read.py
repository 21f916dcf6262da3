"""Tells a value from a torn read, and a torn read from a process that is gone."""

import errno
import re

import pytest

from gilscope.process.remote_read import (
    TornRead,
    read_bytes,
    read_int,
    read_pointer,
    retried,
    to_pointer,
)


class _Page:
    """Memory from address 4096 on, or none at all for a reason."""

    def __init__(self, content: bytes = b"", failure: int = errno.EIO) -> None:
        self._content = content
        self._failure = failure

    def read(self, address: int, size: int) -> bytes:
        content = self._content[address - 4096 :][:size]
        if address < 4096 or len(content) < size:
            raise OSError(self._failure, "no")
        return content


@pytest.mark.parametrize("failure", [errno.EIO, errno.EFAULT])
def test_unmapped_memory_is_a_torn_read(failure: int) -> None:
    """A bad address comes from a pointer that was changing: the kernel's two words for it agree."""
    with pytest.raises(TornRead, match="no 8 bytes at 0x10"):
        read_bytes(_Page(failure=failure), 16, 8)


def test_a_process_that_has_gone_is_no_torn_read() -> None:
    """Another try cannot succeed there, so the error passes as it is."""
    with pytest.raises(OSError, match="no") as caught:
        read_bytes(_Page(failure=errno.ESRCH), 4096, 8)
    assert errno.ESRCH == caught.value.errno


def test_integers_are_signed_and_little_endian() -> None:
    """The width is the caller's, the sign the machine's."""
    memory = _Page(b"\xfe\xff\xff\xff\x01\x00\x00\x00")
    assert (-2, 0x1_FFFF_FFFE) == (read_int(memory, 4096, 4), read_int(memory, 4096, 8))


def test_pointers() -> None:
    """NULL and aligned addresses are pointers."""
    memory = _Page(bytes(8) + (0x7F00_0000_0010).to_bytes(8, "little"))
    assert 0 == read_pointer(memory, 4096)
    assert 0x7F00_0000_0010 == read_pointer(memory, 4104)


@pytest.mark.parametrize("value", [8, 4088, 0x7F00_0000_0001, 1 << 63])
def test_what_cannot_be_a_pointer_is_a_torn_read(value: int) -> None:
    """The first page, odd addresses and kernel addresses never hold a Python structure."""
    with pytest.raises(TornRead, match=re.escape(f"{value:#x} is not the address")):
        to_pointer(b"\xff" * 8 + value.to_bytes(8, "little"), 8)


def test_a_torn_read_is_tried_again() -> None:
    """Two torn reads are written off, the third answer counts."""
    tries = []

    def read() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise TornRead
        return 7

    assert retried(read) == 7


def test_a_lasting_torn_read_is_handed_on() -> None:
    """After three tries the caller learns that it failed."""
    tries = []

    def read() -> None:
        tries.append(1)
        raise TornRead(len(tries))

    with pytest.raises(TornRead, match="3"):
        retried(read)
