"""Profiles that are sent one after the other."""

from dataclasses import replace

from gilscope.model.application import EVERYBODYS
from gilscope.model.gil import GilObservation
from gilscope.model.observation import Observation
from gilscope.web.otlp.profiles import Profiles
from support.recordings.gil import MS, with_edges
from support.reports.otlp_profiles import read

_FIRST = with_edges().observation


class _Process:
    """What is seen of one."""

    def __init__(self) -> None:
        self.seen: GilObservation = _FIRST

    def go_on(self) -> None:
        """Lose as much again, in a second."""
        totals = self.seen.totals
        doubled = tuple(
            replace(edge, lost=edge.lost + before.lost)
            for edge, before in zip(totals.edges, _FIRST.totals.edges, strict=True)
        )
        totals = replace(totals, at_ns=totals.at_ns + 1000 * MS, edges=doubled)
        self.seen = replace(self.seen, totals=totals)

    def made(self) -> Profiles:
        """Return what makes profiles of it."""
        return Profiles(lambda: [Observation(gil=self.seen)], "contention", EVERYBODYS)


def _lost_ns(request: bytes | None) -> int:
    assert request is not None
    return next(each.total for each in read(request) if each.type[0] == "gil_wait")


def test_each_has_what_was_lost_since_the_last() -> None:
    """
    The first one has all since the attachment.
    """
    process = _Process()
    profiles = process.made()
    first = profiles.request()
    profiles.taken()
    process.go_on()
    second = profiles.request()

    assert (1940 * MS, 1940 * MS) == (_lost_ns(first), _lost_ns(second))
    assert second is not None
    assert {1000 * MS} == {each.duration_ns for each in read(second)}


def test_what_is_not_taken_is_in_the_next() -> None:
    """
    Nothing is lost when a receiver is away for a while.
    """
    process = _Process()
    profiles = process.made()
    profiles.request()
    process.go_on()

    assert 2 * 1940 * MS == _lost_ns(profiles.request())


def test_a_process_that_has_ended_has_a_last_one() -> None:
    """
    Then there is nothing to send.
    """
    process = _Process()
    process.seen = replace(_FIRST, ended=True)
    profiles = process.made()

    assert 1940 * MS == _lost_ns(profiles.request())
    profiles.taken()
    assert None is profiles.request()
