"""Stops of the world, each of them counted by what has asked for it: also where nobody sleeps."""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from accuracy.truth import spoken_to
from gilscope.locks.account import LockAccount
from gilscope.locks.probe import LockProbe
from gilscope.locks.program import begin_loading
from gilscope.model.locks import LockTotals, StopCause, WorldStops
from gilscope.runtimes.cpython.parking.sites import find_park_sites
from support.interpreters.known import FREE_THREADED, MUSL_FREE_THREADED, Interpreter
from support.paths import WORKLOADS
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_TIMES = 10
# Of which some do it twice: a collection, and what is set and set back.
_IN_ALL = {
    **dict.fromkeys(("objects", "referrers", "referents", "frames", "exceptions"), 1),
    **dict.fromkeys(("recursion", "blocks", "callback", "fork"), 1),
    **dict.fromkeys(("collect", "freeze", "events", "local_events"), 2),
}
_FROM_3_14 = {
    **dict.fromkeys(("name", "qualname", "doc", "module", "defaults", "kwdefaults"), 1),
    **dict.fromkeys(("code", "class_name"), 1),
    "bases": 2,
}
_STOPS: Mapping[tuple[int, int], Mapping[str, int]] = {
    (3, 13): _IN_ALL,
    (3, 14): {**_IN_ALL, **_FROM_3_14},
    (3, 15): {**_IN_ALL, **_FROM_3_14, "bases": 4},
}
"""How often each function of the workload stops the world, by version."""
_NONE = Counter({"attribute": 1})
"""Functions that do not."""


_ALL = [*FREE_THREADED, *MUSL_FREE_THREADED]


@pytest.mark.parametrize("others", ["alone", "busy"])
@pytest.mark.parametrize("interpreter", _ALL)
def test_each_stop_is_counted(interpreter: Interpreter, others: str) -> None:
    """
    As often as that version does it for each operation, and it takes no longer than the operation.
    """
    answer, seen = _stopped(interpreter, others)
    stops: Counter[str] = Counter()
    for stop in seen.stops:
        stops[_function(stop)] += stop.stops

    expected = {name: _TIMES * each for name, each in _STOPS[interpreter.minor].items()}
    assert expected == {name: stops[name] for name in {*expected, *(stops & _NONE)}}
    assert {} == seen.lost_events
    causes = {_function(stop): stop.cause for stop in seen.stops}
    assert StopCause.COLLECTION is causes["collect"]
    assert StopCause.OTHER is causes["frames"]
    for stop in seen.stops:
        assert 0 < stop.longest_ns <= stop.ns
    for name in expected:
        took_ns = sum(stop.ns for stop in seen.stops if _function(stop) == name)
        assert 0 < took_ns <= answer["took_ns"][name]


@pytest.mark.parametrize("interpreter", _ALL)
def test_the_world_of_two_that_stop_it_stands_once(interpreter: Interpreter) -> None:
    """
    Who has to wait until another stop is over has not stopped the world meanwhile.
    """
    if interpreter.minor < (3, 14):
        pytest.skip("this version stops no world when the documentation of a function is changed")
    answer, seen = _stopped(interpreter, "two")
    stops = [stop for stop in seen.stops if _function(stop) == "doc"]

    assert 2 * _TIMES * answer["operations"] == sum(stop.stops for stop in stops)
    assert sum(stop.standing_ns for stop in stops) <= answer["took_ns"]["doc"]


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_where_it_is_not_known_where_it_is_stopped_sleepers_tell(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Of a build that is made in another way: no more stops than there are, by the same functions.
    """
    monkeypatch.setattr(
        "gilscope.locks.target.find_park_sites",
        lambda image: replace(find_park_sites(image), world=None),
    )
    _, alone = _stopped(interpreter, "alone")
    _, busy = _stopped(interpreter, "busy")
    stops: Counter[str] = Counter()
    for stop in busy.stops:
        stops[_function(stop)] += stop.stops
    most = {name: _TIMES * each for name, each in _STOPS[interpreter.minor].items()}

    assert () == alone.stops
    assert sum(stops.values()) > sum(most.values()) / 10
    assert not stops - Counter(most) - Counter({"unknown": _TIMES})


def _stopped(interpreter: Interpreter, others: str) -> tuple[dict[str, Any], LockTotals]:
    """Return what the workload says, and what was seen of it."""
    command = [*command_of(interpreter), str(WORKLOADS / "world_stops.py"), str(_TIMES), others]
    account = LockAccount(lambda: LockProbe(begin_loading()))
    with closing(account), spoken_to(command) as workload:
        account.attach(workload.pid)
        answer = workload.run()
        (seen,) = account.observe()
        workload.finish()
    assert seen.totals is not None
    return dict(answer), seen.totals


def _function(stop: WorldStops) -> str:
    return stop.stack.frames[0].function if stop.stack.frames else "unknown"
