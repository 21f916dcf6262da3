"""One thread that waits for the GIL exactly 23 times, for another that holds it in C.

Known answer, on the thread `waiter` (role `waiter (exact_count.py)`):

* waits: exactly 23, all `blocking_call`, all held by `hold_in_c`, called by `holder`; 16 of them
  last 3 ms and a little, 7 of them 27.5 ms and a little. `wait_ns` in the result has each one.
* convoy waits (at least one switch interval, 5 ms): exactly 7.
* waits that end in a drop request: exactly 7; forced switches (releases by the holder with a
  request pending): exactly 7. A wait of 27.5 ms asks at 5, 10, 15, 20 and 25 ms: 35 timeouts of
  the timed wait in all, the only count here that a machine stalled for 2 ms can change.
* Not exact: the waits of `holder`. Each of its 7 forced drops sleeps until the waiter has the GIL,
  unless the waiter was faster; `waits` in its truth says what happened (0 to 7, `preemption`).
  Its takes are never contended, and the main thread never waits.

The handshake uses semaphores outside the GIL. The holder counts a round's length from the moment
the kernel says that the waiter sleeps, so a slow machine makes waits longer, never fewer. If it
stalls so long that a short round reaches 5 ms, `is_exact` is false and the run proves nothing;
real-time priority, where it is permitted, makes that unlikely. It takes two CPUs.
"""

import threading

from contended import DROPPING, Waiter, hold
from gilclock import ThreadClock, thread_truth
from handshake import await_begin, finish, ready
from priority import schedule

SHORT_NS = 3_000_000
LONG_NS = 27_500_000
INTERVAL_NS = 5_000_000
# Long rounds spread among the short ones: two of a kind need not follow each other.
ROUNDS_NS = [LONG_NS if number % 3 == 2 else SHORT_NS for number in range(23)]
LONG_ROUNDS = ROUNDS_NS.count(LONG_NS)


def wait_in_c(waiter: "Waiter") -> None:
    """Stand in a known Python function while waiting."""
    waiter.wait()


def hold_in_c(clock: "ThreadClock", waiter: "Waiter") -> None:
    """Stand in a known Python function while holding."""
    hold(clock, [waiter], ROUNDS_NS)


def waiter(own: "Waiter") -> None:
    """Run into the held GIL once a round."""
    wait_in_c(own)


def holder(clock: "ThreadClock", other: "Waiter") -> None:
    """Hold the GIL once a round."""
    hold_in_c(clock, other)


def role_of(function: object) -> str:
    """Return the role that a tracer should name."""
    code = function.__code__
    return "%s (exact_count.py:%d)" % (code.co_name, code.co_firstlineno)


def waits_of_length(length_ns: int, wait_ns: "list[int]") -> "list[int]":
    """Return how long the waits of all rounds of that length really took."""
    return [wait_ns[number] for number, ns in enumerate(ROUNDS_NS) if ns == length_ns]


def main() -> None:
    """Run the rounds and report the truth."""
    schedule("auto")
    waiting, holding_clock = Waiter(len(ROUNDS_NS)), ThreadClock()
    for function, arguments in ((waiter, (waiting,)), (holder, (holding_clock, waiting))):
        threading.Thread(
            target=function, args=arguments, name=function.__name__, daemon=True
        ).start()
    DROPPING.gilclock_await_arrivals(2)
    ready(waiter=waiting.clock.tid, holder=holding_clock.tid)
    await_begin()
    DROPPING.gilclock_begin(2)
    DROPPING.gilclock_await_departures(2)
    wait_ns = list(waiting.wait_ns)
    short_ns = waits_of_length(SHORT_NS, wait_ns)
    long_ns = waits_of_length(LONG_NS, wait_ns)
    finish(
        {
            "is_exact": max(short_ns) < INTERVAL_NS and waiting.clock.take.slept_calls == 23,
            "timeouts_are_exact": max(long_ns) < LONG_NS + 2_000_000,
            "waits": len(ROUNDS_NS),
            "convoy_waits": LONG_ROUNDS,
            "drop_requests": LONG_ROUNDS,
            "forced_switches": LONG_ROUNDS,
            "timeouts": LONG_ROUNDS * (LONG_NS // INTERVAL_NS),
            "wait_ns": wait_ns,
            "threads": [
                thread_truth("waiter", role_of(waiter), waiting.clock),
                thread_truth("holder", role_of(holder), holding_clock),
            ],
        }
    )


if __name__ == "__main__":
    main()
