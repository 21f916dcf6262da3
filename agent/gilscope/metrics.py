"""The table of every exported metric: the one source of the exporter, its pages and tests."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["FAMILIES", "PROCESS_LABELS", "Family", "Type"]

Type = Literal["counter", "gauge", "histogram"]

PROCESS_LABELS = ("process", "pid", "container_id", "pod_uid")
"""On every series about a traced process; empty where unknown."""


@dataclass(frozen=True, slots=True)
class Family:
    """One exported family of time series."""

    name: str
    """As Prometheus stores it, without _bucket, _sum and _count."""
    type: Type
    help: str
    reads_as: str
    """One sentence for operators: what a high or low value means."""
    labels: tuple[str, ...] = ()


def _of_process(name: str, kind: Type, text: str, reads_as: str, *labels: str) -> Family:
    return Family(name, kind, text, reads_as, (*PROCESS_LABELS, *labels))


GIL_WAIT = _of_process(
    "gilscope_gil_wait_seconds",
    "histogram",
    "Time from a thread's need for the GIL until it holds it, finished waits only.",
    "Values from the switch interval (5 ms) upwards mean that threads queue for the interpreter.",
    "interpreter",
    "after",
)
GIL_DROP_LATENCY = _of_process(
    "gilscope_gil_drop_latency_seconds",
    "histogram",
    "Time from the first request to drop the GIL until the holder let go.",
    "Much more than a millisecond means code that does not let go, as C extensions may.",
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
    "Times that a thread was made to yield the GIL by the evaluation loop.",
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
    "How long the longest wait for the GIL that is still going on has lasted.",
    "Seconds mean that something keeps the GIL without ever letting go.",
)
TARGETS = Family(
    "gilscope_targets",
    "gauge",
    "Processes by state: traced, invalid (the probes could not be trusted), refused.",
    "Refused ones are Pythons that gilscope found and cannot trace; the landing page says why.",
    ("state",),
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
SCRAPE_DURATION = Family(
    "gilscope_scrape_duration_seconds",
    "gauge",
    "Time that reading the kernel's maps took in this scrape.",
    "Should stay in the milliseconds.",
)
SCRAPE_SUCCESS = Family(
    "gilscope_scrape_success",
    "gauge",
    "1 if this scrape could read the kernel's maps, else 0.",
    "0 means that the figures about processes are missing; the log says why.",
)
BUILD_INFO = Family(
    "gilscope_build_info",
    "gauge",
    "Always 1; the labels say which gilscope and which BCC this is.",
    "For joining and for telling hosts apart.",
    ("version", "bcc_version"),
)

FAMILIES = (
    GIL_WAIT,
    GIL_DROP_LATENCY,
    GIL_THREAD_WAIT,
    GIL_THREAD_WAITS,
    GIL_CONVOY_WAITS,
    GIL_FORCED_SWITCHES,
    GIL_DROP_REQUESTS,
    GIL_WAITING_THREADS,
    GIL_LONGEST_WAIT,
    TARGETS,
    PROBE_VALID,
    LOST_EVENTS,
    SCRAPE_DURATION,
    SCRAPE_SUCCESS,
    BUILD_INFO,
)
"""In the order in which they are exported and documented."""
