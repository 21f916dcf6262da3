"""Which looks at a process are kept."""

from dataclasses import replace

from gilscope.model.gil import GilObservation
from gilscope.series.snapshots import SnapshotSeries
from support.recordings.gil import MS, observation

_S = 1000 * MS


def _seen(at_ns: int) -> GilObservation:
    seen = observation()
    return replace(seen, totals=replace(seen.totals, at_ns=at_ns))


def _kept_s(snapshots: SnapshotSeries) -> list[float]:
    return [seen.totals.at_ns / _S for seen in snapshots.kept]


def test_first_look_is_a_second_after_the_beginning() -> None:
    """
    And the next one a second after that one, however late it was.
    """
    snapshots = SnapshotSeries(5 * _S)
    due = [snapshots.is_due(6 * _S - 1), snapshots.is_due(6 * _S)]
    snapshots.add(_seen(6300 * MS))

    assert [False, True] == due
    assert [False, True] == [snapshots.is_due(7300 * MS - 1), snapshots.is_due(7300 * MS)]


def test_every_second_look_is_given_up_when_there_are_too_many() -> None:
    """
    From then on looks are twice as far apart, so that they stay even and few.
    """
    snapshots = SnapshotSeries(0, most=4)
    for at_s in range(1, 100):
        if snapshots.is_due(at_s * _S):
            snapshots.add(_seen(at_s * _S))

    assert [32, 64, 96] == _kept_s(snapshots)


def test_what_cannot_be_trusted_is_not_kept() -> None:
    """
    Such a look has no totals.
    """
    snapshots = SnapshotSeries(0)
    snapshots.add(replace(_seen(_S), invalid="more releases than acquires"))

    assert () == snapshots.kept
