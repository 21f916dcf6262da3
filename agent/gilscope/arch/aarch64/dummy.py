"""Code for AArch64 that takes and drops a lock like a GIL."""

from typing import Final

from gilscope.arch.base import DummyCode

__all__ = ["DUMMY"]

# Rounds are in x0, the address of `cond` in x1. The members of the lock are where x86-64 has them:
# it is no real one. Of it `locked` is changed, as CPython does before it signals.
_CODE: Final = bytes.fromhex(
    # 00 stub: stands for pthread_cond_signal and pthread_cond_timedwait
    "c0035fd6"  # 00 ret
    "000020d4"  # 04 brk #0: never reached
    "000020d4"  # 08 brk #0
    "000020d4"  # 0c brk #0
    # 10 holds
    "f353bea9"  # 10 stp x19, x20, [sp, #-32]!
    "fd7b01a9"  # 14 stp x29, x30, [sp, #16]
    "f30300aa"  # 18 mov x19, x0
    "f40301aa"  # 1c mov x20, x1
    "20008052"  # 20 mov w0, #1
    "80021fb8"  # 24 stur w0, [x20, #-16]: locked
    "80620191"  # 28 add x0, x20, #88: switch_cond
    "f5ffff97"  # 2c bl stub: taken
    "9f021fb8"  # 30 stur wzr, [x20, #-16]
    "e00314aa"  # 34 mov x0, x20: cond
    "f2ffff97"  # 38 bl stub: dropped
    "730600f1"  # 3c subs x19, x19, #1
    "01ffff54"  # 40 b.ne 20
    "fd7b41a9"  # 44 ldp x29, x30, [sp, #16]
    "f353c2a8"  # 48 ldp x19, x20, [sp], #32
    "c0035fd6"  # 4c ret
    # 50 the same with calls through a slot, as in a build with -fno-plt
    "f353bea9"  # 50 stp x19, x20, [sp, #-32]!
    "fd7b01a9"  # 54 stp x29, x30, [sp, #16]
    "f30300aa"  # 58 mov x19, x0
    "f40301aa"  # 5c mov x20, x1
    "20008052"  # 60 mov w0, #1
    "80021fb8"  # 64 stur w0, [x20, #-16]
    "80620191"  # 68 add x0, x20, #88
    "a80c0010"  # 6c adr x8, slot
    "080140f9"  # 70 ldr x8, [x8]
    "00013fd6"  # 74 blr x8: taken
    "9f021fb8"  # 78 stur wzr, [x20, #-16]
    "e00314aa"  # 7c mov x0, x20
    "080c0010"  # 80 adr x8, slot
    "080140f9"  # 84 ldr x8, [x8]
    "00013fd6"  # 88 blr x8: dropped
    "730600f1"  # 8c subs x19, x19, #1
    "81feff54"  # 90 b.ne 60
    "fd7b41a9"  # 94 ldp x29, x30, [sp, #16]
    "f353c2a8"  # 98 ldp x19, x20, [sp], #32
    "c0035fd6"  # 9c ret
    # a0 waits
    "f353bea9"  # a0 stp x19, x20, [sp, #-32]!
    "fd7b01a9"  # a4 stp x29, x30, [sp, #16]
    "f30300aa"  # a8 mov x19, x0
    "f40301aa"  # ac mov x20, x1
    "08000094"  # b0 bl d0
    "730600f1"  # b4 subs x19, x19, #1
    "c1ffff54"  # b8 b.ne b0
    "fd7b41a9"  # bc ldp x29, x30, [sp, #16]
    "f353c2a8"  # c0 ldp x19, x20, [sp], #32
    "c0035fd6"  # c4 ret
    "1f2003d5"  # c8 nop
    "1f2003d5"  # cc nop
    # d0 one wait: somebody holds the lock until the timed wait returns, with 0 for a signal
    "fd7bbfa9"  # d0 stp x29, x30, [sp, #-16]!
    "20008052"  # d4 mov w0, #1
    "80021fb8"  # d8 stur w0, [x20, #-16]
    "e00314aa"  # dc mov x0, x20: cond
    "81c20091"  # e0 add x1, x20, #48: mutex
    "c7ffff97"  # e4 bl stub: waits
    "9f021fb8"  # e8 stur wzr, [x20, #-16]
    "e0031f2a"  # ec mov w0, wzr
    "1fb80171"  # f0 cmp w0, #110: ETIMEDOUT
    "20000054"  # f4 b.eq f8: has waited
    "fd7bc1a8"  # f8 ldp x29, x30, [sp], #16
    "c0035fd6"  # fc ret
)

DUMMY: Final = DummyCode(
    code=_CODE,
    slot=0x200,  # no code is near, so that the processor caches it alone
    holds=0x10,
    stepped_holds=0x50,
    waits=0xA0,
    acquire=0x2C,
    release=0x38,
    stepped_acquire=0x74,
    stepped_release=0x88,
    wait=0xE4,
    wait_return=0xF4,
    # take_gil, its caller, and whoever called that.
    callers=((0xE4, 16), (0xB4, 32)),
)
