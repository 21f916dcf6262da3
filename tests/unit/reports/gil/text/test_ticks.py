"""What is said of a lock that those who wait do not ask for."""

from dataclasses import replace

from gilscope.model.gil import Recording, Tally
from gilscope.reports.gil.text.ticks import failed_wakeup_lines, no_lock_lines, tick_advice
from support.recordings.gil import convoy


def _of_27(check_interval: int | None = 100) -> Recording:
    """Return a recording of two threads that were woken six times for nothing."""
    seen = convoy().observation
    threads = tuple(
        replace(thread, failed_wakeups=Tally(250_000_000, 3)) for thread in seen.totals.threads[:2]
    )
    totals = replace(seen.totals, threads=threads, check_interval=check_interval)
    process = replace(seen.process, python="2.7.18", asks_holder=False, wakes_in_vain=True)
    return replace(convoy(), observation=replace(seen, process=process, totals=totals))


def test_failed_wakeups_are_told_with_what_they_cost() -> None:
    """
    How many, how many for each wait, and how long was waited after them.
    """
    recording = _of_27()
    waits = sum(thread.waits for thread in recording.observation.totals.threads)

    assert [
        f"Failed wake-ups: 6, {6 / waits:.1f} for each wait. Threads were woken, found the GIL",
        "held again, and waited 0.500s from there on.",
    ] == list(failed_wakeup_lines(recording))


def test_advice_names_the_interval_of_ticks() -> None:
    """
    As the program has set it, where that could be read.
    """
    assert "every 1000 bytecodes" in " ".join(tick_advice(_of_27(1000)))
    assert "after some bytecodes" in " ".join(tick_advice(_of_27(None)))


def test_no_lock_is_said() -> None:
    """
    Before the first thread there is none; with one, nothing is said.
    """
    recording = _of_27()
    seen = recording.observation
    none = replace(recording, observation=replace(seen, totals=replace(seen.totals, gils=())))

    assert [] == list(no_lock_lines(recording))
    assert [
        "The process has no GIL yet: CPython 2.7 makes it when the first thread is started."
    ] == (list(no_lock_lines(none)))


def test_of_a_gil_that_is_asked_for_nothing_is_said() -> None:
    """
    CPython 3 has none of that.
    """
    said = (failed_wakeup_lines, tick_advice, no_lock_lines)

    assert [] == [line for words in said for line in words(convoy())]
