"""What reports say of the time that they are about, where that is not all of it."""

from collections.abc import Iterator

from gilscope.text.units import percent, seconds

__all__ = ["coverage_words"]

_NEARLY_ALL = 0.99
"""Of the time: what a single window lacks while its probes are put in."""


def coverage_words(observed_ns: int, passed_ns: int, *, is_whole: bool) -> Iterator[str]:
    """Yield how much of *passed_ns* was observed, in windows, where that is not all of it."""
    passed_ns = max(1, passed_ns)
    if is_whole or observed_ns >= _NEARLY_ALL * passed_ns:
        return
    yield (
        f"Seen for {seconds(observed_ns)} in windows at random, "
        f"{percent(observed_ns / passed_ns)} of the time, as the overhead budget "
        "allows: all figures are of these. --mode full sees all of the time."
    )
