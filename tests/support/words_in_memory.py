"""Memory with known contents, at made-up addresses."""

import errno
import os

__all__ = ["Words"]


class Words:
    """Words of 8 bytes by address."""

    def __init__(self, words: dict[int, int]) -> None:
        self._words = words

    def read(self, address: int, size: int) -> bytes:
        """Return *size* bytes; raises OSError where there are none."""
        first = address - address % 8
        last = address + size
        try:
            content = b"".join(
                (self._words[at] & (1 << 64) - 1).to_bytes(8, "little")
                for at in range(first, last, 8)
            )
        except KeyError:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from None
        return content[address - first :][:size]
