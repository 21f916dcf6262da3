"""The sentences of the page that hold whatever is measured; none of them carries a figure."""

__all__ = [
    "ATTACH",
    "CONTENDED",
    "COST",
    "HEAD",
    "NOT_MEASURED",
    "QUICK",
    "READING",
    "TOOLS",
    "WORKLOADS",
]

HEAD = """\
# What tracing costs

This page is made by `make bench` and holds for the machine and the versions below.
"""

QUICK = """
**A quick run with little work: it shows that the bench works, and nothing else.**
"""

COST = """\
CPU time of the traced process (user and system, all threads) for a fixed amount of work, divided \
by that of the same process untraced in the same round: the median over the rounds, and the range.
"""

WORKLOADS = """\
- *tight*: one thread that does nothing but release the GIL and take it back, by reading one byte \
from `/dev/zero`; the worst case for probes.
- *mixed*: two threads that compute and one that reads and sleeps.
- *fight*: two threads that compute and make each other yield every 5 ms.
- *fight, 0.1 ms*: the same with a switch interval of 0.1 ms, which no real program has.
"""

CONTENDED = """\
A wait passes two probes for each of its sleeps, one before it and one behind it.
They run in a thread that is about to sleep or has just slept, not in the one that works.
Where the instructions are of the usual kind, the kernel emulates them and neither probe costs a \
single step.
"""

TOOLS = """\
All workloads together, each with one process traced; gilscope is scraped once, at the end of a run.
CPU to attach includes the child process in which gilscope compiles its probes.
CPU in a run is that of the tool's own process while the workload runs, scrape included: far more \
scrapes a second than Prometheus makes.
Memory is that of the process that stays.
The child that compiles for gilscope has ended by then and is not in these figures.
The other two serve nothing: they print sums at their end.

What each of them counted in a run shows that it was at work:
"""

ATTACH = """\
From the start of `gilscope serve` to its line "Serving", when the probes are in place.
Cold: the GIL's code in this interpreter has to be found first; warm: it is remembered.
The kernel's page cache is warm in both.
"""

READING = """\
In *tight* nobody waits and no thread meets a probe of gilscope, so its ratio can only differ from \
1 by what the machine does meanwhile.
The other two tools stop the target at every take and every release, waited for or not.
A program that computes takes the GIL seldom and notices none of them; one that makes many short \
system calls pays for each.
What a program pays for gilscope is the number of its contended waits times the cost of one.
Both of the others need symbols in the interpreter, which packaged ones lack, and miss the time \
that a yielding thread sleeps inside `drop_gil`.
The order rotates from round to round, and each round has a process of its own for each workload, \
so that neither the order nor the layout of one process decides.
Each run consists of equal pieces of work, and the median piece counts, so that one hiccup of the \
machine does not.
"""

NOT_MEASURED = """\
- Throughput and latency of the target: CPU time does not show a thread that is kept waiting.
- Many targets at once, and scrapes in quick succession.
- Other machines: a trap costs more under some hypervisors, and less without one.
- CPU time that is not charged to the target, such as interrupts while probes are put in place.
- Attaching with a cold page cache, directly after the machine has started.
"""
