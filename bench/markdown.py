"""Writes tables in Markdown, and quantities as they stand in them."""

from collections.abc import Iterable, Sequence

from bench.ratios import spread

__all__ = ["NONE", "key_table", "ranged", "table"]

NONE = "-"
"""Stands where nothing was measured."""


def ranged(values: Iterable[float], digits: int, unit: str = "") -> str:
    """Return the median of *values* and their range, with so many *digits* behind the point."""
    all_values = list(values)
    if not all_values:
        return NONE
    found = spread(all_values)
    median, low, high = (f"{each:.{digits}f}" for each in (found.median, found.low, found.high))
    return f"{median}{unit} [{low}..{high}]"


def key_table(rows: Iterable[tuple[str, str]]) -> str:
    """Return names with their values."""
    return table(["", ""], rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the table; every row has as many cells as *header*."""
    return "".join(map(_row, [header, ["---"] * len(header), *rows]))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
