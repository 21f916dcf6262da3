"""Captures of processes that are traced."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gilscope.dump import watch
from gilscope.dump.watch import TracedProcesses
from gilscope.gil.tracing.account import GilAccount
from gilscope.gil.tracing.requests import PublishedRequests
from gilscope.model.gil import GilObservation
from gilscope.model.moment.dump import Trigger
from gilscope.series.past import Past
from support.recordings.dump import held
from support.recordings.gil import with_edges

_LIMIT_NS = 500_000_000
_TRIGGER = Trigger(9, _LIMIT_NS, _LIMIT_NS)


@dataclass
class _Gils:
    """An account of one process."""

    traced: list[object]
    """What it is known by, each time that it is asked for."""
    seen: list[GilObservation]
    is_broken: bool = False

    def attached(self, _pid: int) -> object:
        return self.traced.pop(0)

    def observe(self) -> list[GilObservation]:
        if self.is_broken:
            raise ValueError("odd")
        return self.seen


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a process of which `held` is the dump."""

    @contextmanager
    def opened(*_: object) -> Iterator[None]:
        yield None

    monkeypatch.setattr(watch, "opened", opened)
    monkeypatch.setattr(watch, "take", lambda _subject: held())


def _traced() -> Any:
    process = SimpleNamespace(name="app.py")
    threads = SimpleNamespace(known={})
    return SimpleNamespace(
        target=SimpleNamespace(process=process, build=None),
        runtime=SimpleNamespace(threads=threads),
        requests=PublishedRequests(),
    )


def _processes(gils: _Gils) -> TracedProcesses:
    return TracedProcesses(cast("GilAccount", gils), Past(), _LIMIT_NS)


def _seen() -> GilObservation:
    seen = with_edges().observation
    return replace(seen, process=replace(seen.process, pid=7))


def test_with_what_was_counted() -> None:
    """
    The pairs of the time for which it is traced, where nothing is known from before.
    """
    traced, seen = _traced(), _seen()

    dump = _processes(_Gils([traced, traced], [with_edges().observation, seen])).capture(7, 9)

    assert dump is not None
    assert (9, _LIMIT_NS) == (dump.trigger.tid, dump.trigger.limit_ns) if dump.trigger else None
    assert len(seen.totals.edges) == len(dump.pairs or ())
    assert seen.totals.at_ns - seen.since_ns == dump.pairs_ns


def test_another_program_in_its_place() -> None:
    """
    What was opened may be its memory: nothing is told of it.
    """
    assert _processes(_Gils([_traced(), _traced()], [])).capture(7, 9) is None
    assert _processes(_Gils([None], [])).capture(7, 9) is None


@pytest.mark.parametrize(
    "gils",
    [
        _Gils([], [], is_broken=True),
        _Gils([], []),
        _Gils([], [replace(_seen(), invalid="why")]),
    ],
    ids=["failed", "gone", "not trusted"],
)
def test_without_what_was_counted(gils: _Gils) -> None:
    """
    The stacks are worth having all the same.
    """
    traced = _traced()
    gils.traced = [traced, traced]

    assert replace(held(), trigger=_TRIGGER) == _processes(gils).capture(7, 9)
