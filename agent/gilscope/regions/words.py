"""Numbers in memory that processes map for reading: whether their places are still written.

One is for all of them: the word of a robust mutex, which the kernel itself changes when the agent
dies in whatever way, and before it takes the agent's probes out. So who still reads the number of
the agent's thread there knows that nothing was missed so far. The others are for one process each.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import threading
from types import TracebackType
from typing import Self

from gilscope.errors import KernelOrBccMissing

__all__ = ["Words"]

_ROOM_OF_MUTEX = 64
_ROOM_OF_ATTRIBUTES = 64
"""More than any C library takes for them."""
_SHARED, _ROBUST = 1, 1
"""PTHREAD_PROCESS_SHARED and PTHREAD_MUTEX_ROBUST of <pthread.h>."""
_SEALS = 0x1 | 0x2 | 0x4 | 0x10
"""F_SEAL_SEAL, _SHRINK, _GROW, and _FUTURE_WRITE, which leaves the mapping that is there."""
_STATE = struct.Struct("=Q")

_libc = ctypes.CDLL(None)


class Words:
    """The memory. To be closed by the thread that has made it, which must live as long as it."""

    def __init__(self, count: int) -> None:
        """Make room for *count* processes; raises OSError or KernelOrBccMissing."""
        self.size = -(-(_ROOM_OF_MUTEX + count * _STATE.size) // mmap.PAGESIZE) * mmap.PAGESIZE
        """Bytes."""
        self._fd = os.memfd_create("gilscope-words", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self._fd, self.size)
            self._memory = mmap.mmap(self._fd, self.size)
            fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, _SEALS)
            self._mutex = (ctypes.c_char * _ROOM_OF_MUTEX).from_buffer(self._memory)
            self.agent = threading.get_native_id()
            """The number that says that the agent is alive."""
            self._lock()
        except BaseException:
            os.close(self._fd)
            raise
        self.agent_at = self._place_of_agent()
        """Where that number is, bytes."""
        self._given = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the descriptor, which can be mapped for reading and for nothing else."""
        return self._fd

    def place(self, number: int) -> int:
        """Return where the number of process *number*, from 0 on, is, bytes."""
        return _ROOM_OF_MUTEX + number * _STATE.size

    def begin(self, number: int) -> int:
        """Return what says, from now until `end`, that the places of process *number* are true."""
        self._given += 1
        _STATE.pack_into(self._memory, self.place(number), self._given)
        return self._given

    def end(self, number: int) -> None:
        """Let process *number* know that its places are not true any more."""
        _STATE.pack_into(self._memory, self.place(number), 0)

    def close(self) -> None:
        """Let all know that."""
        self._memory[_ROOM_OF_MUTEX:] = bytes(self.size - _ROOM_OF_MUTEX)
        # It must not lie in memory that is not there when its thread ends.
        _libc.pthread_mutex_unlock(self._mutex)
        del self._mutex
        self._memory.close()
        os.close(self._fd)

    def _lock(self) -> None:
        attributes = ctypes.create_string_buffer(_ROOM_OF_ATTRIBUTES)
        for number in (
            _libc.pthread_mutexattr_init(attributes),
            _libc.pthread_mutexattr_setpshared(attributes, _SHARED),
            _libc.pthread_mutexattr_setrobust(attributes, _ROBUST),
            _libc.pthread_mutex_init(self._mutex, attributes),
            _libc.pthread_mutex_lock(self._mutex),
        ):
            if number:
                raise OSError(number, os.strerror(number))

    def _place_of_agent(self) -> int:
        # The one that the kernel knows by is the first that holds the number of the thread, in
        # glibc and in musl.
        words = struct.unpack_from(f"={_ROOM_OF_MUTEX // 4}I", self._memory)
        if self.agent not in words:
            self.close()
            raise KernelOrBccMissing(
                "the C library's robust mutexes are not as gilscope knows them: "
                f"{os.strerror(errno.ENOTSUP)}",
                remedy="Run gilscope with glibc or musl, or without --regions.",
            )
        return 4 * words.index(self.agent)
