"""What an experiment is made of: cells, each measured once a round, and what came of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BUSY", "MEASURED", "Cell", "CellFailed", "Experiment", "Figures", "Outcome", "Results"]

MEASURED = "measured"
BUSY = "not measured: busy"
"""The gate was shut: no number of such a cell exists."""

Figures = dict[str, Any]
"""What one run of a cell gave; plain JSON, names with units."""


class CellFailed(Exception):
    """A cell could not be measured, or its known answer did not come; the message says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm of an experiment with all its parameters."""

    key: str
    """Unique within the experiment, such as ``3.13/two/1/traced``."""
    axes: Mapping[str, str | float]
    """The same in parts, for tables and plots."""
    cpus: str
    """The named CPU set that its processes run on; see gate.py."""
    seconds: float
    """What it is expected to take, for the plan."""
    measure: Callable[[], Figures]
    """Runs it once; raises CellFailed, and OSError or ToolFailed."""
    rounds: int = 5
    timed: bool = True
    """Clocks are compared, so the gate has to be open."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of a cell."""

    key: str
    axes: Mapping[str, str | float]
    round: int
    state: str
    """``measured``, or ``not measured: `` with the reason."""
    figures: Figures = field(default_factory=dict)
    spin_share: float | None = None
    """What a spin got of its CPUs before and after, at least, 0 to 1; None: it is not timed."""
    stolen_share: float | None = None
    """What the hypervisor took of all CPU time meanwhile."""


@dataclass(frozen=True, slots=True)
class Results:
    """All that is known of one experiment."""

    name: str
    about: Mapping[str, Any]
    """Machine, versions, date, command; empty where it was never run."""
    outcomes: tuple[Outcome, ...] = ()

    def measured(self, **axes: str | float) -> Iterator[Outcome]:
        """Yield the runs that have figures and these values on these axes."""
        for each in self.outcomes:
            if each.state == MEASURED and axes.items() <= each.axes.items():
                yield each

    def values(self, figure: str, **axes: str | float) -> list[float]:
        """Return that figure of all these runs that have it."""
        found = (each.figures.get(figure) for each in self.measured(**axes))
        return [float(value) for value in found if value is not None]

    def reasons(self, **axes: str | float) -> list[str]:
        """Return why runs with these values have no figures, each reason once."""
        states = (each.state for each in self.outcomes if axes.items() <= each.axes.items())
        return sorted({state for state in states if state != MEASURED})


@dataclass(frozen=True, slots=True)
class Experiment:
    """One page: what the source did, run again."""

    name: str
    title: str
    sources: tuple[str, ...]
    """Rows of the inventory that it is about."""
    source: Mapping[str, Any]
    """The source's figures, as they go into the results beside ours."""
    cells: Callable[[bool], Sequence[Cell]]
    """For a quick run or a full one; must need no machine to be listed."""
    body: Callable[[Results], str]
    """The page below its title, in Markdown."""
    pictures: Callable[[Results], Mapping[str, str]]
    """SVG documents by file name; none where nothing was measured."""
    found: Callable[[Results], Mapping[str, tuple[str, str]]]
    """By row of the inventory: our figure, and whether its shape is the source's."""
