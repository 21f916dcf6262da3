"""What is exported of a process and its GIL, and of how it is traced."""

from gilscope.metrics.family import of_process

__all__ = [
    "GIL_BLOCKED",
    "GIL_BLOCKED_TIMES",
    "GIL_CONVOY_WAITS",
    "GIL_DROP_LATENCY",
    "GIL_DROP_REQUESTS",
    "GIL_FAILED_WAKEUPS",
    "GIL_FAILED_WAKEUP_WAIT",
    "GIL_FORCED_SWITCHES",
    "GIL_HELD",
    "GIL_HELD_BY",
    "GIL_HOLD",
    "GIL_HOLDER",
    "GIL_LONGEST_HOLD",
    "GIL_LONGEST_WAIT",
    "GIL_OBSERVED",
    "GIL_SLOW_DROP",
    "GIL_SLOW_DROPS",
    "GIL_STACK_SAMPLING_RATIO",
    "GIL_SWITCH_LATENCY",
    "GIL_THREAD_HOLD",
    "GIL_THREAD_HOLDS",
    "GIL_THREAD_WAIT",
    "GIL_THREAD_WAITS",
    "GIL_WAIT",
    "GIL_WAITING_THREADS",
    "GIL_WAIT_ERROR",
    "LOST_EVENTS",
    "PROBE_VALID",
    "TARGET_INFO",
    "TARGET_OVERHEAD",
    "TARGET_OVERHEAD_RATIO",
    "TARGET_PROCESSES",
    "TARGET_THROTTLED",
    "TARGET_TRAPS",
]

GIL_WAIT = of_process(
    "gilscope_gil_wait_seconds",
    "histogram",
    "Time from a thread's need for the GIL until it holds it, finished waits only.",
    "Values from the switch interval (5 ms) upwards mean that threads queue for the interpreter; "
    "on PyPy and CPython 2.7, which have no such interval, they follow its ticks.",
    "interpreter",
    "after",
)
GIL_HOLD = of_process(
    "gilscope_gil_hold_seconds",
    "histogram",
    "Time from the acquisition of the GIL to its release, of the finished holds that began in a "
    "window of full mode. Left out on PyPy, whose holds are not seen.",
    "Long holds are what others wait for. Holds a second of observed time: the rate of the count "
    'divided by that of gilscope_gil_observed_seconds_total{window="full"}.',
    "interpreter",
)
GIL_SWITCH_LATENCY = of_process(
    "gilscope_gil_switch_latency_seconds",
    "histogram",
    "Time from a release of the GIL in a window of full mode to its acquisition by another thread "
    "that was waiting for it. Left out on PyPy.",
    "Tens of microseconds are a wake-up; much more means that the waiters lack a free CPU.",
    "interpreter",
)
GIL_DROP_LATENCY = of_process(
    "gilscope_gil_drop_latency_seconds",
    "histogram",
    "Time from the first request to drop the GIL until the holder released it. Left out on PyPy "
    "and CPython 2.7, whose threads do not ask: the holder releases it after its ticks.",
    "Much more than a millisecond means code that does not release the GIL, as C extensions may.",
    "interpreter",
)
GIL_THREAD_WAIT = of_process(
    "gilscope_gil_thread_wait_seconds_total",
    "counter",
    "Time that the threads of a role have lost waiting for the GIL, waits in flight included.",
    "Its rate is the number of threads of this role that wait at any moment.",
    "role",
)
GIL_THREAD_WAITS = of_process(
    "gilscope_gil_thread_waits_total",
    "counter",
    "Finished waits for the GIL of the threads of a role.",
    "Time divided by this is the mean wait.",
    "role",
)
GIL_THREAD_HOLD = of_process(
    "gilscope_gil_thread_hold_seconds_total",
    "counter",
    "Time inside windows of full mode that the threads of a role held the GIL, a hold in flight "
    "included.",
    'Its rate divided by that of gilscope_gil_observed_seconds_total{window="full"} is the share '
    "of the time that the role has the GIL.",
    "role",
)
GIL_THREAD_HOLDS = of_process(
    "gilscope_gil_thread_holds_total",
    "counter",
    "Finished holds of the threads of a role that began in a window of full mode.",
    "Hold time divided by this is the mean hold, roughly: windows cut the time, not the number.",
    "role",
)
GIL_HELD = of_process(
    "gilscope_gil_held_seconds_total",
    "counter",
    "Time that the GIL was held, by anybody. full: inside windows of full mode, exactly; all: "
    "since the attachment, between windows estimated from samples of the lock at random times.",
    'The rate of all by that of gilscope_gil_observed_seconds_total{window="all"} is the share of '
    "the time that the GIL is held: near 1, more threads gain nothing.",
    "interpreter",
    "window",
)
GIL_OBSERVED = of_process(
    "gilscope_gil_observed_seconds_total",
    "counter",
    "Time that was observed. full: covered by windows of full mode; waits: in which waits that "
    "began were counted; all: since the attachment.",
    "What holds and hold times are to be divided by; the rate of full by that of all is the share "
    "of the time that windows cover. Where seeing all waits would cost more than the overhead "
    "budget, waits is less than all, and all that is said of waits is estimated from these.",
    "window",
)
GIL_BLOCKED = of_process(
    "gilscope_gil_blocked_seconds_total",
    "counter",
    "Time that threads at one place (waiter) were kept waiting for the GIL by a thread at another "
    "(holder); a wait in flight counts as soon as its kind is known, after a switch interval at "
    "most. The costliest pairs have series of their own, which begin at 0 when a pair gets them; "
    "what else was lost is under other.",
    "Tells which lines of code are in each other's way. The rate is the number of threads that "
    "wait at any moment. All series of a process add up to what its threads have lost.",
    "waiter",
    "holder",
    "kind",
)
GIL_BLOCKED_TIMES = of_process(
    "gilscope_gil_blocked_total",
    "counter",
    "How often a wait came to be this holder's; one that is kept up by three holders in turn is "
    "counted with each of them.",
    "Blocked time divided by this is how long the holder keeps a waiter.",
    "waiter",
    "holder",
    "kind",
)
GIL_HOLDER = of_process(
    "gilscope_gil_holder_seconds_total",
    "counter",
    "Time that threads were kept waiting for the GIL, by where the holder's innermost frame of the "
    "application stood (application is true), or its innermost frame where none is of the "
    "application. The costliest holders have series of their own, which begin at 0 when one gets "
    "them; what else was lost is under other. state says what the holder did meanwhile: python, "
    "gc, jit (PyPy compiles it), native (in a call into C that lasts), syscall (asleep in one), "
    "no_cpu (runnable, and not running), page_fault or unknown. What was lost is measured, and "
    "shared out among the states by samples of the holder.",
    "Names the code to change: what is lost in a framework or a library is told by the line of "
    "the application that called it. All series of a process add up to what its threads have lost.",
    "holder",
    "application",
    "kind",
    "state",
)
GIL_HELD_BY = of_process(
    "gilscope_gil_held_by_seconds_total",
    "counter",
    "Time that the GIL was held, whether anybody waited for it or not, by where the holder's "
    "innermost frame of the application stood (application is true), or its innermost frame where "
    "none is of the application. Estimated from samples of the holder's stack, which cost the "
    "process nothing. The places that held it longest have series of their own, which begin at 0 "
    "when one gets them; the rest is under other.",
    "Names the code that a busy thread or a blocked event loop is in, also where nobody waits for "
    "the GIL. The rate is the share of the time, of a service the sum of its processes; it is off "
    "by a few points over some minutes.",
    "holder",
    "application",
)
GIL_SLOW_DROP = of_process(
    "gilscope_gil_slow_drop_seconds_total",
    "counter",
    "Time from a request to drop the GIL until the holder released it, by where the holder stood; "
    "only of requests that took longer than 10 ms. Left out on PyPy and CPython 2.7, whose threads "
    "do not ask.",
    "Names the code that is slow to drop the GIL, a call into C as a rule. The rate is the "
    "share of the time for which a drop request to it is unanswered, of a service the sum of its "
    "processes.",
    "holder",
)
GIL_SLOW_DROPS = of_process(
    "gilscope_gil_slow_drops_total",
    "counter",
    "Requests to drop the GIL that took longer than 10 ms, by where the holder stood. Left out on "
    "PyPy and CPython 2.7.",
    "Slow drop time divided by this is how long the holder takes to release the GIL.",
    "holder",
)
GIL_STACK_SAMPLING_RATIO = of_process(
    "gilscope_gil_stack_sampling_ratio",
    "gauge",
    "Share of the waits whose stacks are read now.",
    "Below 1, reading them all would cost more than the overhead budget: blocked time is estimated "
    "from those that are read. All else is as it would be if all were read.",
    together="min",
)
GIL_WAIT_ERROR = of_process(
    "gilscope_gil_wait_error_ratio",
    "gauge",
    "By how much of itself the estimated time of waits is off at most, in 19 of 20 cases.",
    "By the last windows of waits, a minute or a few. Only where waits are seen in windows.",
    together="max",
)
GIL_CONVOY_WAITS = of_process(
    "gilscope_gil_convoy_waits_total",
    "counter",
    "Waits after a blocking call that lasted at least one switch interval, or 5 ms on PyPy and "
    "CPython 2.7, which have none.",
    "Threads that do I/O queue behind threads that compute.",
    "interpreter",
)
GIL_FORCED_SWITCHES = of_process(
    "gilscope_gil_forced_switches_total",
    "counter",
    "Times that the evaluation loop made a thread release the GIL: preemptions. Left out on "
    "CPython 2.7, which releases it every so many ticks, whether anybody waits or not.",
    "Up to 200 a second where threads compute side by side; on PyPy, which counts bytecodes and "
    "not time, some hundreds.",
    "interpreter",
)
GIL_DROP_REQUESTS = of_process(
    "gilscope_gil_drop_requests_total",
    "counter",
    "Times that a waiting thread asked the holder to drop the GIL. Left out on PyPy and CPython "
    "2.7, whose threads do not ask.",
    "Far more than forced switches means holders that do not listen.",
    "interpreter",
)
GIL_FAILED_WAKEUPS = of_process(
    "gilscope_gil_failed_wakeups_total",
    "counter",
    "Times that a thread was woken because the GIL was free, and found it taken again (CPython 2.7 "
    "alone).",
    "Many for each wait mean that threads on other CPUs fight for the GIL and lose.",
)
GIL_FAILED_WAKEUP_WAIT = of_process(
    "gilscope_gil_failed_wakeup_wait_seconds_total",
    "counter",
    "Time that threads have waited for the GIL from the first failed wake-up of a wait to its end.",
    "The part of the wait time that a lock which is handed over would not have.",
)
GIL_WAITING_THREADS = of_process(
    "gilscope_gil_waiting_threads",
    "gauge",
    "Threads that wait for the GIL now.",
    "More than one at most times means that threads gain nothing.",
)
GIL_LONGEST_WAIT = of_process(
    "gilscope_gil_longest_wait_seconds",
    "gauge",
    "How long the longest wait in flight for the GIL has lasted.",
    "Seconds mean that something keeps the GIL and never releases it.",
    together="max",
)
GIL_LONGEST_HOLD = of_process(
    "gilscope_gil_longest_hold_seconds",
    "gauge",
    "How long the longest hold in flight has lasted; 0 while none is seen, as between windows.",
    "Seconds mean code that keeps the GIL, a C extension as a rule.",
    together="max",
)
TARGET_PROCESSES = of_process(
    "gilscope_target_processes",
    "gauge",
    "Processes that the figures are of now: those of the service that are traced, or 1 with "
    "--per-process; without those whose probes did not pass their checks.",
    "What counters are to be divided by where one process is meant, and not the service.",
)
TARGET_INFO = of_process(
    "gilscope_target_info",
    "gauge",
    "Always 1; the labels say whose lock the threads of this process wait for, its version, and "
    "what the process calls its service, if it says so (OpenTelemetry's process context). Of a "
    "service whose processes differ, those of most of them.",
    "For joining: which versions and services lose the most, which figures a runtime cannot have.",
    "runtime",
    "version",
    "service",
)
TARGET_OVERHEAD_RATIO = of_process(
    "gilscope_target_overhead_ratio",
    "gauge",
    "Estimated cost of tracing this process in the last minute, by the CPU time that it used "
    "itself.",
    "In auto mode it stays below the overhead budget, unless all waits are to be seen and alone "
    "cost more; 0.01 is one percent.",
    together="max",
)
TARGET_OVERHEAD = of_process(
    "gilscope_target_overhead_seconds_total",
    "counter",
    "Estimated CPU time that tracing has cost this process: its traps times what a trap costs.",
    "Its rate is the part of a core that tracing takes from the process.",
)
TARGET_THROTTLED = of_process(
    "gilscope_target_throttled_seconds_total",
    "counter",
    "Time for which the CPU limit of its cgroup has kept this process from running, since it is "
    "traced; left out where no limit can be seen.",
    "Where holders keep the GIL in the state no_cpu, this says whether a CPU limit is the reason. "
    'By gilscope_gil_observed_seconds_total{window="all"} it is the share of the time.',
)
TARGET_TRAPS = of_process(
    "gilscope_target_traps_total",
    "counter",
    "Times that this process has run into a probe.",
    "Overhead divided by this is what a trap costs.",
)
PROBE_VALID = of_process(
    "gilscope_probe_valid",
    "gauge",
    "1 while the probes in this process pass their checks, else 0; then nothing else is reported.",
    "0 means no numbers, rather than wrong ones; the landing page says why.",
    "method",
    together="min",
)
LOST_EVENTS = of_process(
    "gilscope_lost_events_total",
    "counter",
    "Events that could not be counted in full, by reason.",
    "Anything but a few at attach (began_unseen) and at exit (abandoned) is worth a report.",
    "reason",
)
