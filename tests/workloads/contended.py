"""The Python side of contended_takes.c: takes of the GIL that are contended for certain."""

import ctypes

from gilclock import ThreadClock, load

__all__ = ["Turn", "Waiter", "hold", "take_in_turn"]

KEEPING, DROPPING = load()


class Waiter:
    """A thread that runs into a held GIL once a round."""

    def __init__(self, rounds: int) -> None:
        self.clock = ThreadClock()
        self.wait_ns = (ctypes.c_uint64 * rounds)()
        # Eight-byte units, because the structure holds semaphores and must be aligned.
        self._memory = (ctypes.c_uint64 * (KEEPING.contended_waiter_size() // 8 + 1))()
        self.address = ctypes.addressof(self._memory)
        KEEPING.contended_prepare(
            ctypes.c_void_p(self.address),
            ctypes.byref(self.clock),
            ctypes.c_uint64(rounds),
            self.wait_ns,
        )

    def wait(self) -> None:
        """Take part in every round; never returns."""
        KEEPING.contended_wait(ctypes.c_void_p(self.address))


def hold(clock: "ThreadClock", waiters: "list[Waiter]", length_ns: "list[int]") -> None:
    """Hold the GIL once a round until every waiter sleeps, and *length_ns* more; never returns."""
    addresses = (ctypes.c_void_p * len(waiters))(*(waiter.address for waiter in waiters))
    lengths = (ctypes.c_uint64 * len(length_ns))(*length_ns)
    KEEPING.contended_hold(
        ctypes.byref(clock),
        addresses,
        ctypes.c_uint64(len(waiters)),
        lengths,
        ctypes.c_uint64(len(length_ns)),
    )


class Turn:
    """A semaphore that says whose turn it is."""

    def __init__(self, value: int) -> None:
        self._memory = (ctypes.c_uint64 * (KEEPING.contended_turn_size() // 8 + 1))()
        KEEPING.contended_turn_init(ctypes.byref(self._memory), ctypes.c_uint(value))

    def pointer(self) -> object:
        """Return what C takes for its address."""
        return ctypes.byref(self._memory)


def take_in_turn(clock: "ThreadClock", turn: "Turn", next_turn: "Turn") -> None:
    """Take the GIL once, uncontended; never returns."""
    KEEPING.contended_take_in_turn(ctypes.byref(clock), turn.pointer(), next_turn.pointer())
