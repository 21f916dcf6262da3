"""Held time estimated from outside, against a process that says when it held the GIL.

The statistical bound is 4.5 standard deviations of samples that are independent of each other,
which is more than these are: a correct implementation fails less than once in 100000 runs.
"""

import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

import pytest

from accuracy.truth import Answer, Workload, started
from gilscope.gil.probes.coverage import NEVER_OPEN, Coverage
from gilscope.gil.tracing.lock_sampler import LockSampler
from gilscope.process.memory import ProcessMemory
from gilscope.process.view import view_of
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from gilscope.runtimes.cpython.locate import CPython
from gilscope.runtimes.cpython.runtime import read_gils, runtime_of
from gilscope.runtimes.interpreter_files import LikelyFiles
from support.commands.gilscope import eventually

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"
_MS = 1_000_000
_SECONDS = 6.0
# More than the agent takes, so that there are 100 samples a second however dear they are.
_CPU_SHARE = 0.1
_DEVIATIONS = 4.5
# Root of the mean square over the mean: 1.04 by the jitter, the rest where a window has cut gaps
# short, and for a machine that is late at times.
_GAPS_VARY = 1.15


@dataclass(frozen=True, slots=True)
class _Target:
    workload: Workload
    cond: int
    memory: ProcessMemory

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.workload.pid

    def is_locked(self) -> bool:
        """Return whether the GIL is held now."""
        return self.memory.read(self.cond + GLIBC_X86_64.locked, 4) == b"\1\0\0\0"

    def begin(self) -> None:
        """Return when the workload has begun."""
        self.workload.command()
        assert self.workload.answer()["begun"]


@contextmanager
def _target(*arguments: str) -> Iterator[_Target]:
    with started([_PYTHON], "locked_share.py", *arguments) as workload:
        with LikelyFiles(view_of(workload.pid)) as files:
            located = CPython().detect(files)
        with ProcessMemory(workload.pid) as memory:
            runtime = runtime_of(memory, located.interpreter, located.load_bias)
            (gil,) = read_gils(runtime)
            yield _Target(workload, gil.cond, memory)


@contextmanager
def _sampler() -> Iterator[LockSampler]:
    random = Random()  # noqa: S311 - nobody has to be kept from guessing
    sampler = LockSampler(random, cpu_share=_CPU_SHARE)
    yield sampler
    sampler.close()


class _Windows:
    """About 20 of every 70 ms are inside windows; begins and ends are told as they happen."""

    _LENGTH_S, _PAUSE_S = 0.02, 0.05

    def __init__(self) -> None:
        self._past: list[tuple[int, int]] = []
        self._stopped = threading.Event()

    @contextmanager
    def told(self, sampler: LockSampler, pids: Sequence[int]) -> Iterator[None]:
        """Go on, in all these processes at a time, until the block has ended."""
        thread = threading.Thread(target=self._tell, args=(sampler, pids))
        thread.start()
        yield
        self._stopped.set()
        thread.join()

    def _tell(self, sampler: LockSampler, pids: Sequence[int]) -> None:
        while not self._stopped.wait(self._PAUSE_S):
            begin_ns = time.monotonic_ns()
            covered_ns = sum(end_ns - begin_ns for begin_ns, end_ns in self._past)
            for pid in pids:
                sampler.cover(pid, Coverage(covered_ns, begin_ns))
            self._stopped.wait(self._LENGTH_S)
            end_ns = time.monotonic_ns()
            self._past.append((begin_ns, end_ns))
            for pid in pids:
                sampler.cover(
                    pid, Coverage(covered_ns + end_ns - begin_ns, NEVER_OPEN.open_since_ns)
                )

    def outside(self, from_ns: int, until_ns: int) -> int:
        """Return how much of a time is in none of them."""
        inside = (min(end, until_ns) - max(begin, from_ns) for begin, end in self._past)
        return until_ns - from_ns - sum(part_ns for part_ns in inside if part_ns > 0)


class _NoWindows(_Windows):
    def _tell(self, sampler: LockSampler, pids: Sequence[int]) -> None:
        pass


def _held_outside_ns(answer: Answer, from_ns: int, until_ns: int, windows: _Windows) -> int:
    """Return how long the GIL was held outside of windows in a time, as the workload tells."""
    free = [(0, answer["begin_ns"]), *map(tuple, answer["free"]), (answer["end_ns"], until_ns)]
    held_ns = windows.outside(from_ns, until_ns)
    for free_from_ns, free_until_ns in free:
        begin_ns, end_ns = max(free_from_ns, from_ns), min(free_until_ns, until_ns)
        if begin_ns < end_ns:
            held_ns -= windows.outside(begin_ns, end_ns)
    return held_ns


@pytest.mark.parametrize("made", [_NoWindows, _Windows], ids=["no windows", "between windows"])
def test_share_is_what_the_process_says(made: type[_Windows]) -> None:
    """
    Three processes at a time, each with its own share and its own length of holds.
    """
    shares = (
        ("--held-ms", "2", "--free-ms", "8", "--seed", "1"),
        ("--held-ms", "15", "--free-ms", "15", "--seed", "2"),
        ("--held-ms", "60", "--free-ms", "20", "--seed", "3"),
    )
    windows = made()
    with ExitStack() as stack:
        targets = [
            stack.enter_context(_target("--seconds", str(_SECONDS), *share)) for share in shares
        ]
        sampler = stack.enter_context(_sampler())
        for target in targets:
            target.begin()
        from_ns = []
        for target in targets:
            from_ns.append(time.monotonic_ns())
            sampler.add(target.pid, target.cond, target.memory)
        with windows.told(sampler, [target.pid for target in targets]):
            answers = [target.workload.answer() for target in targets]
        for target, begin_ns, answer in zip(targets, from_ns, answers, strict=True):
            sampler.sample(target.pid)
            until_ns = time.monotonic_ns()
            held_ns, sampled_ns, unobserved_ns, samples = sampler.figures(target.pid, target.cond)
            true_ns = _held_outside_ns(answer, begin_ns, until_ns, windows)
            outside_ns = windows.outside(begin_ns, until_ns)
            share = true_ns / outside_ns
            deviation = _GAPS_VARY * math.sqrt(share * (1 - share) / samples)

            # All the time outside of windows is decided about, up to this look at it.
            assert 0 <= outside_ns - sampled_ns - unobserved_ns < 100 * _MS
            assert share == pytest.approx(held_ns / sampled_ns, abs=_DEVIATIONS * deviation)
            # The bound means something.
            assert deviation < 0.05


def test_lock_that_is_always_or_never_held() -> None:
    """
    A hold of many seconds counts in full, to the last sample; a lock that nobody takes not at all.
    """
    with (
        _target("--held-ms", "1e6", "--free-ms", "0") as held,
        _target() as idle,
        _sampler() as sampler,
    ):
        held.begin()
        eventually(held.is_locked)
        for target in (held, idle):
            sampler.add(target.pid, target.cond, target.memory)
        eventually(lambda: sampler.figures(idle.pid, idle.cond).samples >= 20)
        for target in (held, idle):
            sampler.sample(target.pid)

        assert held.is_locked()
        assert 0 < sampler.figures(held.pid, held.cond).held_ns
        assert (
            sampler.figures(held.pid, held.cond).held_ns
            == sampler.figures(held.pid, held.cond).sampled_ns
        )
        assert (
            0
            == sampler.figures(idle.pid, idle.cond).held_ns
            < sampler.figures(idle.pid, idle.cond).sampled_ns
        )


def test_process_that_ends_while_it_holds_the_lock() -> None:
    """
    Its held time stops growing, and what is sampled besides goes on.
    """
    with (
        _target("--held-ms", "1e6", "--free-ms", "0") as held,
        _target() as idle,
        _sampler() as sampler,
    ):
        held.begin()
        eventually(held.is_locked)
        for target in (held, idle):
            sampler.add(target.pid, target.cond, target.memory)
        eventually(lambda: sampler.figures(held.pid, held.cond).samples >= 3)
        os.kill(held.pid, signal.SIGKILL)
        os.waitid(os.P_PID, held.pid, os.WEXITED | os.WNOWAIT)
        sampler.sample(held.pid)
        held_ns = sampler.figures(held.pid, held.cond).held_ns
        samples = sampler.figures(idle.pid, idle.cond).samples
        eventually(lambda: sampler.figures(idle.pid, idle.cond).samples >= samples + 3)
        sampler.sample(held.pid)

        assert 0 < held_ns == sampler.figures(held.pid, held.cond).held_ns
