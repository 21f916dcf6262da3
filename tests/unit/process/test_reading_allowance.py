"""What reading the memory of one process may cost."""

import pytest

from gilscope.process.reading_allowance import ReadingAllowance


@pytest.mark.parametrize(
    ("spent", "is_used_up"),
    [
        # Seconds of CPU and of the clock: all at once, too much at once, little for long, a tenth.
        ([(4.9, 0)], False),
        ([(5.1, 0)], True),
        ([(0.05, at) for at in range(1, 1000)], False),
        ([(0.1, at) for at in range(1, 90)], False),
        ([(0.1, at) for at in range(1, 120)], True),
    ],
)
def test_what_is_too_much(spent: list[tuple[float, float]], *, is_used_up: bool) -> None:
    """
    Five seconds at once, a twentieth in the long run.
    """
    allowance = ReadingAllowance(0.0)
    for cpu_s, now_s in spent:
        allowance.spend(cpu_s, now_s)

    assert is_used_up == allowance.is_used_up


def test_a_pause_is_saved_up_to_a_bound() -> None:
    """
    Nobody who was quiet for an hour may take minutes.
    """
    allowance = ReadingAllowance(0.0)
    allowance.spend(5.1, 3600.0)

    assert allowance.is_used_up


def test_the_time_of_this_thread_is_counted() -> None:
    """
    What a reading uses is taken off, also where it fails.
    """
    allowance = ReadingAllowance()
    allowance.spend(4.999999, 0.0)
    with pytest.raises(ZeroDivisionError):
        allowance.counted(lambda: sum(range(200_000)) // 0)

    assert allowance.is_used_up
