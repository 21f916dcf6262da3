"""The table of every exported metric: the one source of the exporter, its pages and tests."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["FAMILIES", "PROCESS_LABELS", "Family", "Type"]

Type = Literal["counter", "gauge", "histogram"]

PROCESS_LABELS = ("process", "pid", "container_id", "pod_uid")
"""On every series about a traced process; empty where unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One exported family of time series. There is one object for each."""

    name: str
    """As Prometheus stores it, without _bucket, _sum and _count."""
    type: Type
    help: str
    reads_as: str
    """One sentence for operators: what a high or low value means."""
    labels: tuple[str, ...] = ()


def _of_process(name: str, kind: Type, text: str, reads_as: str, *labels: str) -> Family:
    return Family(name, kind, text, reads_as, (*PROCESS_LABELS, *labels))


def _of_transactions(name: str, kind: Type, text: str, reads_as: str, *labels: str) -> Family:
    # Of a live process, and then the log is empty, or of a log, and then nothing else is known.
    return _of_process(name, kind, text, reads_as, "log", *labels)


GIL_WAIT = _of_process(
    "gilscope_gil_wait_seconds",
    "histogram",
    "Time from a thread's need for the GIL until it holds it, finished waits only.",
    "Values from the switch interval (5 ms) upwards mean that threads queue for the interpreter.",
    "interpreter",
    "after",
)
GIL_HOLD = _of_process(
    "gilscope_gil_hold_seconds",
    "histogram",
    "Time from the acquisition of the GIL to its release, of the finished holds that began in a "
    "window of full mode.",
    "Long holds are what others wait for. Holds a second of observed time: the rate of the count "
    'divided by that of gilscope_gil_observed_seconds_total{window="full"}.',
    "interpreter",
)
GIL_SWITCH_LATENCY = _of_process(
    "gilscope_gil_switch_latency_seconds",
    "histogram",
    "Time from a release of the GIL in a window of full mode to its acquisition by another thread "
    "that was waiting for it.",
    "Tens of microseconds are a wake-up; much more means that the waiters lack a free CPU.",
    "interpreter",
)
GIL_DROP_LATENCY = _of_process(
    "gilscope_gil_drop_latency_seconds",
    "histogram",
    "Time from the first request to drop the GIL until the holder released it.",
    "Much more than a millisecond means code that does not release the GIL, as C extensions may.",
    "interpreter",
)
GIL_THREAD_WAIT = _of_process(
    "gilscope_gil_thread_wait_seconds_total",
    "counter",
    "Time that the threads of a role have lost waiting for the GIL, waits in flight included.",
    "Its rate is the number of threads of this role that wait at any moment.",
    "role",
)
GIL_THREAD_WAITS = _of_process(
    "gilscope_gil_thread_waits_total",
    "counter",
    "Finished waits for the GIL of the threads of a role.",
    "Time divided by this is the mean wait.",
    "role",
)
GIL_THREAD_HOLD = _of_process(
    "gilscope_gil_thread_hold_seconds_total",
    "counter",
    "Time inside windows of full mode that the threads of a role held the GIL, a hold in flight "
    "included.",
    'Its rate divided by that of gilscope_gil_observed_seconds_total{window="full"} is the share '
    "of the time that the role has the GIL.",
    "role",
)
GIL_THREAD_HOLDS = _of_process(
    "gilscope_gil_thread_holds_total",
    "counter",
    "Finished holds of the threads of a role that began in a window of full mode.",
    "Hold time divided by this is the mean hold, roughly: windows cut the time, not the number.",
    "role",
)
GIL_HELD = _of_process(
    "gilscope_gil_held_seconds_total",
    "counter",
    "Time that the GIL was held, by anybody. full: inside windows of full mode, exactly; all: "
    "since the attachment, between windows estimated from samples of the lock at random times.",
    "The rate of all is the share of the time that the GIL is held: near 1, more threads gain "
    "nothing.",
    "interpreter",
    "window",
)
GIL_OBSERVED = _of_process(
    "gilscope_gil_observed_seconds_total",
    "counter",
    "Time that was observed. full: covered by windows of full mode; all: since the attachment.",
    "What holds and hold times are to be divided by; the rate of full is the share of the time "
    "that windows cover.",
    "window",
)
GIL_BLOCKED = _of_process(
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
GIL_BLOCKED_TIMES = _of_process(
    "gilscope_gil_blocked_total",
    "counter",
    "How often a wait came to be this holder's; one that is kept up by three holders in turn is "
    "counted with each of them.",
    "Blocked time divided by this is how long the holder keeps a waiter.",
    "waiter",
    "holder",
    "kind",
)
GIL_SLOW_DROP = _of_process(
    "gilscope_gil_slow_drop_seconds_total",
    "counter",
    "Time from a request to drop the GIL until the holder released it, by where the holder stood; "
    "only of requests that took longer than 10 ms.",
    "Names the code that is slow to drop the GIL, a call into C as a rule. The rate is the "
    "share of the time for which a drop request to it is unanswered.",
    "holder",
)
GIL_SLOW_DROPS = _of_process(
    "gilscope_gil_slow_drops_total",
    "counter",
    "Requests to drop the GIL that took longer than 10 ms, by where the holder stood.",
    "Slow drop time divided by this is how long the holder takes to release the GIL.",
    "holder",
)
GIL_STACK_SAMPLING_RATIO = _of_process(
    "gilscope_gil_stack_sampling_ratio",
    "gauge",
    "Share of the waits whose stacks are read now.",
    "Below 1, reading them all would cost more than the overhead budget: blocked time is estimated "
    "from those that are read. All else is counted.",
)
GIL_CONVOY_WAITS = _of_process(
    "gilscope_gil_convoy_waits_total",
    "counter",
    "Waits after a blocking call that lasted at least one switch interval.",
    "Threads that do I/O queue behind threads that compute.",
    "interpreter",
)
GIL_FORCED_SWITCHES = _of_process(
    "gilscope_gil_forced_switches_total",
    "counter",
    "Times that the evaluation loop made a thread release the GIL: preemptions.",
    "Up to 200 a second where threads compute side by side.",
    "interpreter",
)
GIL_DROP_REQUESTS = _of_process(
    "gilscope_gil_drop_requests_total",
    "counter",
    "Times that a waiting thread asked the holder to drop the GIL.",
    "Far more than forced switches means holders that do not listen.",
    "interpreter",
)
GIL_WAITING_THREADS = _of_process(
    "gilscope_gil_waiting_threads",
    "gauge",
    "Threads that wait for the GIL now.",
    "More than one at most times means that threads gain nothing.",
)
GIL_LONGEST_WAIT = _of_process(
    "gilscope_gil_longest_wait_seconds",
    "gauge",
    "How long the longest wait in flight for the GIL has lasted.",
    "Seconds mean that something keeps the GIL and never releases it.",
)
GIL_LONGEST_HOLD = _of_process(
    "gilscope_gil_longest_hold_seconds",
    "gauge",
    "How long the longest hold in flight has lasted; 0 while none is seen, as between windows.",
    "Seconds mean code that keeps the GIL, a C extension as a rule.",
)
TARGET_OVERHEAD_RATIO = _of_process(
    "gilscope_target_overhead_ratio",
    "gauge",
    "Estimated cost of tracing this process in the last minute, by the CPU time that it used "
    "itself.",
    "In auto mode it stays below the overhead budget, unless waits alone cost more; 0.01 is one "
    "percent.",
)
TARGET_OVERHEAD = _of_process(
    "gilscope_target_overhead_seconds_total",
    "counter",
    "Estimated CPU time that tracing has cost this process: its traps times what a trap costs.",
    "Its rate is the part of a core that tracing takes from the process.",
)
TARGET_TRAPS = _of_process(
    "gilscope_target_traps_total",
    "counter",
    "Times that this process has run into a probe.",
    "Overhead divided by this is what a trap costs.",
)
PROBE_VALID = _of_process(
    "gilscope_probe_valid",
    "gauge",
    "1 while the probes in this process pass their checks, else 0; then nothing else is reported.",
    "0 means no numbers, rather than wrong ones; the landing page says why.",
    "method",
)
LOST_EVENTS = _of_process(
    "gilscope_lost_events_total",
    "counter",
    "Events that could not be counted in full, by reason.",
    "Anything but a few at attach (began_unseen) and at exit (abandoned) is worth a report.",
    "reason",
)
STM_TRANSACTIONS = _of_transactions(
    "gilscope_stm_transactions_total",
    "counter",
    "Ends of transactions. commit: they took effect; abort: a try failed and is made again; "
    "cancel: the program itself gave one up.",
    "The share of aborts is the share of work that is done twice. Of a live process only those are "
    "counted that windows have seen: divide by the rate of gilscope_stm_observed_seconds_total"
    '{window="full"}.',
    "outcome",
)
STM_OBSERVED = _of_process(
    "gilscope_stm_observed_seconds_total",
    "counter",
    "Time that the transactions of a live process were observed. full: covered by windows in which "
    "every transaction is seen; all: since the attachment.",
    "What all figures of live transactions are to be divided by: the rate of full is the share of "
    "the time that they are of, 1 unless that would cost more than the overhead budget.",
    "window",
)
STM_TRANSACTION = _of_transactions(
    "gilscope_stm_transaction_seconds",
    "histogram",
    "Time of committed transactions: run time of those of PyPy-STM, without pauses and failed "
    "tries; from begin to commit with GCC's libitm.",
    "Long transactions are the ones that collide; PyPy ends them after a share of its nursery.",
)
STM_ABORT_COST = _of_transactions(
    "gilscope_stm_abort_cost_seconds",
    "histogram",
    "Time that a try had run when it was aborted; without its pauses where all events are seen.",
    "The rate of its sum is the number of threads that do wasted work at any moment.",
)
STM_CONFLICTS = Family(
    "gilscope_stm_conflicts_total",
    "counter",
    "Conflicts by kind and place; of kinds that are only counted where they waited, the waits. The "
    "costliest places have series of their own, which begin at 0 when a place gets them; the "
    "others are under other.",
    "How often two transactions get in each other's way.",
    ("log", "kind", "site", "other_site"),
)
STM_SITE_ABORT_COST = Family(
    "gilscope_stm_abort_cost_seconds_by_site_total",
    "counter",
    "Run time of aborted transactions by the conflict that has aborted them; aborts for which the "
    "log names no conflict are in gilscope_stm_abort_cost_seconds alone.",
    "Tells which lines of code waste the work of others.",
    ("log", "kind", "site", "other_site"),
)
STM_SITE_PAUSE = Family(
    "gilscope_stm_pause_seconds_total",
    "counter",
    "Time for which transactions stood still because of a conflict.",
    "Tells which lines of code make others wait. The rate is the number of threads that do.",
    ("log", "kind", "site", "other_site"),
)
STM_WAIT = _of_transactions(
    "gilscope_stm_wait_seconds_total",
    "counter",
    "All time for which threads stood still, by what they waited for, whether in a transaction or "
    "not; that of gilscope_stm_pause_seconds_total is part of it.",
    "WAIT_FREE_SEGMENT means more threads than segments (4 in C7, 8 in C8).",
    "kind",
)
STM_WAITS = _of_process(
    "gilscope_stm_waits_total",
    "counter",
    "Finished waits of transactions, and for a segment to begin one in.",
    "Time divided by this is the mean wait.",
    "kind",
)
STM_INEVITABLE = _of_process(
    "gilscope_stm_inevitable_total",
    "counter",
    "Times that a thread asked for its transaction to be one that cannot be aborted, by the "
    "reason that the program gives; the 64 reasons that come first have series of their own.",
    "Only one transaction of a process can be such at a time, so each is a place where threads "
    "queue.",
    "reason",
)
STM_RESTARTS = _of_process(
    "gilscope_stm_restarts_total",
    "counter",
    "Tries that libitm has given up, by its own reasons.",
    "LOCKED and VALIDATE are conflicts; SERIAL_IRR ends in a transaction that runs alone.",
    "reason",
)
STM_GC = Family(
    "gilscope_stm_gc_seconds_total",
    "counter",
    "Time in collections of garbage, by generation: minor, major. It is part of the run time.",
    "Its rate is the number of threads that collect at any moment.",
    ("log", "generation"),
)
STM_LOG_BYTES = Family(
    "gilscope_stm_log_bytes_total",
    "counter",
    "Bytes that were read of a followed STM log.",
    "Its rate is how fast the program writes; that it stands still may mean that the program does.",
    ("log",),
)
STM_LOG_LAG = Family(
    "gilscope_stm_log_lag_bytes",
    "gauge",
    "Bytes that are written and not read yet. What the program has not flushed is in no file: up "
    "to 4096 bytes of each process.",
    "Should come back to 0; steady growth means that gilscope cannot keep up.",
    ("log",),
)
STM_LOG_ERRORS = Family(
    "gilscope_stm_log_errors_total",
    "counter",
    "What could not be opened or understood, by reason.",
    "Anything but a cut_record where a process was killed is worth checking on the landing page.",
    ("log", "reason"),
)
TARGETS = Family(
    "gilscope_targets",
    "gauge",
    "Processes by state: traced, invalid (the probes could not be trusted), refused.",
    "Refused ones are Pythons that gilscope found and cannot trace; the landing page says why.",
    ("state",),
)
SCRAPE_DURATION = Family(
    "gilscope_scrape_duration_seconds",
    "gauge",
    "Time that this scrape took: reading the kernel's maps and writing the figures down.",
    "Should stay in the milliseconds.",
)
SCRAPE_SUCCESS = Family(
    "gilscope_scrape_success",
    "gauge",
    "1 if this scrape could read the kernel's maps, else 0.",
    "0 means that the figures about processes are missing; the log says why.",
)
AGENT_BPF_RUN_TIME = Family(
    "gilscope_agent_bpf_run_seconds_total",
    "counter",
    "Time that a BPF program has run, as the kernel counts it; only while the sysctl "
    "kernel.bpf_stats_enabled is 1, which adds two clock readings to every run of every program "
    "on the host.",
    "Divided by the runs it is what a program costs; a trap costs more, for the way into the "
    "kernel and back.",
    ("program",),
)
AGENT_BPF_RUNS = Family(
    "gilscope_agent_bpf_runs_total",
    "counter",
    "Runs of a BPF program while the kernel counted them; only while the sysctl "
    "kernel.bpf_stats_enabled is 1.",
    "Tells which probe the traps come from.",
    ("program",),
)
AGENT_BPF_MISSES = Family(
    "gilscope_agent_bpf_misses_total",
    "counter",
    "Runs of BPF programs that the kernel left out, because the CPU was in the middle of one.",
    "Should stay 0: each one is an event that was not counted.",
)
AGENT_TRAPS = Family(
    "gilscope_agent_traps_total",
    "counter",
    "Times that any process has run into a probe, those that have ended included.",
    "Its rate times the cost of a trap is what all tracing takes from this host.",
)
AGENT_TRAP_COST = Family(
    "gilscope_agent_trap_cost_seconds",
    "gauge",
    "What a trap is taken to cost by site: full (an acquire or release), stepped (one whose "
    "instruction the kernel has to single-step), contention. measured: true where this machine "
    "was measured at the start, false where a high value is assumed.",
    "Overhead is reckoned with it, and windows of auto mode are sized by it.",
    ("site", "measured"),
)
AGENT_TABLE_ENTRIES = Family(
    "gilscope_agent_table_entries",
    "gauge",
    "Entries in a BPF map when it was last read; only of maps that are read anyway.",
    "Near the capacity, events of what finds no room are lost as table_full.",
    ("table",),
)
AGENT_TABLE_CAPACITY = Family(
    "gilscope_agent_table_capacity",
    "gauge",
    "Entries that a BPF map has room for; of the maps whose entries are known.",
    "What the entries are to be divided by.",
    ("table",),
)
AGENT_TABLE_BYTES = Family(
    "gilscope_agent_table_bytes",
    "gauge",
    "Kernel memory of a BPF map; before Linux 6.4 what it takes when full.",
    "Memory of gilscope that is in no process.",
    ("table",),
)
AGENT_RESIDENT = Family(
    "gilscope_agent_resident_bytes",
    "gauge",
    "Memory of the agent in RAM, shared with other processes or not.",
    "Steady but for new targets; steady growth is a leak.",
)
AGENT_PRIVATE = Family(
    "gilscope_agent_private_bytes",
    "gauge",
    "Memory of the agent in RAM that no other process maps.",
    "What would be free again without the agent.",
)
AGENT_CPU = Family(
    "gilscope_agent_cpu_seconds_total",
    "counter",
    "CPU time that the agent itself has used, in user space and in the kernel, and the process "
    "that holds its probes.",
    "Its rate is the part of a core that the agent takes, tracing cost in the processes apart.",
)
AGENT_SAMPLING = Family(
    "gilscope_agent_sampling_seconds_total",
    "counter",
    "CPU time of the agent that went into sampling locks between windows.",
    "Part of gilscope_agent_cpu_seconds_total; the price of held time.",
)
AGENT_LOG_LINES_LOST = Family(
    "gilscope_agent_log_lines_lost_total",
    "counter",
    "Lines of the agent's log that standard error did not take.",
    "Above 0, whoever reads the log is too slow or has gone, or the disk is full.",
)
BUILD_INFO = Family(
    "gilscope_build_info",
    "gauge",
    "Always 1; the labels say which gilscope and which BCC this is.",
    "For joining and for telling hosts apart.",
    ("version", "bcc_version"),
)

FAMILIES = tuple(family for family in tuple(globals().values()) if isinstance(family, Family))
"""In the order in which they are exported and documented, which is that of this table."""
