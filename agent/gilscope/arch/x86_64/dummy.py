"""Code for x86-64 that takes and drops a lock like a GIL."""

from typing import Final

from gilscope.arch.base import DummyCode

__all__ = ["DUMMY"]

# Rounds are in rdi, the address of `cond` in rsi. Of the lock `locked` is changed, as CPython does
# before it signals; who holds the lock stays the same.
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

DUMMY: Final = DummyCode(
    code=_CODE,
    slot=0x100,  # no code is near, so that the processor caches it alone
    holds=0x10,
    stepped_holds=0x40,
    waits=0x80,
    acquire=0x23,
    release=0x32,
    stepped_acquire=0x53,
    stepped_release=0x63,
    wait=0xAE,
    wait_return=0xBF,
    # take_gil, its caller, and whoever called that.
    callers=((0xAE, 8), (0x8D, 24)),
)
