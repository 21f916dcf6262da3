"""Times and shares as people read them."""

__all__ = ["percent", "seconds", "short_duration"]

_NS_PER_S = 1_000_000_000
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def seconds(ns: int) -> str:
    """Return *ns* in seconds to the millisecond: ``4.213s``."""
    return f"{ns / _NS_PER_S:.3f}s"


def short_duration(ns: int) -> str:
    """Return *ns* to three digits in the unit that suits it: ``5.24 ms``."""
    for unit_ns, name in _UNITS:
        if ns >= unit_ns:
            return f"{ns / unit_ns:.3g} {name}"
    return "0 ns"


def percent(share: float) -> str:
    """Return *share* as a percentage: ``84 %``; below one percent with one more digit."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 1 or value == 0 else f"{value:.2g} %"
