"""Five hundred threads, of which a known number wait for the GIL.

Known answer: each of the 400 `waiter` threads (--waiters) waits exactly 3 times (--rounds) after
a `blocking_call`, because `holder` drops the GIL only when the kernel says that all of them sleep.
The 99 `bystander` threads (the rest of --threads, less the holder) take the GIL once each,
uncontended: 0 waits. The holder's takes are uncontended too.

Not exact: `preemption`. As long as others wait, a waiter or the holder that drops the GIL may have
been asked to, and then sleeps until the next one has it. The truth of each thread says how often.
`threads_with_waits` counts the threads that waited for any reason: the waiters, and the holder if
its drop slept.
"""

import argparse
import threading

from contended import DROPPING, Turn, Waiter, hold, take_in_turn
from gilclock import ThreadClock, thread_truth
from handshake import await_begin, finish, ready

HOLD_NS = 6_000_000
STACK_BYTES = 256 * 1024


def waiter(own: "Waiter") -> None:
    """Run into the held GIL once a round."""
    own.wait()


def holder(clock: "ThreadClock", waiters: "list[Waiter]", rounds: int) -> None:
    """Hold the GIL once a round, until every waiter sleeps."""
    hold(clock, waiters, [HOLD_NS] * rounds)


def bystander(clock: "ThreadClock", turn: "Turn", next_turn: "Turn") -> None:
    """Take the GIL once, when nobody else wants it."""
    take_in_turn(clock, turn, next_turn)


def role_of(function: object) -> str:
    """Return the role that a tracer should name."""
    code = function.__code__
    return "%s (many_threads.py:%d)" % (code.co_name, code.co_firstlineno)


def start(function: object, *arguments: object) -> None:
    """Start a thread that parks in C, without the GIL."""
    threading.Thread(target=function, args=arguments, daemon=True).start()


def parse_arguments() -> "argparse.Namespace":
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=500)
    parser.add_argument("--waiters", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not 0 < options.waiters < options.threads:
        parser.error("there must be fewer waiters than threads, and at least one")
    return options


def main() -> None:
    """Run the bystanders one by one, then the rounds, and report the truth."""
    options = parse_arguments()
    threading.stack_size(STACK_BYTES)
    waiters = [Waiter(options.rounds) for _ in range(options.waiters)]
    bystanders = [ThreadClock() for _ in range(options.threads - options.waiters - 1)]
    holding_clock = ThreadClock()
    turns = [Turn(0) for _ in range(len(bystanders) + 1)]
    for one in waiters:
        start(waiter, one)
    for number, clock in enumerate(bystanders):
        start(bystander, clock, turns[number], turns[number + 1])
    DROPPING.gilclock_await_arrivals(options.threads - 1)
    start(holder, holding_clock, waiters, options.rounds)
    DROPPING.gilclock_await_arrivals(1)
    ready(threads=options.threads + 1)
    await_begin()
    # The bystanders wait for a turn that comes when the waiters and the holder are through.
    DROPPING.gilclock_begin(options.threads)
    DROPPING.gilclock_await_departures(options.waiters + 1)
    DROPPING.sem_post(turns[0].pointer())
    DROPPING.gilclock_await_departures(len(bystanders))
    threads = [thread_truth("waiter", role_of(waiter), one.clock) for one in waiters]
    threads.append(thread_truth("holder", role_of(holder), holding_clock))
    threads += [thread_truth("bystander", role_of(bystander), clock) for clock in bystanders]
    finish(
        {
            "blocking_call_waits": options.waiters * options.rounds,
            "threads_with_waits": sum(thread["waits"] > 0 for thread in threads),
            "threads": threads,
        }
    )


if __name__ == "__main__":
    main()
