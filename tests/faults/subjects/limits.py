"""Limits on what the agent may have: descriptors, memory, processes, CPU time."""

from faults.bench import Bench
from faults.registry import Failed, Verdict, fault

_DOCUMENTED = (0, 1, 5, 6)
_STARTED = "gilscope"


def _works_or_says_why(bench: Bench, what: str, wrapper: tuple[str, ...], *named: str) -> None:
    """Expect a report, or a documented exit code and words that name one of *named*."""
    target = bench.target()
    for line in (("record", "-p", str(target.pid), "-d", "0.5"), ("doctor", "-p", str(target.pid))):
        outcome = bench.run(*line, wrapper=wrapper)
        text = outcome.output + outcome.messages
        words = f"{line[0]} with {what}: exit code {outcome.exit_code}: {text[-200:]!r}"
        try:
            is_documented = outcome.exit_code in _DOCUMENTED
            bench.expect(Verdict.UNCLEAR_MESSAGE, is_documented, words)
            bench.says_plainly(text, f"{line[0]} with {what}")
            if outcome.exit_code and line[0] == "record":
                is_named = any(word in text for word in named)
                bench.expect(Verdict.UNCLEAR_MESSAGE, is_named, words)
        except Failed as failed:
            bench.failures.append(failed)


def _descriptors(limit: int) -> None:
    @fault(
        f"nofile_{limit}",
        f"RLIMIT_NOFILE {limit}: works, or exit code 6 and words that name the limit",
        half=limit == 64,
    )
    def check(bench: Bench) -> None:
        wrapper = ("prlimit", f"--nofile={limit}")
        words = ("open files", "NOFILE", "descriptors", "ulimit -n")
        _works_or_says_why(bench, f"{limit} descriptors", wrapper, *words)


for _limit in (256, 128, 64, 32, 16):
    _descriptors(_limit)


def _address_space(megabytes: int) -> None:
    @fault(
        f"address_space_{megabytes}",
        f"RLIMIT_AS {megabytes} MB: works, or says that memory is short, and does not crash",
        half=megabytes == 100,
    )
    def check(bench: Bench) -> None:
        wrapper = ("prlimit", f"--as={megabytes * 1_000_000}")
        _works_or_says_why(bench, f"{megabytes} MB", wrapper, "memory", "RLIMIT_AS", "thread")


for _megabytes in (2000, 400, 150, 100, 60):
    _address_space(_megabytes)


@fault("memlock", "RLIMIT_MEMLOCK 0 and 64 kB: works, or says so")
def _memlock(bench: Bench) -> None:
    for limit in (0, 65536):
        wrapper = ("prlimit", f"--memlock={limit}")
        _works_or_says_why(bench, f"memlock {limit}", wrapper, "MEMLOCK", "ulimit -l", "memory")


@fault("other_rlimits", "RLIMIT_STACK 256 kB, RLIMIT_CORE 0: works")
def _other_rlimits(bench: Bench) -> None:
    target = bench.target()
    for limit in ("stack=262144", "core=0"):
        bench.reports_rightly(target, wrapper=("prlimit", f"--{limit}"))


@fault("pending_signals", "RLIMIT_SIGPENDING 0: works, or says so")
def _pending_signals(bench: Bench) -> None:
    _works_or_says_why(bench, "no pending signals", ("prlimit", "--sigpending=0"), "ulimit -i")


@fault("cpu_limit", "RLIMIT_CPU 1 s: the agent ends by SIGXCPU or SIGKILL, target unharmed")
def _cpu_limit(bench: Bench) -> None:
    target = bench.target()
    for mode in ("contention", "full"):
        extra = {"XDG_CACHE_HOME": str(bench.folder / mode)}
        line = ("record", "-p", str(target.pid), "-d", "2", "--mode", mode)
        bench.run(*line, wrapper=("prlimit", "--cpu=1"), extra=extra)
        target.advances()
