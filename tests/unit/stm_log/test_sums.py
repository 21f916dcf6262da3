"""Sums over logs, and what has come since."""

from gilscope.stm_log.sums import LogSums, Loss, bounded, sums_of
from support.stm_log.program import played_log
from support.stm_log.reading import file_of
from support.stm_log.writer import MS, LogWriter, marker

_HALF = 40_000


def _sums(content: bytes) -> LogSums:
    return sums_of(file_of(content))


def _one_abort(line: int, offset: int, lost_ns: int) -> LogWriter:
    first = marker(line, offset=offset)
    return (
        LogWriter().add(0, 1, "START").add(lost_ns, 1, "WRITE_READ", first).add(lost_ns, 1, "ABORT")
    )


def test_sums_are_those_of_the_log() -> None:
    """
    Numbers and times of transactions, and what each place has cost.
    """
    (log,) = file_of(played_log("E16", 3000).content).logs

    sums = _sums(played_log("E16", 3000).content)

    totals = log.totals
    assert (log.records, totals.commits, totals.aborts, totals.minor_gc_ns, totals.major_gc_ns) == (
        sums.records,
        sums.commits,
        sums.aborts,
        sums.minor_gc_ns,
        sums.major_gc_ns,
    )
    assert (totals.committed_runs, totals.aborted_runs) == (sums.committed_runs, sums.aborted_runs)
    assert {kind: ns for kind, (ns, _) in totals.waits.items()} == sums.waits_ns
    assert totals.aborted_ns - totals.unexplained_ns == sum(
        loss.lost_ns for loss in sums.losses.values()
    )
    assert {} == sums.errors


def test_a_line_is_one_place_whatever_its_offset() -> None:
    """
    The bytecode offset differs from one use of a line to the next.
    """
    both = _sums(_one_abort(3, 10, 2 * MS).content) + _sums(_one_abort(3, 16, 5 * MS).content)

    place = ("STM_CONTENTION_WRITE_READ", (marker(3),), False)
    assert {place: Loss(7 * MS, 0, 2)} == both.losses


def test_difference_is_what_has_come_since() -> None:
    """
    Added to what was there before it is what is there now; what has not changed is left out.
    """
    content = played_log("E16", 5000).content
    before, now = _sums(content[:_HALF]), _sums(content)

    since = now - before

    assert now == before + since
    assert {} == (now - now).losses
    assert LogSums() == now - now


def test_nothing_falls() -> None:
    """
    Each figure is the larger one of two.
    """
    small, large = (_sums(played_log("E16", count).content) for count in (500, 3000))

    assert large == large.at_least(small) == small.at_least(large)
    other = _sums(_one_abort(3, 10, 2 * MS).content)
    assert {*large.losses, *other.losses} == set(other.at_least(large).losses)


def test_places_are_bounded_and_no_time_is_lost() -> None:
    """
    The costliest stay; the others are added up by kind.
    """
    sums = LogSums()
    for line in range(10):
        sums += _sums(_one_abort(line, 0, (line + 1) * MS).content)

    few = bounded(sums, 3)

    kind = "STM_CONTENTION_WRITE_READ"
    assert {
        (kind, (marker(9),), False): Loss(10 * MS, 0, 1),
        (kind, (marker(8),), False): Loss(9 * MS, 0, 1),
        (kind, (marker(7),), False): Loss(8 * MS, 0, 1),
        (kind, (), True): Loss(28 * MS, 0, 7),
    } == few.losses
    assert sums == bounded(sums, 10)


def test_what_is_not_understood_is_counted() -> None:
    """
    Gaps, and numbers of events that there are not.
    """
    first, second = (played_log("E16", 300, seed).content for seed in (1, 2))
    unknown = LogWriter().add(0, 1, "START").add(1, 1, 40).add(2, 1, 40).add(3, 1, "COMMIT")

    assert {"gap": 1} == _sums(first + bytes(40) + second[16:]).errors
    assert {"unknown_event": 2} == _sums(unknown.content).errors
