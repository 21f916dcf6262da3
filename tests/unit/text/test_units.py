"""Times and shares for people."""

from gilscope.text.units import counted, megabytes, percent, seconds, short_duration, short_number


def test_durations_have_three_digits_and_a_unit() -> None:
    """
    The unit suits the size.
    """
    assert ["0 ns", "999 ns", "1 us", "5.24 ms", "17.2 s"] == [
        short_duration(ns) for ns in (0, 999, 1000, 5_242_880, 1 << 34)
    ]


def test_numbers_have_no_exponent() -> None:
    """
    Three digits, or as many as a whole number has.
    """
    assert ["0.125", "5.24", "999", "1050"] == [
        short_number(value) for value in (0.125, 5.2428, 999.4, 1050.3)
    ]


def test_seconds_are_exact_to_the_millisecond() -> None:
    """
    As in the known reports of this kind.
    """
    assert "4.213s" == seconds(4_213_400_000)


def test_small_shares_are_not_rounded_to_nothing() -> None:
    """
    0.3 % is not 0 %.
    """
    assert ["84 %", "1 %", "0.31 %", "0 %"] == [percent(x) for x in (0.84, 0.01, 0.0031, 0)]


def test_rounding_up_changes_the_unit() -> None:
    """
    Never a thousand of the smaller one, nor an exponent.
    """
    assert ["999 us", "1 ms", "1 ms", "1 s", "1234 s"] == [
        short_duration(ns) for ns in (999_499, 999_500, 999_999, 999_999_999, 1_234_000_000_000)
    ]


def test_tiny_shares_are_said_to_be_tiny() -> None:
    """
    No exponent either.
    """
    assert ["0.01 %", "< 0.01 %"] == [percent(x) for x in (0.0001, 0.00009)]


def test_memory_is_in_millions_of_bytes() -> None:
    """
    With a tenth.
    """
    assert "29.5 MB" == megabytes(29_500_000)


def test_what_is_counted_has_its_number() -> None:
    """
    With a word of its own where no s will do.
    """
    assert "1 wait" == counted(1, "wait")
    assert "0 waits" == counted(0, "wait")
    assert "2 processes" == counted(2, "process", "processes")
