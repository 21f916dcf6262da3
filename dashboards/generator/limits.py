"""The values from which figures have a color, each with its reason."""

from dashboards.generator.panels import Step

from gilscope.verdict.degree import CONVOYS_A_SECOND, SEVERE_THREADS

__all__ = [
    "BUDGET",
    "BUSY",
    "CONVOYS",
    "KEPT_WAITING",
    "LONG_WAIT",
    "LOST_WORK",
    "MANY_CONVOYS",
    "ROUTE_SHARE",
    "SLOW_DROP",
    "SOME",
]

_WARNING, _BAD = "orange", "red"

SOME = (Step(1, _WARNING),)
"""Of things that should not be there at all."""

KEPT_WAITING = (Step(SEVERE_THREADS, _WARNING), Step(1, _BAD))
"""Where the alert has it; from 1 on a whole thread does nothing but wait: one fewer would do the
same work."""

CONVOYS = (Step(CONVOYS_A_SECOND, _WARNING), Step(10 * CONVOYS_A_SECOND, _BAD))
"""Where the alert has it; ten times that is all that one thread can suffer: each takes a switch
interval of 5 ms, and the time between two."""

BUSY = (Step(0.7, _WARNING), Step(0.9, _BAD))
"""Share of the time that a GIL is taken: what is missing to 1 is all that more threads can gain."""

MANY_CONVOYS = (Step(0.2, _WARNING), Step(0.5, _BAD))
"""Share of the returns from blocking calls that end in a queue; from a half on it is the rule."""

LONG_WAIT = (Step(0.1, _WARNING), Step(1, _BAD))
"""20 switch intervals are more than a queue of threads that drop the GIL; users notice a second."""

SLOW_DROP = (Step(0.01, _WARNING), Step(0.1, _BAD))
"""10 ms is where gilscope begins to note who was slow to drop the GIL."""

BUDGET = (Step(0.01, _WARNING), Step(0.05, _BAD))
"""The default overhead budget of `gilscope serve` is 1 %."""

ROUTE_SHARE = (Step(0.2, _WARNING), Step(0.5, _BAD))
"""Share of the time of requests that they wait; where the alert has it, and one half."""

LOST_WORK = (Step(0.2, _WARNING), Step(0.5, _BAD))
"""Share of the transactions that are aborted; from a half on more is thrown away than kept."""
