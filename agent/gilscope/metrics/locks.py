"""What is exported of the locks that threads of live processes wait for besides the GIL."""

from gilscope.metrics.family import of_process

__all__ = [
    "LOCK_BLOCKED",
    "LOCK_BLOCKED_TIMES",
    "LOCK_IDLE",
    "LOCK_LOST_EVENTS",
    "LOCK_OBSERVED",
    "LOCK_OVERHEAD",
    "LOCK_OVERHEAD_RATIO",
    "LOCK_PROBE_VALID",
    "LOCK_TRAPS",
    "LOCK_WAIT",
    "LOCK_WAITS",
    "WORLD_STOPPED",
    "WORLD_STOPPING",
    "WORLD_STOPS",
]

LOCK_PROBE_VALID = of_process(
    "gilscope_lock_probe_valid",
    "gauge",
    "1 while the figures on locks of this process can be trusted, else 0.",
    "At 0, the log of gilscope and gilscope record --locks say why.",
    together="min",
)
LOCK_OBSERVED = of_process(
    "gilscope_lock_observed_seconds_total",
    "counter",
    "Time that the locks of this process were observed. full: covered by windows in which every "
    "wait is seen; all: since the attachment.",
    "What all figures on locks are to be divided by: the rate of full by that of all is the share "
    "of the time that they are of, 1 unless that would cost more than the overhead budget.",
    "window",
)
LOCK_WAIT = of_process(
    "gilscope_lock_wait_seconds_total",
    "counter",
    "Time that threads waited for a lock, by what that is; of world_stop it is the time for which "
    "they were stopped. Waits in flight are included unless locks are seen in windows.",
    "The rate is the number of threads that wait at any moment.",
    "kind",
)
LOCK_WAITS = of_process(
    "gilscope_lock_waits_total",
    "counter",
    "Waits for a lock, by what that is; those in flight likewise.",
    "Time divided by this is the mean wait.",
    "kind",
)
LOCK_IDLE = of_process(
    "gilscope_lock_idle_seconds_total",
    "counter",
    "Time that threads waited for something to do, by a lock: a condition, an event, a queue.",
    "No contention: the rate is the number of threads that have nothing to do.",
)
LOCK_BLOCKED = of_process(
    "gilscope_lock_blocked_seconds_total",
    "counter",
    "Time lost by the place of the waiting thread, by that of the thread that released the lock, "
    "by the type of the object and by kind. The costliest places have series of their own, which "
    "begin at 0 when a place gets them; the others are under other.",
    "Tells which lines make each other wait, and for which lock.",
    "waiter",
    "releaser",
    "type",
    "kind",
)
LOCK_BLOCKED_TIMES = of_process(
    "gilscope_lock_blocked_total",
    "counter",
    "Waits by the same labels as gilscope_lock_blocked_seconds_total.",
    "Time divided by this is the mean wait at a place.",
    "waiter",
    "releaser",
    "type",
    "kind",
)
WORLD_STOPS = of_process(
    "gilscope_lock_world_stops_total",
    "counter",
    "Stops of the world, by cause: gc for a collection, or other. Of a build in which it is not "
    "known where the world is stopped, those that made any thread wait.",
    "The rate is how often the world is stopped; without a GIL only.",
    "cause",
)
WORLD_STOPPING = of_process(
    "gilscope_lock_world_stopping_seconds_total",
    "counter",
    "Time from asking for a stop of the world until the last thread had stopped.",
    "Divided by the stops, how long the threads take: more than a millisecond is a call that does "
    "not detach.",
    "cause",
)
WORLD_STOPPED = of_process(
    "gilscope_lock_world_stopped_seconds_total",
    "counter",
    "Time for which the world stood still: from when the last thread had stopped until the last "
    "one was woken.",
    "The rate by that of the time observed is the share of the time in which nothing runs but what "
    "has asked for it.",
    "cause",
)
LOCK_TRAPS = of_process(
    "gilscope_lock_traps_total",
    "counter",
    "Times that the process ran into a probe on locks.",
    "Each costs it about 2 us.",
)
LOCK_OVERHEAD = of_process(
    "gilscope_lock_overhead_seconds_total",
    "counter",
    "CPU time that tracing locks has cost the process, by gilscope's own estimate.",
    "It is not part of gilscope_target_overhead_seconds_total.",
)
LOCK_OVERHEAD_RATIO = of_process(
    "gilscope_lock_overhead_ratio",
    "gauge",
    "The same of the last minute, by the CPU time that the process used itself.",
    "Stays within the overhead budget but for the first window.",
    together="max",
)
LOCK_LOST_EVENTS = of_process(
    "gilscope_lock_lost_events_total",
    "counter",
    "Waits for locks that were not counted in full, by reason.",
    "Should stay at 0; docs/locks.md explains each reason.",
    "reason",
)
