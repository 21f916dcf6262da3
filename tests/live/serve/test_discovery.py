"""How ``gilscope serve`` keeps up with processes that start, fork, exec and end."""

import re
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from accuracy.truth import started
from gilscope.discovery import scanner
from gilscope.discovery.scanner import Following, Scanner
from gilscope.discovery.selection import Choice, choose_matching, choose_pids
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.gil import GilObservation
from gilscope.runtimes.site_cache import SiteCache
from gilscope.tracing.tracer import Tracer
from support.commands.gilscope import eventually, gilscope
from support.commands.serve import Scrape, Service, serving
from support.interpreters.builds import build
from support.interpreters.stand_ins import cpython_3_5, cpython_3_16
from support.tracing.bpf_tables import held_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module", autouse=True)
def _warm_cache() -> None:
    # The bar is for sites that are known: those of the interpreters used here.
    for python in (_PYTHON, *build("pyenv-3.12").argv):
        gilscope("record", "-d", "0.1", "--", python, "-c", "input()")


@pytest.fixture(scope="module")
def mark() -> str:
    """Return an option of Python by which a process of these tests is known."""
    return f"-Xgilscope_test={uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def service(mark: str) -> Iterator[Service]:
    """Serve what bears the mark."""
    with serving("--match", mark.removeprefix("-X")) as made:
        yield made


def _noticed(service: Service, pid: int) -> float:
    """Return the moment of the first scrape that speaks of *pid*."""

    def look() -> float:
        scrape = service.scrape()
        return scrape.after_s if pid in scrape.pids() else 0.0

    return eventually(look, within_s=10)


def _best_of_three(attempt: Callable[[], float]) -> float:
    # Load on the machine can only add to the time.
    return min(attempt() for _ in range(3))


def test_new_python_is_noticed_within_a_second(service: Service, mark: str) -> None:
    """
    A Python that starts is in the metrics less than a second after its start.
    """

    def attempt() -> float:
        began_s = time.monotonic()
        with started([_PYTHON, mark], "exact_count.py") as workload:
            return _noticed(service, workload.pid) - began_s

    assert _best_of_three(attempt) < 1.0


def test_shell_that_becomes_python_is_noticed_within_a_second(service: Service, mark: str) -> None:
    """
    A process that matches before it is Python is in the metrics less than a second after its exec.
    """

    def attempt() -> float:
        shell = ["sh", "-c", 'read line; exec "$@"', "sh", _PYTHON, mark, "-c", "input()"]
        with subprocess.Popen(shell, stdin=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            # Let it be looked at and found to be a shell.
            time.sleep(0.6)
            began_s = time.monotonic()
            process.stdin.write("\n")
            process.stdin.flush()
            noticed_s = _noticed(service, process.pid) - began_s
            process.stdin.close()
        return noticed_s

    assert _best_of_three(attempt) < 1.0


def test_python_that_becomes_another_is_noticed_within_a_second(
    service: Service, mark: str
) -> None:
    """
    After an exec the figures are those of the new Python, and nothing of the old one counts.
    """
    (other,) = build("pyenv-3.12").argv
    arguments = ("execer.py", "--then", other)
    with started([_PYTHON, mark], *arguments) as workload:
        _noticed(service, workload.pid)
        workload.run()
        began_s = time.monotonic()
        workload.answer()
        pid = str(workload.pid)

        def is_new() -> bool:
            # The command line of the second stage bears no mark: it must leave the metrics.
            return workload.pid not in service.scrape().pids()

        eventually(is_new, within_s=10)
        gone_s = time.monotonic() - began_s
        assert 0 == service.scrape().total("gilscope_gil_thread_waits_total", pid=pid)
    assert gone_s < 1.0


def test_children_of_a_prefork_server_are_followed(mark: str) -> None:
    """
    With -p the forked workers are traced as processes of their own, also later ones.
    """
    with (
        started([_PYTHON, mark], "prefork.py") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        for pid in workload.ready["workers"]:
            _noticed(service, pid)
        workload.command("begin")
        workload.answer()
        workload.command("restart")
        restarted = workload.answer()["restarted"]
        began_s = time.monotonic()
        noticed_s = _noticed(service, restarted["new"]) - began_s
        eventually(lambda: _waits(service, restarted["new"]) > 20, within_s=10)
        workload.command("stop")
        result = workload.answer()
        scrape = service.scrape()

    assert noticed_s < 1.0
    assert 0 == _waits(scrape, workload.pid)
    for worker in result["workers"]:
        yields = sum(thread["waits"] for thread in worker["threads"])
        counted = scrape.total("gilscope_gil_forced_switches_total", pid=str(worker["pid"]))
        if worker["pid"] != restarted["new"]:
            # All of its life was traced; its clock misses a yield now and then.
            assert counted == pytest.approx(yields, rel=0.2, abs=5)


def _waits(source: Service | Scrape, pid: int) -> float:
    scrape = source.scrape() if isinstance(source, Service) else source
    return scrape.total("gilscope_gil_thread_waits_total", pid=str(pid))


def test_child_that_becomes_python_late_is_followed() -> None:
    """
    With -p a child that has been something else for long is traced once it becomes Python.
    """
    parent = (
        "import subprocess, sys; input();"
        f"child = subprocess.Popen(['sh', '-c', 'read l; exec {_PYTHON} -c \"input()\"']);"
        "print(child.pid, flush=True); child.wait()"
    )
    with (
        subprocess.Popen(
            [_PYTHON, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
        serving("-p", str(process.pid)) as service,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        # So long a process that is not Python is looked at again.
        time.sleep(5.0)
        assert child not in service.scrape().pids()
        process.stdin.write("\n")
        process.stdin.flush()
        began_s = time.monotonic()
        noticed_s = _noticed(service, child) - began_s
        process.stdin.close()

    assert noticed_s < 1.0


def test_refused_pythons_are_listed_and_disturb_nobody(
    service: Service, mark: str, tmp_path: Path
) -> None:
    """
    A Python that cannot be traced is counted and shown with its reason; others are traced.
    """
    for program, reason in (
        (cpython_3_5(tmp_path), "this is CPython 3.5.10"),
        (cpython_3_16(tmp_path), "this is CPython 3.16.0"),
    ):
        command = [str(program), "-c", "it waits for a line", mark]
        with (
            subprocess.Popen(command, stdin=subprocess.PIPE) as process,
            started([_PYTHON, mark], "exact_count.py") as workload,
        ):
            eventually(lambda: _refused(service) == 1, within_s=10)
            _noticed(service, workload.pid)
            page = service.get("/").text
            scrape = service.scrape()

            assert "Found, but not traced" in page
            assert f">{process.pid}<" in page
            assert f"process {process.pid}: {reason}" in page
            assert process.pid not in scrape.pids()
            workload.run()
            assert 23 <= _waits(service, workload.pid)
            assert process.stdin is not None
            process.stdin.close()
        eventually(lambda: _refused(service) == 0, within_s=10)


def _refused(service: Service) -> float:
    return service.scrape().total("gilscope_targets", state="refused")


def test_process_that_ends_keeps_its_last_figures_for_a_while(service: Service, mark: str) -> None:
    """
    The figures of a process that ended can be scraped once more, and do not change.
    """
    with started([_PYTHON, mark], "exact_count.py") as workload:
        _noticed(service, workload.pid)
        workload.run()
        workload.finish()

    eventually(lambda: ">ended<" in service.get("/").text, within_s=10)
    first, second = service.scrape(), service.scrape()
    assert 23 <= _waits(first, workload.pid)
    for series, value in first.counters().items():
        if f"'pid', '{workload.pid}'" in series:
            assert value == second.counters()[series]


@dataclass(frozen=True)
class _Discovery:
    """A scanner and a tracer, driven by hand."""

    scanner: Scanner
    tracer: Tracer

    def tick(self) -> None:
        self.scanner.note_executed(self.tracer.tick())
        self.scanner.scan()

    def observe(self) -> list[GilObservation]:
        return [seen.gil for seen in self.tracer.observe() if seen.gil is not None]


@contextmanager
def _discovery(
    probe: GilProbe, folder: Path, is_wanted: Choice, pids: Sequence[int] = ()
) -> Iterator[tuple[_Discovery, GilAccount]]:
    gils = GilAccount(probe, SiteCache(folder), keep_threads=False)
    tracer = Tracer(gils)
    try:
        yield (
            _Discovery(
                Scanner(
                    tracer, is_wanted, pids, following=Following(lambda _: None, ended_kept_s=0.0)
                ),
                tracer,
            ),
            gils,
        )
    finally:
        tracer.close()
        tracer.drop_ended(0, set())


def test_notice_that_comes_behind_its_attachment_drops_nothing(
    probe: GilProbe, tmp_path: Path
) -> None:
    """
    A program may be found by itself before its exec is told; what was counted of it stays.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        _discovery(probe, tmp_path, choose_pids(), [workload.pid]) as (found, _),
    ):
        found.tick()
        (before,) = found.observe()
        found.scanner.note_executed([workload.pid])
        found.scanner.scan()
        (after,) = found.observe()
        workload.run()
        workload.finish()

    assert before.since_ns == after.since_ns


def test_process_that_ended_leaves_the_kernels_tables(probe: GilProbe, tmp_path: Path) -> None:
    """
    When its time is over, a dead process is in no observation and in no table of the probes.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        _discovery(probe, tmp_path, choose_pids(), [workload.pid]) as (found, tracer),
    ):
        found.tick()
        workload.run()
        (observation,) = found.observe()
        before = held_of(probe, workload.pid)
        workload.finish()

        def is_gone() -> bool:
            found.tick()
            return not found.observe()

        eventually(is_gone, within_s=10)
        assert {} == held_of(probe, workload.pid)
        assert () == tracer.pids
    assert 23 <= sum(thread.waits for thread in observation.totals.threads)
    # So there was something to remove.
    assert {"targets", "gils", "threads", "histograms", "slots"} <= set(before)


def test_process_that_died_before_its_reaping_is_not_tried_again(
    probe: GilProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A zombie is an ended process, neither traced nor refused.
    """
    monkeypatch.setattr(scanner, "_RETRIES_S", (0.0,))
    with (
        subprocess.Popen([_PYTHON, "-c", "input()"], stdin=subprocess.PIPE) as process,
        _discovery(probe, tmp_path, choose_pids(), [process.pid]) as (found, tracer),
    ):
        eventually(lambda: _ticked(found, tracer), within_s=10)
        process.kill()
        eventually(lambda: not _ticked(found, tracer), within_s=10)
        for _ in range(5):
            found.tick()

        assert () == tracer.pids
        assert [] == found.scanner.refusals()


def _ticked(found: _Discovery, tracer: GilAccount) -> tuple[int, ...]:
    found.tick()
    return tracer.pids


def test_untrusted_process_is_not_tried_again(
    probe: GilProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A process whose probes could not be trusted stays shown as such, and is left alone.
    """
    token = uuid.uuid4().hex
    choice = choose_matching(re.compile(token))
    with (
        started([_PYTHON, f"-X{token}"], "exact_count.py") as workload,
        _discovery(probe, tmp_path, choice) as (found, tracer),
    ):
        found.tick()
        assert (workload.pid,) == tracer.pids
        attached: list[int] = []
        monkeypatch.setattr(tracer, "attach", attached.append)
        # As if a wait had been seen on something that is no GIL.
        monkeypatch.setattr(tracer._checks, "_method", "sites")  # noqa: SLF001 - or it tries libc
        monkeypatch.setattr(AttachedProcess, "reason_to_distrust", lambda *_: "of this test")
        workload.run()
        found.observe()
        for _ in range(3):
            found.tick()

        assert ["of this test"] == [seen.invalid for seen in found.observe()]
        assert [] == attached


def test_one_process_that_cannot_be_read_does_not_hide_others(
    probe: GilProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Whatever goes wrong with one process, the next one is traced, and the first is shown.
    """
    token = uuid.uuid4().hex
    with (
        started([_PYTHON, f"-X{token}"], "exact_count.py") as first,
        started([_PYTHON, f"-X{token}"], "exact_count.py") as second,
        _discovery(probe, tmp_path, choose_matching(re.compile(token))) as (found, tracer),
    ):
        attach = tracer.attach

        def attach_one(pid: int) -> object:
            if pid == first.pid:
                raise ValueError("cannot be read")
            return attach(pid)

        monkeypatch.setattr(tracer, "attach", attach_one)
        found.tick()
        found.tick()

        assert (second.pid,) == tracer.pids
        assert [(first.pid, "cannot be read")] == [
            (refusal.pid, refusal.reason) for refusal in found.scanner.refusals()
        ]
