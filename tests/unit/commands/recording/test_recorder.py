"""What `record` keeps of processes and of the programs that they had before."""

import argparse
from dataclasses import replace
from typing import cast

from gilscope.commands.recording.recorder import Recorder
from gilscope.model.gil import Tally
from gilscope.model.kinds import Kind, Mode
from gilscope.model.locks import LockObservation
from gilscope.model.observation import Observation
from gilscope.tracing.tracer import Tracer
from support.recordings.gil import observation, thread
from support.recordings.locks import lock_recording

_MOST = 400


class _Gils:
    def timeline(self, _pid: int) -> None:
        return None

    def moment(self, _pid: int) -> None:
        return None


class _Tracer:
    """Traces one process, whose program has lost so many nanoseconds."""

    locks = None
    gils = _Gils()

    def __init__(self) -> None:
        self.lost_ns = 0
        self.locks_alone: LockObservation | None = None

    def observe(self, *, is_final: bool = False) -> list[Observation]:
        del is_final
        if self.locks_alone is not None:
            return [Observation(locks=self.locks_alone)]
        lost = {Kind.CONVOY: Tally(self.lost_ns, 1)}
        seen = observation((thread(7, "work", lost),))
        return [Observation(gil=replace(seen, ended=True))]


def test_programs_that_lost_the_least_are_given_up_where_there_are_too_many() -> None:
    """
    A process replaced its program 401 times: half of these are counted, and no more than that.
    """
    tracer = _Tracer()
    arguments = argparse.Namespace(app=None, outputs=None, mode=Mode.CONTENTION.value)
    with Recorder(arguments, cast("Tracer", tracer)) as recorder:
        (seen,) = tracer.observe()
        for number in range(_MOST + 1):
            tracer.lost_ns = 1_000 + number if number % 2 else number
            recorder.finish_program(seen.process.pid)
        tracer.lost_ns = 1
        session = recorder.session([])

    lost_ns = {each.observation.totals.wait_ns for each in session.recordings}
    assert 200 == session.left_out
    assert {1, 400, *range(1_001, 1_400, 2)} == lost_ns
    assert 202 == len(session.recordings)


def test_what_was_lost_by_locks_alone_counts_as_much() -> None:
    """
    A program without a GIL, before 400 that lost next to nothing.
    """
    tracer = _Tracer()
    arguments = argparse.Namespace(app=None, outputs=None, mode=Mode.CONTENTION.value)
    with Recorder(arguments, cast("Tracer", tracer)) as recorder:
        (seen,) = tracer.observe()
        locks = lock_recording().observation
        process = replace(locks.process, pid=seen.process.pid)
        tracer.locks_alone = replace(locks, process=process, ended=True)
        recorder.finish_program(seen.process.pid)
        tracer.locks_alone = None
        for number in range(_MOST):
            tracer.lost_ns = number
            recorder.finish_program(seen.process.pid)
        session = recorder.session([])

    assert 200 == session.left_out
    assert 1 == len(session.locks)
