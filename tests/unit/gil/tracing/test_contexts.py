"""When a process is searched for what it publishes of its requests."""

import math
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.contexts import ContextFinder
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.gil.tracing.requests import PublishedRequests
from gilscope.process import procfs
from gilscope.process.files.thread_variables import VariableSearch
from gilscope.process.procfs import Mapping
from gilscope.process.reads import DirectReads

_PLAIN = b"400000-401000 r-xp 00000000 08:01 11 /usr/bin/python3\n"
_WITH_LIBRARY = _PLAIN + b"7f0000-7f1000 r-xp 00000000 08:01 12 /usr/lib/tracer.so\n"
_WITH_CONTEXT = _PLAIN + b"7f0000-7f1000 r--p 00000000 00:00 0 [anon:OTEL_CTX]\n"


class _World:
    """A process, what it has mapped, and how often that was searched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.maps = _PLAIN
        self.answer: tuple[None, bool] = (None, True)
        self.searches = 0
        self.finder = ContextFinder(cast("GilProbe", None))
        self.traced: Any = SimpleNamespace(
            pid=4711,
            since_ns=1,
            blame=object(),
            ended=False,
            requests=PublishedRequests(),
            reads=DirectReads(),
            memory=None,
        )
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(procfs, "read_maps_text", lambda _pid: self.maps)
        monkeypatch.setattr(VariableSearch, "locate", self._locate)

    def _locate(self, _pid: int, _mappings: Sequence[Mapping]) -> tuple[None, bool]:
        self.searches += 1
        return self.answer

    @property
    def due_s(self) -> float:
        """When the next search is due."""
        return self.finder.due_s(cast("AttachedProcess", self.traced))

    def look_when_due(self) -> None:
        """Let time pass until a search is due, and look."""
        self.now_s = max(self.now_s, self.due_s)
        self.finder.look(cast("AttachedProcess", self.traced))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> _World:
    """Return one in which nothing was searched yet."""
    return _World(monkeypatch)


def test_it_is_searched_ever_more_seldom(world: _World) -> None:
    """
    A second later, then after twice as long each time, up to a minute.
    """
    due_s = [world.due_s]
    for _ in range(9):
        world.look_when_due()
        due_s.append(world.due_s - world.now_s)

    assert [0, 1, 2, 4, 8, 16, 32, 60, 60, 60] == due_s


def test_before_it_is_due_nothing_is_read(world: _World) -> None:
    """
    It is asked several times a second.
    """
    world.look_when_due()
    world.maps = _WITH_LIBRARY
    world.finder.look(world.traced)

    assert 1 == world.searches


def test_the_same_mappings_are_not_searched_again(world: _World) -> None:
    """
    Nothing was found in them; with a library that was loaded since they are others.
    """
    for _ in range(3):
        world.look_when_due()
    assert 1 == world.searches
    world.maps = _WITH_LIBRARY
    for _ in range(2):
        world.look_when_due()

    assert 2 == world.searches


def test_a_search_that_is_not_complete_is_continued_at_once(world: _World) -> None:
    """
    Large programs have hundreds of files, of which a few are opened at a time.
    """
    world.answer = None, False
    world.look_when_due()
    assert world.now_s == world.due_s
    world.look_when_due()
    world.answer = None, True
    world.look_when_due()

    assert 3 == world.searches
    assert world.now_s + 1 == world.due_s


def test_a_context_is_read_again_and_again(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It may be in the course of being written, or be changed.
    """
    answers = iter([None, "context"])
    monkeypatch.setattr(
        "gilscope.gil.tracing.contexts.read_process_context", lambda *_: next(answers)
    )
    world.maps = _WITH_CONTEXT
    world.look_when_due()
    assert world.traced.requests.context is None
    world.look_when_due()

    assert "context" == world.traced.requests.context


@pytest.mark.parametrize("change", [{"blame": None}, {"ended": True}])
def test_some_are_never_searched(world: _World, change: dict[str, object]) -> None:
    """
    Whose stacks are not read, and who has ended.
    """
    for name, value in change.items():
        setattr(world.traced, name, value)
    world.finder.look(world.traced)

    assert math.inf == world.due_s
    assert 0 == world.searches
