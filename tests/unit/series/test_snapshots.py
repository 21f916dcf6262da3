"""Which looks at a process are kept."""

from dataclasses import replace

from gilscope.model.gil import Observation
from gilscope.series.snapshots import SnapshotSeries
from support.recordings.gil import MS, observation

_S = 1000 * MS


def _seen(at_ns: int) -> Observation:
    seen = observation()
    return replace(seen, totals=replace(seen.totals, at_ns=at_ns))


def _kept_s(looks: SnapshotSeries) -> list[float]:
    return [seen.totals.at_ns / _S for seen in looks.kept]


def test_first_look_is_a_second_after_the_beginning() -> None:
    """
    And the next one a second after that one, however late it was.
    """
    looks = SnapshotSeries(5 * _S)
    due = [looks.is_due(6 * _S - 1), looks.is_due(6 * _S)]
    looks.add(_seen(6300 * MS))

    assert [False, True] == due
    assert [False, True] == [looks.is_due(7300 * MS - 1), looks.is_due(7300 * MS)]


def test_every_second_look_is_given_up_when_there_are_too_many() -> None:
    """
    From then on looks are twice as far apart, so that they stay even and few.
    """
    looks = SnapshotSeries(0, most=4)
    for at_s in range(1, 100):
        if looks.is_due(at_s * _S):
            looks.add(_seen(at_s * _S))

    assert [32, 64, 96] == _kept_s(looks)


def test_what_cannot_be_trusted_is_not_kept() -> None:
    """
    Such a look has no totals.
    """
    looks = SnapshotSeries(0)
    looks.add(replace(_seen(_S), invalid="more releases than acquires"))

    assert () == looks.kept
