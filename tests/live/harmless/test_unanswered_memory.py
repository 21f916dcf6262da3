"""A process with a page of memory that never comes: it is given up, and harms nobody else.

The page is put under memory that gilscope reads after it has been attached, and examined.
"""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from accuracy.truth import Workload, spoken_to, started
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.target import Target
from gilscope.gil.tracing.account import GilAccount
from gilscope.gil.tracing.lock_sampler import LockSampler
from gilscope.model.gil import GilObservation
from gilscope.process.breakpoints import addresses_of
from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import read_maps
from gilscope.process.reads import DirectReads
from gilscope.runtimes.site_cache import SiteCache
from gilscope.system.waiting_thread import waits_for_memory
from support.commands.gilscope import eventually
from support.gil.lock_page import LockPage
from support.tracing.hanging_file import FILE, hanging_file
from support.tracing.observations import assert_counts_exactly
from support.tracing.trace import looked_after, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_PAGE = 4096
_SOON_S = 10.0
_LOCKED_BEFORE_COND = 16
_UNUSED = 1 << 40
"""An address at which a program has nothing."""

# Waits for an address, and puts a page of a file there. If it needs what was there, it hangs. Its
# threads have ended by then: for one in a breakpoint the kernel looks at the page with the address
# space locked, and who waits for that lock, and for how long, is in no tracer's hands.
_TARGET = """
import ctypes, json, os, sys, threading
is_over = False
def work():
    while not is_over:
        sum(range(2000))
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
address = int(sys.stdin.readline())
is_over = True
for thread in threads:
    thread.join()
file = open(sys.argv[1], "rb")
libc.mmap(address, 4096, 5, 0x12, file.fileno(), 0)
sys.stdin.read()
"""


def _lock_of(target: Target) -> int:
    with ProcessMemory(target.build.pid) as memory:
        (gil,) = target.build.instance(memory, DirectReads()).gils()
    return gil.cond - _LOCKED_BEFORE_COND


def _code_of(target: Target) -> int:
    offsets = [point.offset for point in target.hookpoints]
    return addresses_of(target.file.mapping, read_maps(target.build.pid), offsets)[0]


def _put_page(workload: Workload, address: int) -> None:
    workload.command(str(address & -_PAGE))
    eventually(lambda: any("hangs" in each.path for each in read_maps(workload.pid)))


def _is_refused(observation: GilObservation) -> bool:
    return observation.invalid.startswith("its memory does not answer")


@pytest.mark.parametrize("place", [_lock_of, _code_of], ids=["lock", "code"])
def test_memory_that_does_not_answer_costs_nobody_else_anything(
    place: Callable[[Target], int], probe: GilProbe, tmp_path: Path
) -> None:
    """
    Neither those that are traced, nor those that come, nor a process that forks.
    """
    folder = tmp_path / "mount"
    folder.mkdir()
    tracer = GilAccount(probe, SiteCache(tmp_path))
    with (
        started([_PYTHON], "exact_count.py") as other,
        spoken_to([_PYTHON, "-c", _TARGET, str(folder / FILE)]) as workload,
        # Given up before the process is waited for: until then not even SIGKILL ends it.
        hanging_file(folder),
    ):
        target = tracer.attach(workload.pid)
        tracer.attach(other.pid)
        _put_page(workload, place(target))
        began_s = time.monotonic()
        with looked_after(tracer):
            eventually(lambda: _is_refused(observation_of(tracer, workload.pid)))
        given_up_s = time.monotonic()
        subprocess.run(["/bin/true"], check=True)
        forked_s = time.monotonic()
        with started([_PYTHON], "exact_count.py") as late:
            tracer.attach(late.pid)
            assert_counts_exactly(tracer, late)
        assert_counts_exactly(tracer, other)
        ended = threading.Thread(target=tracer.close)
        ended.start()
        ended.join(30)

    assert not ended.is_alive()
    assert given_up_s - began_s < _SOON_S
    assert forked_s - given_up_s < _SOON_S


def _waits_for_memory() -> bool:
    samplers = [each for each in threading.enumerate() if each.name == "lock-sampler"]
    return any(waits_for_memory(each.native_id or 0) for each in samplers)


def test_next_program_of_a_process_is_not_given_up_for_the_last_one(tmp_path: Path) -> None:
    """
    What the thread waits for was forgotten meanwhile: it is left behind, and all are sampled.
    """
    folder = tmp_path / "mount"
    folder.mkdir()
    own, told = os.getpid(), set[int | None]()
    with (
        closing(LockPage(1)) as page,
        spoken_to([_PYTHON, "-c", _TARGET, str(folder / FILE)]) as workload,
        hanging_file(folder),
        closing(LockSampler(Random(1))) as sampler,  # noqa: S311 - times of samples
        ProcessMemory(workload.pid) as memory,
    ):
        _put_page(workload, _UNUSED)
        sampler.add(workload.pid, _UNUSED + _LOCKED_BEFORE_COND, memory)
        eventually(_waits_for_memory)
        sampler.drop(workload.pid)
        sampler.add(workload.pid, page.conds[0], memory)
        sampler.add(own, page.conds[0], page)

        def is_sampled() -> bool:
            told.add(sampler.unanswered())
            return sampler.figures(own, page.conds[0]).samples > 0

        eventually(is_sampled)
        assert {None} == told
        assert 0 == sampler.figures(workload.pid, page.conds[0]).samples
