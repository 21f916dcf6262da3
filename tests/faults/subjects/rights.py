"""Rights that the agent or its target does not have."""

import subprocess
import time
from pathlib import Path

from faults.bench import Bench
from faults.registry import NotHere, Verdict, fault
from faults.targets import AS_NOBODY

_CALLS = {
    "pidfd_open": 434,
    "epoll_create1": 291,
    "clone3": 435,
    "perf_event_open": 298,
    "bpf": 321,
    "process_vm_readv": 310,
    "inotify_init1": 294,
    "eventfd2": 290,
    "memfd_create": 319,
    "sched_setaffinity": 203,
    "openat2": 437,
    "prctl": 157,
    "setns": 308,
    "statx": 332,
    "getrandom": 318,
}
_ANSWERS = {"EPERM": 0x50001, "ENOSYS": 0x50026}
_KILL = 0x80000000
_UPROBE, _URETPROBE = 336, 335

# Answers one system call by itself from then on, for whatever it executes.
_FILTER = """
import ctypes, os, struct, sys
answer, numbers = int(sys.argv[1]), [int(number) for number in sys.argv[2].split(",")]
program = struct.pack("=HBBI", 0x20, 0, 0, 0)
for index, number in enumerate(numbers):
    program += struct.pack("=HBBI", 0x15, len(numbers) - index, 0, number)
program += struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000) + struct.pack("=HBBI", 6, 0, 0, answer)
code = ctypes.create_string_buffer(program, len(program))
count = len(program) // 8
kept = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", count, ctypes.addressof(code)), 16)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, kept, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[3], sys.argv[3:])
"""


def _filtered(answer: int, *numbers: int) -> tuple[str, ...]:
    listed = ",".join(map(str, numbers))
    return ("/usr/bin/python3.11", "-SEc", _FILTER, str(answer), listed)


def _seccomp_agent(call: str) -> None:
    @fault(
        f"seccomp_agent_{call}",
        f"seccomp denies the agent {call} (EPERM, ENOSYS): works, or exit code 5/6 and words",
        half=call == "pidfd_open",
    )
    def check(bench: Bench) -> None:
        target = bench.target()
        for name, answer in _ANSWERS.items():
            line = ("record", "-p", str(target.pid), "-d", "0.5")
            outcome = bench.run(*line, wrapper=_filtered(answer, _CALLS[call]))
            words = f"{call}={name}: exit code {outcome.exit_code}: {outcome.messages[-200:]!r}"
            bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in (0, 5, 6), words)
            bench.says_plainly(outcome.messages, f"{call}={name}")


for _call in _CALLS:
    _seccomp_agent(_call)


@fault(
    "seccomp_agent_kill",
    "seccomp kills the agent at bpf, pidfd_open, perf_event_open: target unharmed",
)
def _seccomp_agent_kill(bench: Bench) -> None:
    target = bench.target()
    for call in ("bpf", "pidfd_open", "perf_event_open"):
        wrapper = _filtered(_KILL, _CALLS[call])
        bench.run("record", "-p", str(target.pid), "-d", "0.5", wrapper=wrapper)
        target.advances()


@fault(
    "seccomp_target",
    "seccomp kills the target at uprobe and uretprobe: it lives in every mode",
    half=True,
)
def _seccomp_target(bench: Bench) -> None:
    target = bench.target(prefix=_filtered(_KILL, _UPROBE, _URETPROBE))
    for mode in ("contention", "full"):
        bench.reports_rightly(target, "--mode", mode)
    service = bench.serve("-p", str(target.pid), "--mode", "auto")
    bench.counts_rightly(service, target)


_STRICT = """
import ctypes, os, struct
allowed = (0, 1, 3, 9, 10, 11, 12, 13, 14, 15, 24, 28, 35, 39, 60, 96, 186)
allowed += (202, 228, 230, 231, 232, 318)
code = struct.pack("=HBBI", 0x20, 0, 0, 0)
for index, number in enumerate(allowed):
    code += struct.pack("=HBBI", 0x15, len(allowed) - index, 0, number)
code += struct.pack("=HBBI", 6, 0, 0, 0x80000000) + struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000)
text = ctypes.create_string_buffer(code, len(code))
head = struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(text))
kept = ctypes.create_string_buffer(head, 16)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
result = libc.syscall(317, 1, 1, kept)
"""


@fault("seccomp_target_strict", "a sandboxed target that may do next to nothing: traced, and lives")
def _seccomp_target_strict(bench: Bench) -> None:
    target = bench.target()
    bench.equal(Verdict.BROKEN, 0, target.do(_STRICT), "the target's seccomp filter")
    for mode in ("contention", "full"):
        bench.reports_rightly(target, "--mode", mode)


def _capability(kept: str, missing: str) -> None:
    @fault(
        f"without_{missing.lower()}",
        f"only {kept}, without {missing}: works, or exit code 5 and words that name it",
        half=missing == "CAP_PERFMON",
    )
    def check(bench: Bench) -> None:
        target = bench.target(prefix=AS_NOBODY)
        wanted = "".join(f",+{name}" for name in kept.split("+"))
        line = ("record", "-p", str(target.pid), "-d", "0.5")
        outcome = bench.run(*line, wrapper=("setpriv", f"--bounding-set=-all{wanted}"))
        words = f"exit code {outcome.exit_code}: {outcome.messages[-300:]!r}"
        bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in (0, 5), words)
        if outcome.exit_code:
            bench.expect(Verdict.UNCLEAR_MESSAGE, missing in outcome.messages, words)


for _kept, _missing in (
    ("bpf+sys_ptrace+dac_read_search", "CAP_PERFMON"),
    ("perfmon+sys_ptrace+dac_read_search", "CAP_BPF"),
    ("bpf+perfmon+dac_read_search", "CAP_SYS_PTRACE"),
    ("bpf+perfmon+sys_ptrace", "CAP_DAC_READ_SEARCH"),
):
    _capability(_kept, _missing)


@fault(
    "unprivileged", "as nobody: exit code 5 and the capabilities, from record and serve; stm works"
)
def _unprivileged(bench: Bench) -> None:
    target = bench.target()
    pid = str(target.pid)
    for line in (("record", "-p", pid), ("serve", "-p", pid, "--listen", "127.0.0.1:0")):
        outcome = bench.run(*line, wrapper=AS_NOBODY, extra={"XDG_CACHE_HOME": "/nonexistent"})
        words = f"{line[0]}: exit code {outcome.exit_code}: {outcome.messages[-300:]!r}"
        is_told = outcome.exit_code == 5 and "CAP_" in outcome.messages
        bench.expect(Verdict.UNCLEAR_MESSAGE, is_told, words)


_HIDDEN = {
    "sys": "/sys",
    "kallsyms": "/proc/kallsyms",
    "pressure": "/sys/devices/system/cpu",
}


def _hidden(name: str) -> None:
    @fault(f"hidden_{name}", f"no {_HIDDEN[name]}: works, or says what is missing", mounts=True)
    def check(bench: Bench) -> None:
        target = bench.target()
        path = Path(_HIDDEN[name])
        what = ["--bind", "/dev/null"] if path.is_file() else ["-t", "tmpfs", "none"]
        hide = f'mount {" ".join(what)} {path} && exec "$@"'
        wrapper = ("unshare", "--mount", "sh", "-c", hide, "sh")
        outcome = bench.run("record", "-p", str(target.pid), "-d", "0.5", wrapper=wrapper)
        words = f"exit code {outcome.exit_code}: {outcome.messages[-300:]!r}"
        bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in (0, 5, 6), words)


for _name in _HIDDEN:
    _hidden(_name)


@fault(
    "no_proc",
    "/proc without other processes, and no /proc at all: words and an exit code",
    mounts=True,
)
def _no_proc(bench: Bench) -> None:
    target = bench.target()
    empty = 'mount -t tmpfs none /proc && exec "$@"'
    for wrapper in (
        ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
        ("unshare", "--mount", "sh", "-c", empty, "sh"),
    ):
        outcome = bench.run("record", "-p", str(target.pid), "-d", "0.5", wrapper=wrapper)
        words = f"exit code {outcome.exit_code}: {outcome.messages[-300:]!r}"
        bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in (3, 5, 6, 13), words)


_SYSCTLS = {
    "kernel/perf_event_paranoid": "3",
    "kernel/kptr_restrict": "2",
    "kernel/yama/ptrace_scope": "2",
}


@fault(
    "sysctls",
    "perf_event_paranoid 3, kptr_restrict 2, ptrace_scope 2 for seconds: root traces all the same",
    opt_in="it changes settings of the whole machine for some seconds",
)
def _sysctls(bench: Bench) -> None:
    target = bench.target()
    for name, value in _SYSCTLS.items():
        setting = Path("/proc/sys") / name
        if not setting.exists():
            continue
        before = setting.read_text()
        try:
            setting.write_text(value)
            bench.reports_rightly(target)
        finally:
            setting.write_text(before)


@fault(
    "nice_and_idle", "an agent that gets the CPU last (SCHED_IDLE) beside a busy target: answers"
)
def _nice_and_idle(bench: Bench) -> None:
    target = bench.target()
    tried = subprocess.run(["chrt", "--idle", "0", "true"], capture_output=True, check=False)
    if tried.returncode:
        raise NotHere("chrt cannot set SCHED_IDLE here")
    service = bench.serve("-p", str(target.pid), wrapper=("chrt", "--idle", "0"))
    bench.counts_rightly(service, target)
    began_s = time.monotonic()
    bench.lives(service)
    taken_s = time.monotonic() - began_s
    bench.expect(Verdict.HANGS, taken_s < 30, f"a scrape takes {taken_s:.0f} s")
