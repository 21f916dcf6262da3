"""A lock in the agent's own memory that looks like a GIL, with code that takes and drops it."""

import ctypes
import errno
import os
import struct
import time
from enum import Enum
from typing import Final, Self

from gilscope.arch.registry import architecture_named
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from gilscope.runtimes.sites import CallerRule

__all__ = ["DummyLock", "Exercise"]

# A page, so that whatever a probe may read near the lock, or of the thread state that last_holder
# names, is there and 0.
_MEMORY_SIZE: Final = 4096
_COND: Final = 512
_INTERVAL: Final = _COND + GLIBC_X86_64.interval
_LAST_HOLDER: Final = _COND + GLIBC_X86_64.last_holder
_THREAD_STATE: Final = 2048
_INTERVAL_US: Final = 5000

_PAGE: Final = 4096
_PROBED: Final = 0
_PLAIN: Final = _PAGE

# <linux/memfd.h>: nobody is going to execute the file as a program, and hosts may demand to be
# told so (vm.memfd_noexec). Mapping it as code is another matter. Since Linux 6.3.
_MFD_NOEXEC_SEAL: Final = 8

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_PROT_READ: Final = 1
_PROT_EXEC: Final = 4
_MAP_PRIVATE: Final = 2
_MAP_FAILED: Final = (1 << 64) - 1

# Whoever calls through this gives up the agent's own GIL meanwhile.
_LOOP: Final = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)


class Exercise(Enum):
    """What can be done with the lock."""

    HOLDS = "holds"
    """Taken and dropped, by calls that the kernel emulates under a probe."""
    STEPPED_HOLDS = "stepped holds"
    """Taken and dropped, by calls through a slot, which the kernel has to single-step."""
    WAITS = "waits"
    """Waited for until a signal comes, which it does at once."""


class DummyLock:
    """The lock, and its code twice: once to be probed, and once to be left alone.

    Both copies do the same on the same memory, so what a round of the first takes longer is what
    its probes cost. The code lies in a file in memory, for uprobes belong to files.
    """

    build_id: Final = "dummy"
    """In place of a file's, for the plan of the probes."""

    def __init__(self) -> None:
        """Map the code; raises OSError where there is none for this machine, or it is refused."""
        self._fd = -1
        self._code = 0
        self._memory = ctypes.create_string_buffer(_MEMORY_SIZE)
        address = ctypes.addressof(self._memory)
        struct.pack_into("<Q", self._memory, _INTERVAL, _INTERVAL_US)
        struct.pack_into("<Q", self._memory, _LAST_HOLDER, address + _THREAD_STATE)
        self.cond = address + _COND
        """Its address, which is the lock's identity."""
        machine = os.uname().machine
        architecture = architecture_named(machine)
        if architecture is None or struct.calcsize("P") != struct.calcsize("Q"):
            raise OSError(errno.ENOEXEC, f"there is no dummy code for {machine}")
        self._dummy = dummy = architecture.dummy
        self.callers = tuple(
            CallerRule(pc=pc, made_to_yield=False, cfa_offset=offset)
            for pc, offset in dummy.callers
        )
        """The steps from the wait to its cause, as many as in a real take."""
        self.acquire_offset = _PROBED + dummy.acquire
        """In the file, bytes; so are the others."""
        self.release_offset = _PROBED + dummy.release
        self.stepped_acquire_offset = _PROBED + dummy.stepped_acquire
        self.stepped_release_offset = _PROBED + dummy.stepped_release
        self.wait_offset = _PROBED + dummy.wait
        self.wait_return_offset = _PROBED + dummy.wait_return
        """The conditional jump behind it."""
        self._loops = {
            Exercise.HOLDS: dummy.holds,
            Exercise.STEPPED_HOLDS: dummy.stepped_holds,
            Exercise.WAITS: dummy.waits,
        }
        self._fd = _memory_file()
        try:
            self._map()
        except BaseException:
            self.close()
            raise

    def _map(self) -> None:
        os.ftruncate(self._fd, 2 * _PAGE)
        # The kernel probes private mappings only, and only those that can't be written to.
        address: int = _libc.mmap(
            None, 2 * _PAGE, _PROT_READ | _PROT_EXEC, _MAP_PRIVATE, self._fd, 0
        )
        if address == _MAP_FAILED:
            number = ctypes.get_errno()
            raise OSError(number, f"mmap of code: {os.strerror(number)}")
        self._code = address
        # The mapping shows what the file gets afterwards, until a probe has made its copy.
        for page in (_PROBED, _PLAIN):
            os.pwrite(self._fd, self._dummy.code, page)
            os.pwrite(self._fd, struct.pack("<Q", address + page), page + self._dummy.slot)

    def close(self) -> None:
        """Remove the code. Probes that are still in it harm nobody."""
        if self._code:
            _libc.munmap(self._code, 2 * _PAGE)
            self._code = 0
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> str:
        """The file that holds the code, for this process only."""
        return f"/proc/self/fd/{self._fd}"

    @property
    def load_bias(self) -> int:
        """The run-time address of the file's first byte."""
        return self._code

    def run(self, exercise: Exercise, rounds: int, *, is_probed: bool) -> int:
        """Do *exercise* in the copy that is probed, or else in the plain one.

        Returns the CPU time in ns that this thread has spent on it. Raises ValueError for less
        than one round or after `close`.
        """
        if rounds < 1 or not self._code:
            raise ValueError(f"cannot do {rounds} rounds")
        loop = _LOOP(self._code + (_PROBED if is_probed else _PLAIN) + self._loops[exercise])
        began_ns = time.thread_time_ns()
        loop(rounds, self.cond)
        return time.thread_time_ns() - began_ns


def _memory_file() -> int:
    name = "gilscope-dummy"
    try:
        return os.memfd_create(name, os.MFD_CLOEXEC | _MFD_NOEXEC_SEAL)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return os.memfd_create(name, os.MFD_CLOEXEC)
