"""Code that does not let go of the GIL, and who is kept waiting by it.

Known answer: `edges` in the answers, exactly. A wait is kept by one line from its beginning to its
end, and both lines are marked.

* c_call: `wait_for_c` waits twice for 50 ms behind one call of a C function in `call_c`. That is
  also the place that did not answer a request to drop the GIL, twice, for 45 ms each.
* three_waiters: `wait_first`, `wait_second` and `wait_third` wait at the same time, ten times,
  each for about 12 ms behind `keep_three`. Who comes second and third has to wait a little longer,
  behind another one of them.
* two_lines: `keep_in_two_lines` keeps `wait_for_lines` for 30 ms in one line and for 60 ms in the
  other, three times in turn.
* expression: the same, but 3 and 8 ms in the two lines of one expression, five times: the waits of
  one line are shorter than a switch interval.
* regex: `wait_for_regex` waits while `search` matches an expression that backtracks without end,
  for some 100 ms.
"""

import re

from blame_stage import KEEPING, MS, End, Rounds, perform, play
from old_pythons import perf_counter_ns

_LONG_ENOUGH_NS = 60 * MS
# Each further letter takes 1.6 times as long.
_BACKTRACKING = re.compile("(?:a|aa)+$")


def wait_for_c(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def call_c(rounds: "Rounds") -> None:
    for _ in range(2):
        KEEPING.blame_hold(rounds.holds(), 50 * MS)  # holds here


def wait_first(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def wait_second(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def wait_third(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def keep_three(rounds: "Rounds") -> None:
    for _ in range(10):
        KEEPING.blame_hold(rounds.holds(), 12 * MS)  # holds here


def wait_for_lines(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def keep_in_two_lines(rounds: "Rounds") -> None:
    for _ in range(3):
        KEEPING.blame_hold(rounds.holds(), 30 * MS)  # holds here
        KEEPING.blame_hold(rounds.holds(), 60 * MS)  # holds here


def wait_for_expression(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def keep_in_expression(rounds: "Rounds") -> None:
    kept = 0
    while kept < 10:
        kept += sum(
            [
                KEEPING.blame_hold(rounds.holds(), 3 * MS) or 1,  # holds here
                KEEPING.blame_hold(rounds.holds(), 8 * MS) or 1,  # holds here
            ]
        )


def slow_text() -> str:
    """Return a text that takes long to match, on any machine."""
    text = "a" * 20 + "b"
    while True:
        began_ns = perf_counter_ns()
        _BACKTRACKING.match(text)
        if perf_counter_ns() - began_ns > _LONG_ENOUGH_NS:
            return text
        text = "a" + text


def wait_for_regex(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def search(rounds: "Rounds") -> None:
    text = slow_text()
    for _ in range(2):
        _BACKTRACKING.match(text, KEEPING.blame_wake(rounds.holds()))  # holds here
        KEEPING.blame_let_go(rounds.address)


if __name__ == "__main__":
    perform(
        {
            "c_call": lambda: play(Rounds(), call_c, wait_for_c),
            "three_waiters": lambda: play(
                Rounds(3), keep_three, wait_first, wait_second, wait_third
            ),
            "two_lines": lambda: play(Rounds(), keep_in_two_lines, wait_for_lines),
            "expression": lambda: play(Rounds(), keep_in_expression, wait_for_expression),
            "regex": lambda: play(Rounds(), search, wait_for_regex),
        }
    )
