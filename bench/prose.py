"""The sentences of the page that hold whatever is measured; none of them carries a figure."""

__all__ = [
    "ATTACH",
    "CONTENDED",
    "COST",
    "COVERAGE",
    "CROWDS",
    "HEAD",
    "LATENCY",
    "NOT_MEASURED",
    "PARTS",
    "QUICK",
    "READING",
    "REPORT",
    "START",
    "SWITCHES",
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
CPU time of the traced process (user and system, all threads) for a unit of work, divided by that \
of the same process untraced directly before and after: the median over the rounds, and the range.
"""

WORKLOADS = """\
- *tight*: one thread that does nothing but release the GIL and acquire it again, by reading one \
byte from `/dev/zero`; the worst case for probes.
- *mixed*: two threads that compute and one that reads and sleeps.
- *fight*: two threads that compute and make each other yield every 5 ms.
- *CPU only*: one thread that computes and never blocks.
- *HTTP server*: a threaded server and clients that keep it busy; the clients' own CPU time does \
not count.
- *fight, 0.1 ms*: the fight with a switch interval of 0.1 ms, which no real program has; only the \
modes of gilscope that differ in it are measured.
"""

LATENCY = """\
What the clients of the HTTP server saw, from a request's first byte to its answer's last: first \
the server untraced, then the ratio to that, again directly before and after.
Each connection asks again when it has its answer, so the server is saturated: requests queue, and \
latency is the first thing that suffers.
The percentiles are those of a piece of work, a fixed number of requests, and of several pieces \
the median counts.
"""

SWITCHES = """\
How often the threads of the HTTP server were taken off a CPU, because they slept or for another \
thread: first untraced, then the ratio to that.
Wherever one of gilscope's probes is passed, its thread has the mutex that guards the GIL: another \
one that wants to acquire or release the GIL meanwhile has to sleep until the probe is done.
Such a sleep costs CPU time of its own, beside that of the probe.
"""

REPORT = """\
gilscope estimates what it costs its targets, and exports that as \
`gilscope_target_overhead_seconds_total`.
Here is its growth over each run beside the CPU time that was measured to be added, both in per \
cent of the CPU time of the same work untraced.
The quotient of the two stands only where the measured cost lies above the noise of its workload \
in every round.
A negative measured cost is noise.
The estimate is of the time that probes take; that of the context switches above is not in it.
"""

COVERAGE = """\
How much of the time it followed every hold, and how many holds it saw in a run (the median):
"""

WINDOWS = """\
What windows cost the tight loop can be told without any other run: a piece of it lasts a tenth of \
a second, and the few pieces in which a window falls raise the mean and not the median.
That does not notice how fast the machine is meanwhile, which drifts by more than the budget:
"""

CONTENDED = """\
A wait passes two probes for each of its sleeps, one before it and one behind it.
They run in a thread that is about to sleep or has just slept, not in the one that works.
The first reads two Python stacks, its own and the holder's, unless `--no-stacks` says not to: \
that is the difference between contention mode with stacks and without.
Where the instructions are of the usual kind, the kernel emulates them and neither probe costs a \
single step.
"""

TOOLS = """\
All workloads together, each with one process traced; gilscope is scraped twice, at the beginning \
and at the end of a run.
CPU in a run is that of the tool and of its own processes while the workload runs, scrapes \
included: far more scrapes a second than Prometheus makes.
Memory is that of the process that stays.
The others serve nothing: they print sums at their end.

What each of them counted in a run shows that it was at work; longer runs count more:
"""

CROWDS = """\
One `gilscope serve --match` for all of them, scraped every 15 seconds as `deploy/prometheus` does.
What it takes is measured from a minute after the attach on, for it runs for days.
*quiet* targets wake once a second, all threads of a process together, and sleep again.
Of the *busy* ones every other has threads that fight for the GIL for some milliseconds three \
times a second, and the rest have threads that read and sleep some hundred times a second: the \
machine is not saturated.
Attached is what a scrape shows as traced; a scrape is timed by the client, on the loopback.
Waits and holds are those between the first and the last scrape.
Events that had begun before the probes were there (`began_unseen`) are no losses: they are \
counted from the attach on.
"""

ATTACH = """\
From the start of `gilscope serve` to its line "Serving", when the probes are in place.
Cold: the GIL's code in this interpreter has to be found first; warm: it is remembered.
The kernel's page cache is warm in both.
"""

PARTS = """\
What the agent uses its CPU time for, by its threads, which `top -H` shows by name.
All but the scrapes continue whether anybody scrapes or not.
What samples may take is bounded: those of locks are no more than the held share of a minute \
needs, and those of holders have a part of a core.
"""

START = """\
What goes by first of each attach; meanwhile the kernel checks the programs.
Then the agent measures what a trap costs on this machine, reads the target, and places the probes.
"""

READING = """\
In *tight* no thread waits or hits a probe of contention mode, so its ratio can only \
differ from 1 by what the machine does meanwhile.
Full mode and the tools with three probes stop the target at every acquire and every release, \
waited for or not.
Auto mode does so in its windows and leaves the target alone between them: what it may cost is \
chosen, and the faster a target releases the GIL the shorter the windows are.
Where all waits would cost more than that, as in the HTTP server and in the fight for 0.1 ms, it \
sees them in windows too, from a second after the attach on: until then it does not know.
A program that computes acquires the GIL seldom and notices none of them; one that makes many \
short system calls pays for each.
What a program pays for contention mode is the number of its contended waits times the cost of one.
BCC's three probes and bpftrace need symbols in the interpreter, which packaged ones lack, and \
miss the time that a yielding thread sleeps inside `drop_gil`.
py-spy stops the target for a moment at each sample: it costs the same whatever the target does, \
and knows who holds the GIL at some instants, but no wait and no duration.
The order rotates from round to round, and each round has a process of its own for each workload, \
so that neither the order nor the layout of one process decides.
Whole runs are compared, not their best moments, because the windows of auto mode must count for \
what they cost.
"""

NOT_MEASURED = """\
- Other machines: a trap costs more under some hypervisors, and less without one.
- CPU time that is not charged to the target, such as interrupts while probes are put in place.
- A target that has more runnable threads than the machine has CPUs to give: the agent and the \
target share two here.
- Auto mode over hours: a run lasts some seconds, in which *tight* sees a few windows at most, the \
first of which comes soon after the attach.
- Attaching with a cold page cache, directly after the machine has started.
"""
