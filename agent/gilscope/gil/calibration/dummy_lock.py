"""A lock in the agent's own memory that looks like a GIL, with code that takes and drops it."""

import ctypes
import errno
import os
import struct
import time
from enum import Enum
from typing import Final, Self

from gilscope.runtimes.cpython.sites.model import CallerRule

__all__ = ["DummyLock", "Exercise"]

# x86-64, without relocations. Each loop is called with its number of rounds in rdi, at least 1,
# and with the address of `cond` in rsi. Of the lock it changes `locked`, as CPython does before it
# signals; who holds the lock stays the same.
_CODE: Final = bytes.fromhex(
    # 00 stub: stands for pthread_cond_signal and pthread_cond_timedwait
    "c3"  # 00 ret
    "cccccccccccccccccccccccccccccc"  # 01 int3, never reached
    # 10 holds
    "53"  # 10 push rbx
    "55"  # 11 push rbp
    "4889fb"  # 12 mov rbx, rdi
    "4889f5"  # 15 mov rbp, rsi
    "c745f001000000"  # 18 mov dword [rbp - 16], 1: locked
    "488d7d58"  # 1f lea rdi, [rbp + 88]: switch_cond
    "e8d8ffffff"  # 23 call stub: taken
    "c745f000000000"  # 28 mov dword [rbp - 16], 0
    "4889ef"  # 2f mov rdi, rbp: cond
    "e8c9ffffff"  # 32 call stub: dropped
    "48ffcb"  # 37 dec rbx
    "75dc"  # 3a jnz 18
    "5d"  # 3c pop rbp
    "5b"  # 3d pop rbx
    "c3"  # 3e ret
    "cc"  # 3f
    # 40 stepped holds: the same with calls as in a build with -fno-plt
    "53"  # 40 push rbx
    "55"  # 41 push rbp
    "4889fb"  # 42 mov rbx, rdi
    "4889f5"  # 45 mov rbp, rsi
    "c745f001000000"  # 48 mov dword [rbp - 16], 1
    "488d7d58"  # 4f lea rdi, [rbp + 88]
    "ff15a7000000"  # 53 call [rip + a7], the slot: taken
    "c745f000000000"  # 59 mov dword [rbp - 16], 0
    "4889ef"  # 60 mov rdi, rbp
    "ff1597000000"  # 63 call [rip + 97], the slot: dropped
    "48ffcb"  # 69 dec rbx
    "75da"  # 6c jnz 48
    "5d"  # 6e pop rbp
    "5b"  # 6f pop rbx
    "c3"  # 70 ret
    "cccccccccccccccccccccccccccccc"  # 71
    # 80 waits
    "53"  # 80 push rbx
    "55"  # 81 push rbp
    "4889fb"  # 82 mov rbx, rdi
    "4889f5"  # 85 mov rbp, rsi
    "e813000000"  # 88 call a0
    "48ffcb"  # 8d dec rbx
    "75f6"  # 90 jnz 88
    "5d"  # 92 pop rbp
    "5b"  # 93 pop rbx
    "c3"  # 94 ret
    "cccccccccccccccccccccc"  # 95
    # a0 one wait: somebody holds the lock until the timed wait returns, with 0 for a signal
    "c745f001000000"  # a0 mov dword [rbp - 16], 1
    "4889ef"  # a7 mov rdi, rbp: cond
    "488d7530"  # aa lea rsi, [rbp + 48]: mutex
    "e84dffffff"  # ae call stub: waits
    "c745f000000000"  # b3 mov dword [rbp - 16], 0
    "31c0"  # ba xor eax, eax
    "83f86e"  # bc cmp eax, 110: ETIMEDOUT
    "7400"  # bf je c1: has waited
    "c3"  # c1 ret
)
_ACQUIRE: Final = 0x23
_RELEASE: Final = 0x32
_STEPPED_ACQUIRE: Final = 0x53
_STEPPED_RELEASE: Final = 0x63
_WAIT: Final = 0xAE
_WAIT_RETURN: Final = 0xBF
_SLOT: Final = 0x100
"""Where the address of the stub stands. No code is near, so that the processor caches it alone."""

# What .eh_frame would say of the wait: take_gil, its caller, and whoever called that.
_CALLERS: Final = (
    CallerRule(pc=_WAIT, made_to_yield=False, cfa_offset=8),
    CallerRule(pc=0x8D, made_to_yield=False, cfa_offset=24),
)

# struct _gil_runtime_state seen from `cond`; see gil.bpf.h. A page, so that whatever a probe may
# read near the lock, or of the thread state that last_holder names, is there and 0.
_MEMORY_SIZE: Final = 4096
_COND: Final = 512
_INTERVAL: Final = _COND - 32
_LAST_HOLDER: Final = _COND - 24
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
    """What can be done with the lock. The value is where its loop begins."""

    HOLDS = 0x10
    """Taken and dropped, by calls that the kernel emulates under a probe."""
    STEPPED_HOLDS = 0x40
    """Taken and dropped, by calls through a slot, which the kernel has to single-step."""
    WAITS = 0x80
    """Waited for until a signal comes, which it does at once."""


class DummyLock:
    """The lock, and its code twice: once to be probed, and once to be left alone.

    Both copies do the same on the same memory, so what a round of the first takes longer is what
    its probes cost. The code lies in a file in memory, for uprobes belong to files.
    """

    build_id: Final = "dummy"
    """In place of a file's, for the plan of the probes."""
    callers: Final = _CALLERS
    """The steps from the wait to its cause, as many as in a real take."""
    acquire_offset: Final = _PROBED + _ACQUIRE
    """In the file, bytes; so are the others."""
    release_offset: Final = _PROBED + _RELEASE
    stepped_acquire_offset: Final = _PROBED + _STEPPED_ACQUIRE
    stepped_release_offset: Final = _PROBED + _STEPPED_RELEASE
    wait_offset: Final = _PROBED + _WAIT
    wait_return_offset: Final = _PROBED + _WAIT_RETURN
    """The conditional jump behind it."""

    def __init__(self) -> None:
        """Map the code; raises OSError where it is not this machine's, or may not be mapped."""
        self._fd = -1
        self._code = 0
        self._memory = ctypes.create_string_buffer(_MEMORY_SIZE)
        address = ctypes.addressof(self._memory)
        struct.pack_into("<Q", self._memory, _INTERVAL, _INTERVAL_US)
        struct.pack_into("<Q", self._memory, _LAST_HOLDER, address + _THREAD_STATE)
        self.cond = address + _COND
        """Its address, which is the lock's identity."""
        if os.uname().machine != "x86_64" or struct.calcsize("P") != struct.calcsize("Q"):
            raise OSError(errno.ENOEXEC, "the dummy code is x86-64")
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
            os.pwrite(self._fd, _CODE, page)
            os.pwrite(self._fd, struct.pack("<Q", address + page), page + _SLOT)

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
        loop = _LOOP(self._code + (_PROBED if is_probed else _PLAIN) + exercise.value)
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
