"""What is exported of the agent itself."""

from gilscope.metrics.family import Family

__all__ = [
    "AGENT_BPF_MISSES",
    "AGENT_BPF_RUNS",
    "AGENT_BPF_RUN_TIME",
    "AGENT_CPU",
    "AGENT_LOG_LINES_LOST",
    "AGENT_PRIVATE",
    "AGENT_RESIDENT",
    "AGENT_SAMPLING",
    "AGENT_TABLE_BYTES",
    "AGENT_TABLE_CAPACITY",
    "AGENT_TABLE_ENTRIES",
    "AGENT_TRAPS",
    "AGENT_TRAP_COST",
    "BUILD_INFO",
    "CAPTURES",
    "SCRAPE_DURATION",
    "SCRAPE_SUCCESS",
    "TARGETS",
]

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
CAPTURES = Family(
    "gilscope_captures_total",
    "counter",
    "Waits that were longer than --capture-above by what became of them: written (what all threads "
    "did was captured), suppressed (it had been captured less than a minute before), failed.",
    "Above 0, the landing page has the last captures. Where some have failed, the log says why.",
    ("outcome",),
)
BUILD_INFO = Family(
    "gilscope_build_info",
    "gauge",
    "Always 1; the labels say which gilscope and which BCC this is.",
    "For joining and for telling hosts apart.",
    ("version", "bcc_version"),
)
