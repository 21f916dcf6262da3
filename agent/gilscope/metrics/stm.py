"""What is exported of transactions, of live processes and of logs of PyPy-STM."""

from gilscope.metrics.family import Family, of_process, of_transactions

__all__ = [
    "STM_ABORT_COST",
    "STM_CONFLICTS",
    "STM_GC",
    "STM_INEVITABLE",
    "STM_LOG_BYTES",
    "STM_LOG_ERRORS",
    "STM_LOG_LAG",
    "STM_OBSERVED",
    "STM_RESTARTS",
    "STM_SITE_ABORT_COST",
    "STM_SITE_PAUSE",
    "STM_TRANSACTION",
    "STM_TRANSACTIONS",
    "STM_WAIT",
    "STM_WAITS",
]

STM_TRANSACTIONS = of_transactions(
    "gilscope_stm_transactions_total",
    "counter",
    "Ends of transactions. commit: they took effect; abort: a try failed and is made again; "
    "cancel: the program itself gave one up.",
    "The share of aborts is the share of work that is done twice. Of a live process only those are "
    "counted that windows have seen: divide by the rate of gilscope_stm_observed_seconds_total"
    '{window="full"}.',
    "outcome",
)
STM_OBSERVED = of_process(
    "gilscope_stm_observed_seconds_total",
    "counter",
    "Time that the transactions of a live process were observed. full: covered by windows in which "
    "every transaction is seen; all: since the attachment.",
    "What all figures of live transactions are to be divided by: the rate of full is the share of "
    "the time that they are of, 1 unless that would cost more than the overhead budget.",
    "window",
)
STM_TRANSACTION = of_transactions(
    "gilscope_stm_transaction_seconds",
    "histogram",
    "Time of committed transactions: run time of those of PyPy-STM, without pauses and failed "
    "tries; from begin to commit with GCC's libitm.",
    "Long transactions are the ones that collide; PyPy ends them after a share of its nursery.",
)
STM_ABORT_COST = of_transactions(
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
STM_WAIT = of_transactions(
    "gilscope_stm_wait_seconds_total",
    "counter",
    "All time for which threads stood still, by what they waited for, whether in a transaction or "
    "not; that of gilscope_stm_pause_seconds_total is part of it.",
    "WAIT_FREE_SEGMENT means more threads than segments (4 in C7, 8 in C8).",
    "kind",
)
STM_WAITS = of_process(
    "gilscope_stm_waits_total",
    "counter",
    "Finished waits of transactions, and for a segment to begin one in.",
    "Time divided by this is the mean wait.",
    "kind",
)
STM_INEVITABLE = of_process(
    "gilscope_stm_inevitable_total",
    "counter",
    "Times that a thread asked for its transaction to be one that cannot be aborted, by the "
    "reason that the program gives; the 64 reasons that come first have series of their own.",
    "Only one transaction of a process can be such at a time, so each is a place where threads "
    "queue.",
    "reason",
)
STM_RESTARTS = of_process(
    "gilscope_stm_restarts_total",
    "counter",
    "Tries that libitm has given up, by its own reasons.",
    "LOCKED and VALIDATE are conflicts; SERIAL_IRR ends in a transaction that runs alone.",
    "reason",
)
STM_GC = of_transactions(
    "gilscope_stm_gc_seconds_total",
    "counter",
    "Time in collections of garbage, by generation: minor, major. It is part of the run time.",
    "Its rate is the number of threads that collect at any moment.",
    "generation",
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
