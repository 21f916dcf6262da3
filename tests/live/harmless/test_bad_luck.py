"""What happens to the target, and to the numbers, when processes end, change or multiply."""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accuracy.truth import started
from gilscope.errors import NotPython
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.histogram import total
from gilscope.process import procfs
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.commands.serve import serving
from support.interpreters.builds import build
from support.interpreters.known import ONE_PER_MINOR, Interpreter
from support.tracing.bpf_tables import held_of, threads_held_of
from support.tracing.observations import assert_counts_exactly, thread_of, waits_of
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _settled_descriptors(probe: GilProbe) -> int:
    """Return how many are open when no tracer of an earlier test has any left."""
    # The socket of the process that holds the probes is there from the first probe on.
    probe._uprobes._running()  # noqa: SLF001 - nobody else has to know
    gc.collect()
    return _descriptors()


# Processes that go away.


@pytest.mark.parametrize("method", ["sites", "libc"])
def test_process_that_ends_while_it_is_attached(
    probe: GilProbe, tmp_path: Path, method: str
) -> None:
    """
    Whenever it ends, attaching succeeds or says that it ended, and leaves nothing behind.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path), method=method)
    before = _settled_descriptors(probe)
    for number in range(24):
        with _idle() as process:
            # Half of them stay as zombies until the attempt is over, half are gone at once.
            end = threading.Timer(number * 0.001, _end(process, reap=bool(number % 2)))
            end.start()
            with contextlib.suppress(NotPython):
                tracer.attach(process.pid)
            end.join()
            process.wait()
            tracer.tick()
        assert () == tracer.pids
        tracer.drop(process.pid)
        assert {} == held_of(probe, process.pid)
        eventually(lambda: _descriptors() == before, within_s=10)


@contextmanager
def _idle() -> Iterator[subprocess.Popen[str]]:
    command = [_PYTHON, "-SEc", "print(1, flush=True); input()"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def _end(process: subprocess.Popen[str], *, reap: bool) -> Callable[[], None]:
    def end() -> None:
        os.kill(process.pid, signal.SIGKILL)
        if reap:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            process.wait()

    return end


def test_nothing_is_left_open_after_many_processes(probe: GilProbe, tmp_path: Path) -> None:
    """
    Attaching and dropping process after process leaves as many descriptors open as there were.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path))
    before = _settled_descriptors(probe)
    for _ in range(5):
        with _idle() as process:
            tracer.attach(process.pid)
            tracer.attach(process.pid)
            tracer.drop(process.pid)
            process.kill()
    # The kernel takes probes out in its own time.
    eventually(lambda: _descriptors() == before, within_s=10)


def test_old_probes_are_out_before_new_ones_count(tracer: GilAccount) -> None:
    """
    A process that is attached again waits until nothing of the first attachment is in it.
    """
    with _idle() as process:
        tracer.attach(process.pid)
        keeper_pid = tracer.probe._uprobes.keeper_pid  # noqa: SLF001 - the kernel is not slow at will
        assert keeper_pid is not None
        os.kill(keeper_pid, signal.SIGSTOP)
        tracer.drop(process.pid)
        again = threading.Thread(target=tracer.attach, args=(process.pid,))
        again.start()
        try:
            again.join(0.3)
            assert again.is_alive()
        finally:
            os.kill(keeper_pid, signal.SIGCONT)
            again.join()
        assert (process.pid,) == tracer.pids


def test_wait_that_never_ends_is_counted_up_to_the_threads_death(tracer: GilAccount) -> None:
    """
    A target killed while a thread waits: that wait is counted to the end, and called abandoned.
    """
    with started([_PYTHON], "long_hold.py", "--seconds", "30") as workload:
        tracer.attach(workload.pid)
        tid = workload.ready["waiter"]
        with looked_after(tracer):
            workload.command("hold")
            eventually(lambda: _waiting_ns(tracer, workload.pid, tid) > 200_000_000)
            os.kill(workload.pid, signal.SIGKILL)
            eventually(lambda: not tracer.pids)
        first = observation_of(tracer, workload.pid)
        second = observation_of(tracer, workload.pid)
    waiter = thread_of(first, tid)

    assert first.ended
    assert "" == first.invalid
    assert 0 == waiter.waiting_ns
    assert (1, 1) == (waiter.waits, waiter.convoy_waits)
    assert 200_000_000 < waiter.wait_ns < 10_000_000_000
    assert {"abandoned": 1} == missed_events(first)
    # It is over: nothing grows any more.
    assert first.totals.threads == second.totals.threads
    (gil,) = first.totals.gils
    assert sum(thread.waits for thread in first.totals.threads) == total(gil.waits.values()).count


def _waiting_ns(tracer: GilAccount, pid: int, tid: int) -> int:
    threads = observation_of(tracer, pid).totals.threads
    return sum(thread.waiting_ns for thread in threads if thread.tid == tid)


_LEAVE = """\
import sys, threading
def crunch():
    while True:
        sum(range(1000))
for _ in range(3):
    threading.Thread(target=crunch, daemon=True).start()
print(1, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("interpreter", ONE_PER_MINOR)
def test_interpreter_that_ends_while_threads_wait(
    interpreter: Interpreter, tracer: GilAccount
) -> None:
    """
    At its end Python leaves waiting threads behind, each version in its way; all adds up.
    """
    command = [*command_of(interpreter), "-c", _LEAVE]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        tracer.attach(process.pid)
        with looked_after(tracer):
            eventually(lambda: waits_of(observation_of(tracer, process.pid)) > 20)
            process.stdin.write("\n")
            process.stdin.flush()
            assert 0 == process.wait(30)
            eventually(lambda: not tracer.pids)
        observation = observation_of(tracer, process.pid)
    threads, (gil,) = observation.totals.threads, observation.totals.gils

    assert "" == observation.invalid
    assert {"began_unseen", "abandoned", "lock_unknown"} >= set(missed_events(observation))
    assert waits_of(observation) == total(gil.waits.values()).count
    assert 0 == sum(thread.waiting_ns for thread in threads)
    assert sum(thread.wait_ns for thread in threads) == total(gil.waits.values()).sum_ns
    assert set() == threads_held_of(tracer.probe, process.pid)


# Files that are replaced.


def _unlink(file: Path) -> None:
    file.unlink()


def _put_another_there(file: Path) -> None:
    other = file.with_name("other")
    shutil.copy("/bin/sleep", other)
    other.rename(file)


def _put_a_copy_there(file: Path) -> None:
    # The same bytes in another inode: a probe there would never be met.
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    copy.rename(file)


@pytest.mark.parametrize("replace_file", [_unlink, _put_another_there, _put_a_copy_there])
@pytest.mark.parametrize("kind", ["static", "shared"])
def test_interpreter_that_was_replaced_on_disk(
    kind: str, replace_file: Callable[[Path], None], tracer: GilAccount, tmp_path: Path
) -> None:
    """
    A process goes on with the file that it was started from, and that is the one to trace.
    """
    if kind == "static":
        file = Path(shutil.copy(_PYTHON, tmp_path))
        command = [str(file)]
    else:
        original = build("pyenv-3.12")
        file = Path(shutil.copy(original.elf, tmp_path))
        command = ["env", f"LD_LIBRARY_PATH={tmp_path}", *original.argv]
    with started(command, "exact_count.py") as workload:
        replace_file(file)
        target = tracer.attach(workload.pid)

        assert "sites" == target.process.method
        assert str(file) in {mapping.path for mapping in procfs.read_maps(workload.pid)}
        assert_counts_exactly(tracer, workload)


# Processes that multiply or change.


def test_fork_of_a_traced_process_is_unharmed_and_not_counted(tracer: GilAccount) -> None:
    """
    A child that contends at the same addresses adds nothing to its parent's numbers.
    """
    with started([_PYTHON], "forker.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command()
            child_pid = workload.answer()["forked"]
            result = workload.answer()
        observation = observation_of(tracer, workload.pid)
        assert 0 == workload.finish()
    own = {thread["tid"] for thread in result["threads"]}
    child = {thread["tid"] for thread in result["child"]["threads"]}

    # The child lived on to tell.
    assert child_pid == result["child"]["pid"]
    assert sum(thread["waits"] for thread in result["child"]["threads"]) > 20
    assert own <= {thread.tid for thread in observation.totals.threads}
    assert set() == child & {thread.tid for thread in observation.totals.threads}
    assert {} == held_of(tracer.probe, child_pid)
    assert "" == observation.invalid


def test_fork_of_a_served_process_has_numbers_of_its_own() -> None:
    """
    With serve the child is a process of its own, with its own waits.
    """
    with (
        started([_PYTHON], "forker.py", "--seconds", "2") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        workload.command()
        child = str(workload.answer()["forked"])
        name = "gilscope_gil_thread_waits_total"
        eventually(lambda: service.scrape().total(name, pid=child) > 20)
        workload.answer()
        scrape = service.scrape()
        assert 0 == workload.finish()
    roles = {
        pid: {sample.labels["role"].partition(" ")[0] for sample in scrape.samples(name, pid=pid)}
        for pid in (child, str(workload.pid))
    }

    assert "Forking.forking" in roles[str(workload.pid)]
    assert "Fight._fighter" in roles[child]


def test_exec_is_not_counted_before_the_agent_knows_of_it(tracer: GilAccount) -> None:
    """
    From the exec on, nothing of the new program gets into the tables, though it is the same file.
    """
    with started([_PYTHON], "execer.py") as workload:
        tracer.attach(workload.pid)
        workload.run()
        assert 2 == workload.answer()["stage"]
        after_exec = tracer.probe.read({}).processes[workload.pid]
        workload.run()
        after_fight = tracer.probe.read({}).processes[workload.pid]

        assert after_exec == after_fight
        assert [workload.pid] == tracer.tick()
        assert [(workload.pid, True)] == [
            (seen.process.pid, seen.ended) for seen in tracer.observe()
        ]
        assert 0 == workload.finish()
