"""How much of the time a report is about."""

from gilscope.reports.coverage import coverage_words

_S = 1_000_000_000


def test_what_was_seen_in_windows_says_so() -> None:
    """
    Not where that is all the time, or all but what the first probes took.
    """
    expected = (
        "Seen for 0.500s in windows at random, 5 % of the time, as the overhead budget allows: all "
        "figures are of these. --mode full sees all of the time."
    )
    assert [expected] == list(coverage_words(_S // 2, 10 * _S, is_whole=False))
    assert [] == list(coverage_words(_S // 2, 10 * _S, is_whole=True))
    assert [] == list(coverage_words(99 * _S, 100 * _S, is_whole=False))
    assert 1 == len(list(coverage_words(98 * _S, 100 * _S, is_whole=False)))
