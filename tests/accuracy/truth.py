"""Starts the workloads under a given interpreter, and turns what they answer into values."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from support.paths import WORKLOADS

__all__ = [
    "CpuSplit",
    "ExactCounts",
    "KnownWaits",
    "ThreadTruth",
    "Waits",
    "Workload",
    "WorkloadFailed",
    "exact_counts",
    "known_waits",
    "spoken_to",
    "started",
    "thread_truths",
]

_PATIENCE_S = 30.0

Answer = Mapping[str, Any]
"""One JSON line of a workload."""


class WorkloadFailed(Exception):
    """A workload ended, or said something else, where an answer was due."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How often, and for how long in all."""

    waits: int
    wait_ns: int


@dataclass(frozen=True, slots=True)
class CpuSplit:
    """A thread's time as the kernel counts it, to check the thread's own clock against."""

    wall_ns: int
    cpu_ns: int
    run_delay_ns: int
    """Ready to run, but no CPU was free; part of it belongs to waits, at their ends."""

    @property
    def off_cpu_ns(self) -> int:
        """Return an upper bound of the time that the thread waited."""
        return self.wall_ns - self.cpu_ns

    @property
    def asleep_ns(self) -> int:
        """Return a lower bound of the time that the thread waited."""
        return self.off_cpu_ns - self.run_delay_ns


@dataclass(frozen=True, slots=True)
class ThreadTruth:
    """What one thread of a workload did, by its own clock."""

    tid: int
    name: str
    role: str | None
    """None for a thread that Python did not start."""
    total: Waits
    blocking_call: Waits
    preemption: Waits
    convoy_waits: int
    """Waits after a blocking call that lasted for a switch interval or more."""
    hold_ns: int
    holds: int
    wall_ns: int
    kernel: CpuSplit | None
    """Only for a thread of pure Python."""


@dataclass(frozen=True, slots=True)
class KnownWaits:
    """The answer of known_waits.py."""

    seconds: float
    threads: tuple[ThreadTruth, ...]

    def of_kind(self, kind: str) -> tuple[ThreadTruth, ...]:
        """Return the threads whose names begin with *kind* and a hyphen."""
        return tuple(thread for thread in self.threads if thread.name.startswith(f"{kind}-"))


@dataclass(frozen=True, slots=True)
class ExactCounts:
    """The answer of exact_count.py."""

    is_exact: bool
    """False where the machine stalled for so long that the run proves nothing."""
    timeouts_are_exact: bool
    waits: int
    convoy_waits: int
    drop_requests: int
    forced_switches: int
    timeouts: int
    wait_ns: tuple[int, ...]
    waiter: ThreadTruth
    holder: ThreadTruth


class Workload:
    """A running workload that has said it is ready."""

    def __init__(self, process: subprocess.Popen[str], ready: Answer) -> None:
        self._process = process
        self.ready = ready
        self.pid = int(ready["pid"])

    def command(self, text: str = "") -> None:
        """Send one line: the first one lets the workload begin.

        Raises WorkloadFailed if the workload has ended.
        """
        stdin = _pipe(self._process.stdin)
        try:
            stdin.write(f"{text}\n")
            stdin.flush()
        except BrokenPipeError as error:
            raise WorkloadFailed(f"the workload ended before {text!r}") from error

    def answer(self) -> Answer:
        """Return the next line, waiting for it. Raises WorkloadFailed at the end of them."""
        return _read_answer(self._process)

    def run(self) -> Answer:
        """Begin, and return the result; the threads stay where they are until `finish`."""
        self.command()
        while not (answer := self.answer()).get("done"):
            pass
        return answer

    def await_rest(self) -> None:
        """Return when all threads sleep: with its answer out, a workload still has to sit down.

        Raises WorkloadFailed if they do not.
        """
        deadline_s = time.monotonic() + _PATIENCE_S
        while not all(_is_asleep(stat) for stat in Path(f"/proc/{self.pid}/task").glob("*/stat")):
            if time.monotonic() > deadline_s:
                raise WorkloadFailed("the workload goes on and on")

    def finish(self) -> int:
        """Let the workload end; return its exit code."""
        _pipe(self._process.stdin).close()
        return self._process.wait(_PATIENCE_S)


@contextmanager
def started(python: Sequence[str], script: str, *arguments: str) -> Iterator[Workload]:
    """Start a workload with the interpreter's command line; it has ended when the block has.

    *script* is a file name in tests/workloads. Raises WorkloadFailed if it does not get ready.
    """
    with spoken_to([*python, str(WORKLOADS / script), *arguments]) as workload:
        yield workload


@contextmanager
def spoken_to(command: Sequence[str]) -> Iterator[Workload]:
    """Start any program that talks as the workloads do; it has ended when the block has.

    Raises WorkloadFailed if it does not get ready.
    """
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            ready = _read_answer(process)
            if not ready.get("ready"):
                raise WorkloadFailed(f"{command[-1]} is not ready: {ready.get('reason')}")
            yield Workload(process, ready)
        finally:
            if process.poll() is None:
                process.kill()


def known_waits(result: Answer) -> KnownWaits:
    """Return the typed result of known_waits.py."""
    return KnownWaits(
        seconds=result["seconds"],
        threads=thread_truths(result),
    )


def exact_counts(result: Answer) -> ExactCounts:
    """Return the typed result of exact_count.py."""
    waiter, holder = thread_truths(result)
    return ExactCounts(
        is_exact=result["is_exact"],
        timeouts_are_exact=result["timeouts_are_exact"],
        waits=result["waits"],
        convoy_waits=result["convoy_waits"],
        drop_requests=result["drop_requests"],
        forced_switches=result["forced_switches"],
        timeouts=result["timeouts"],
        wait_ns=tuple(result["wait_ns"]),
        waiter=waiter,
        holder=holder,
    )


def thread_truths(result: Answer) -> tuple[ThreadTruth, ...]:
    """Return the typed threads of any result whose threads run through the clock in C."""
    return tuple(_thread_truth(thread) for thread in result["threads"])


def _thread_truth(thread: Answer) -> ThreadTruth:
    kernel = thread.get("kernel")
    return ThreadTruth(
        tid=thread["tid"],
        name=thread["name"],
        role=thread["role"],
        total=_waits(thread),
        blocking_call=_waits(thread["blocking_call"]),
        preemption=_waits(thread["preemption"]),
        convoy_waits=thread["convoy_waits"],
        hold_ns=thread["hold_ns"],
        holds=thread["holds"],
        wall_ns=thread["wall_ns"],
        kernel=None
        if kernel is None
        else CpuSplit(kernel["wall_ns"], kernel["cpu_ns"], kernel["run_delay_ns"]),
    )


def _waits(counts: Answer) -> Waits:
    return Waits(waits=counts["waits"], wait_ns=counts["wait_ns"])


def _read_answer(process: subprocess.Popen[str]) -> Answer:
    line = _pipe(process.stdout).readline()
    if not line:
        code = process.wait(_PATIENCE_S)
        raise WorkloadFailed(f"the workload ended with exit code {code} and without an answer")
    answer = json.loads(line)
    if not isinstance(answer, dict):
        raise WorkloadFailed(f"not an answer: {line!r}")
    return answer


def _is_asleep(stat: Path) -> bool:
    try:
        text = stat.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True  # it has just ended
    # The command's name is in brackets and may hold anything.
    return text.rpartition(")")[2].split()[0] == "S"


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise WorkloadFailed("the workload was started without pipes")
    return stream
