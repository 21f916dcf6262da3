"""Where the members of a GIL are, as seen from its condition variable.

That is ``struct _gil_runtime_state``, and before CPython 3.7 a handful of variables. A lock is
known by the address of its `cond` everywhere, because that is what waits and releases name.
"""

from typing import Final, Self

from gilscope.arch.base import PthreadLayout
from gilscope.arch.x86_64.architecture import X86_64
from gilscope.values import dataclass

__all__ = ["FREE_THREADED_ENABLED", "GLIBC_X86_64", "GilStruct"]


@dataclass(frozen=True, slots=True)
class GilStruct:
    """Offsets from `cond`, bytes.

    The members that come before it are the same in CPython 3.7 to 3.15. What comes behind it
    depends on the sizes of the C library's types, which depend on the processor.
    """

    mutex: int
    switch_cond: int
    interval: int = -32
    last_holder: int = -24
    locked: int = -16
    switch_number: int = -8
    is_scattered: bool = False
    """They are variables of their own, anywhere, and `mutex` is not known (CPython 3.6)."""
    enabled: int | None = None
    """4 bytes: 0 while threads do without the lock; None: they never do."""

    @classmethod
    def of(cls, pthread: PthreadLayout) -> Self:
        """Return where they are with the types of that C library."""
        return cls(pthread.cond_size, pthread.cond_size + pthread.mutex_size)

    def parts(self) -> dict[str, int]:
        """Return what the probes are told of it for each process: see ``struct target``."""
        return {
            "is_scattered": int(self.is_scattered),
            "interval_at": self.interval,
            "holder_at": self.last_holder,
            "locked_at": self.locked,
            "number_at": self.switch_number,
            "switch_cond_at": self.switch_cond,
        }

    @property
    def begin(self) -> int:
        """Where the structure begins."""
        return self.interval

    def macros(self) -> dict[str, int]:
        """Return what the probes are told of it."""
        return {
            "GIL_STATE_OFFSET": -self.begin,
            "GIL_MUTEX_OFFSET": self.mutex,
        }


FREE_THREADED_ENABLED: Final = -40
"""Where `GilStruct.enabled` of a free-threaded build is: it is the first member, before all that
other builds have."""
GLIBC_X86_64: Final = GilStruct.of(X86_64.pthread)
