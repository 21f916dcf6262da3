"""Counts over time, on cells and in sums."""

from gilscope.model.stm_log import BINS, OverTime
from gilscope.stm_log.time_bins import add_up, cells_of
from support.stm_log.reading import log_of, original_log
from support.stm_log.writer import MS, LogWriter, S


def _line(begin_ns: int, step_ns: int, *counts: int) -> OverTime:
    return OverTime(begin_ns, step_ns, counts + (0,) * (BINS - len(counts)))


def test_steps_go_to_the_cells_of_their_middles() -> None:
    """
    No count is lost, also where steps and cells do not fit.
    """
    assert [3, 3, 4] == cells_of(_line(0, 10, 1, 2, 3, 0, 4), 0, 50, 3)


def test_what_is_outside_goes_to_the_ends() -> None:
    """
    A clock that goes back does not lose a conflict.
    """
    assert [1, 2] == cells_of(_line(0, 10, 1, 0, 0, 0, 2), 20, 20, 2)


def test_no_time_is_one_cell() -> None:
    """
    A log of a single record has a line as well.
    """
    assert [1, 0, 0] == cells_of(_line(5, 10, 1), 5, 0, 3)


def test_exact_cells_stay_as_they_are() -> None:
    """
    What was counted in cells is not spread again.
    """
    assert [1, 0, 2] == cells_of(OverTime(7, 3, (1, 0, 2)), 0, 100, 3)


def test_lines_of_other_scales_add_up() -> None:
    """
    The sum begins with the first and has the longest step.
    """
    first, second = _line(0, 8, 1, 1), _line(32, 16, 5)

    assert _line(0, 16, 2, 0, 5) == add_up([first, second])


def test_sum_gets_longer_steps_where_it_must() -> None:
    """
    Logs that are far apart are one line all the same.
    """
    total = add_up([_line(0, 1, 1), _line(1000 * BINS, 1, 1)])

    assert (0, 1024, 2) == (total.begin_ns, total.step_ns, sum(total.counts))


def test_steps_grow_with_the_log() -> None:
    """
    However long a log is, its conflicts are spread over at least half of the steps.
    """
    for length_ns in (3 * MS, 10 * S, 100_000 * S):
        writer = LogWriter()
        for number in range(101):
            now_ns = length_ns * number // 100
            writer.add(now_ns, 1, "START").add(now_ns, 1, "WRITE_READ").add(now_ns, 1, "ABORT")
        (conflict,) = log_of(writer.content).conflicts
        used = [step for step, count in enumerate(conflict.over_time.counts) if count]

        assert 101 == sum(conflict.over_time.counts)
        assert BINS // 2 <= used[-1] < BINS


def test_original_places_each_conflict_exactly() -> None:
    """
    The cell is what the original computes, and the last record is in the last one.
    """
    writer = LogWriter()
    for second in range(61):
        now_ns = second * S
        writer.add(now_ns, 1, "START").add(now_ns, 1, "WRITE_READ").add(now_ns, 1, "ABORT")
    (conflict,) = original_log(writer.content).conflicts

    assert (*[1] * 59, 2) == conflict.over_time.counts
