"""Held time is a part of the time observed, however long the agent itself has to wait."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gilscope import cli
from gilscope.commands.recording.recorder import Recorder
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.gil.tracing.lock_sampler import LockSampler
from gilscope.gil.tracing.reader import Readings
from gilscope.model.gil import Process
from gilscope.model.transactions import StmProcess
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.commands.json_reports import only_process
from support.tracing.trace import looked_after, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_COMPUTE = "print(1, flush=True)\nwhile True: sum(range(100_000))"
_PAUSE_S = 0.3


@contextmanager
def _computing() -> Iterator[int]:
    """Start a program that holds its GIL all the time; yield its pid."""
    with subprocess.Popen([_PYTHON, "-c", _COMPUTE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_held_time_does_not_reach_beyond_the_observation(
    probe: GilProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An agent that has no CPU for 0.3 s after it has read the tables: what goes on is not in them.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path))
    with _computing() as pid:
        tracer.attach(pid)
        with looked_after(tracer):
            eventually(lambda: (observation_of(tracer, pid).totals.gils[0].held_ns or 0) > 0)
        read = Readings.read

        def read_and_pause(readings: Readings) -> Any:
            raw = read(readings)
            time.sleep(_PAUSE_S)
            return raw

        monkeypatch.setattr(Readings, "read", read_and_pause)
        (seen,) = tracer.observe()
        tracer.close()
    tracer.drop(pid)
    (gil,) = seen.totals.gils

    assert gil.held_ns is not None
    assert 0 < gil.held_ns <= seen.totals.at_ns - seen.since_ns


@pytest.mark.parametrize("mode", ["contention", "full"])
def test_held_time_is_a_part_of_the_time_recorded(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A recorder that has no CPU for 0.3 s once its probes are in place has recorded that time too.
    """
    add = Recorder.add

    def pause_and_add(recorder: Recorder, process: Process | StmProcess) -> None:
        time.sleep(_PAUSE_S)
        add(recorder, process)

    monkeypatch.setattr(Recorder, "add", pause_and_add)
    report = tmp_path / "report.json"
    with _computing() as pid:
        line = ["record", "-p", str(pid), "-d", "0.3", "--mode", mode]
        exit_code = cli.main([*line, "--format", f"json={report}"])
    written = only_process(report.read_text())

    assert 0 == exit_code
    assert written["duration_s"] >= 2 * _PAUSE_S
    assert 0 < written["totals"]["held_s"] <= written["duration_s"]


def test_nobody_samples_a_process_whose_attachment_has_failed(
    probe: GilProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Its memory is closed by then, and the number of the descriptor may be another file's.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path))
    added: list[tuple[LockSampler, int, int]] = []
    add = LockSampler.add

    def add_and_note(sampler: LockSampler, pid: int, cond: int, *others: Any) -> None:
        add(sampler, pid, cond, *others)
        added.append((sampler, pid, cond))

    def fail(_sampler: LockSampler, _pid: int) -> None:
        raise MemoryError

    monkeypatch.setattr(LockSampler, "add", add_and_note)
    monkeypatch.setattr(LockSampler, "sample", fail)
    with _computing() as pid:
        with pytest.raises(MemoryError):
            tracer.attach(pid)
        ((sampler, sampled_pid, cond),) = added
        with pytest.raises(KeyError):
            sampler.figures(sampled_pid, cond)
        assert (pid, ()) == (sampled_pid, tracer.pids)
        monkeypatch.undo()
        tracer.attach(pid)
        assert (pid,) == tracer.pids
        tracer.close()
    tracer.drop(pid)
