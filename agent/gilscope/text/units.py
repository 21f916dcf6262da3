"""Times, sizes and shares as people read them."""

__all__ = [
    "NS_PER_S",
    "counted",
    "megabytes",
    "percent",
    "seconds",
    "short_duration",
    "short_number",
]

NS_PER_S = 1_000_000_000
_BYTES_PER_MB = 1_000_000
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
_THREE_DIGITS = 999.5
"""What is below still has three digits when it is rounded."""
_LEAST_PERCENT = 0.01


def seconds(ns: int) -> str:
    """Return *ns* in seconds to the millisecond: ``4.213s``."""
    return f"{ns / NS_PER_S:.3f}s"


def short_duration(ns: int) -> str:
    """Return *ns* to three digits in the unit that suits it: ``5.24 ms``."""
    for unit_ns, name in _UNITS:
        # What would be rounded to 1000 of the smaller unit is 1 of this one.
        if ns >= unit_ns - unit_ns // 2000:
            value = ns / unit_ns
            return f"{short_number(value)} {name}"
    return "0 ns"


def short_number(value: float) -> str:
    """Return *value* to three digits, or as a whole number where it has more: ``1050``."""
    return f"{value:.3g}" if value < _THREE_DIGITS else f"{value:.0f}"


def percent(share: float) -> str:
    """Return *share* as a percentage: ``84 %``; below one percent with one more digit."""
    value = 100 * share
    if 0 < value < _LEAST_PERCENT:
        return "< 0.01 %"
    return f"{value:.0f} %" if value >= 1 or value == 0 else f"{value:.2g} %"


def counted(count: int, one: str, many: str = "") -> str:
    """Return *count* with what it counts: ``1 wait``, ``3 waits``; *many* is *one* and an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def megabytes(size: int) -> str:
    """Return *size*, which is in bytes, in millions of them: ``48.2 MB``."""
    return f"{size / _BYTES_PER_MB:.1f} MB"
