"""Which places at locks have series of their own."""

from dataclasses import replace

from gilscope.model.locks import LockObservation
from gilscope.series.locks.places import LockSeries
from support.recordings.locks import MS, lock_recording

_PLACE = ("append (app.py:12)", "sort (app.py:33)", "list", "object")


def _grown(seen: LockObservation, more_ms: int) -> LockObservation:
    """Return it with as much more lost by the first thread for the list."""
    assert seen.totals is not None
    first, *others = seen.totals.threads
    lost, *rest = first.waits
    lost = replace(lost, wait_ns=lost.wait_ns + more_ms * MS, waits=lost.waits + 1)
    threads = (replace(first, waits=(lost, *rest)), *others)
    return replace(seen, totals=replace(seen.totals, threads=threads))


def test_a_series_has_what_its_place_loses_after_its_beginning() -> None:
    """
    What is under other is told apart by kind, and not by type: there is no end to types.
    """
    seen, book = lock_recording().observation, LockSeries(10)
    book.series([seen])
    shown = dict(zip(*_columns(book, _grown(seen, 50)), strict=True))

    assert (50 * MS, 1) == shown[_PLACE]
    assert (30 * MS, 2) == shown["other", "other", "other", "object"]


def _columns(book: LockSeries, seen: LockObservation) -> tuple[list[object], list[object]]:
    (series,) = book.series([seen]).values()
    return [labels for labels, _, _ in series], [(ns, count) for _, ns, count in series]


def test_who_released_what_may_not_be_known() -> None:
    """
    As where a thread got its lock without sleeping.
    """
    names, _ = _columns(LockSeries(10), lock_recording().observation)

    assert ("append (app.py:12)", "not known", "", "lock") in names


def test_another_program_has_books_of_its_own() -> None:
    """
    Its figures begin again.
    """
    seen, book = lock_recording().observation, LockSeries(10)
    book.series([seen])
    fresh = replace(_grown(seen, 50), since_ns=seen.since_ns + 1)
    shown = dict(zip(*_columns(book, fresh), strict=True))

    assert (0, 0) == shown[_PLACE]


def test_without_room_there_are_no_series() -> None:
    """
    As --pairs 0 asks for.
    """
    assert {} == LockSeries(0).series([lock_recording().observation])


def test_a_service_has_what_all_its_processes_lose() -> None:
    """
    Those that have gone too, and one that could not be read for a moment but once.
    """
    seen, book = lock_recording().observation, LockSeries(10, by_service=True)
    other = replace(seen, process=replace(seen.process, pid=2))
    broken = replace(_grown(seen, 30), invalid="for a moment")
    book.series([seen, other])
    book.series([broken, _grown(other, 50)])
    (series,) = book.series([_grown(seen, 50)]).values()
    shown = {labels: (ns, count) for labels, ns, count in series}

    assert (100 * MS, 2) == shown[_PLACE]
    assert (60 * MS, 4) == shown["other", "other", "other", "object"]
