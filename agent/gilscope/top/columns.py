"""The columns of the process table, and the orders that it can be read in."""

from collections.abc import Callable, Iterable

from gilscope.top.figures import a_second, milliseconds, percent, share, small_percent
from gilscope.top.rates import ProcessRates, RoleRates
from gilscope.values import dataclass
from gilscope.verdict.estimates import is_held_estimated

__all__ = ["COLUMNS", "Column", "Order"]

_Figure = Callable[[ProcessRates, ProcessRates | RoleRates], float | None]


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a process, or of one of its roles."""

    name: str
    """In words, as the view says what it is sorted by."""
    head: tuple[str, str]
    width: int
    show: Callable[[float], str]
    figure: _Figure
    """Of a process, and it once more or one of its roles; None: not known, the cell is empty."""
    is_estimate: Callable[[ProcessRates, ProcessRates | RoleRates], bool] = lambda *_: False


def _lost(process: ProcessRates, whose: ProcessRates | RoleRates) -> float | None:
    return share(whose.lost_ns, process.elapsed_ns)


def _convoy(process: ProcessRates, whose: ProcessRates | RoleRates) -> float | None:
    return share(whose.convoy_ns, whose.lost_ns) if process.process.knows_causes else None


def _waiting(_process: ProcessRates, whose: ProcessRates | RoleRates) -> float | None:
    return whose.waiting


def _held(process: ProcessRates, whose: ProcessRates | RoleRates) -> float | None:
    # Of a role it is known in windows only, of a GIL always.
    is_role = isinstance(whose, RoleRates)
    return share(whose.held_ns, process.observed_ns if is_role else process.elapsed_ns)


def _is_held_estimated(process: ProcessRates, whose: ProcessRates | RoleRates) -> bool:
    is_role = isinstance(whose, RoleRates)
    return not is_role and is_held_estimated(process.observed_ns, process.elapsed_ns)


def _longest_wait(_process: ProcessRates, whose: ProcessRates | RoleRates) -> float | None:
    return whose.longest_wait_ns or None


def _longest_hold(_process: ProcessRates, whose: ProcessRates | RoleRates) -> float | None:
    return None if isinstance(whose, RoleRates) else whose.longest_hold_ns or None


def _overhead(_process: ProcessRates, whose: ProcessRates | RoleRates) -> float | None:
    return None if isinstance(whose, RoleRates) else whose.overhead


COLUMNS = (
    Column("time lost", ("lost", "ms/s"), 7, a_second, _lost),
    Column("convoy share", ("convoy", "%"), 6, percent, _convoy),
    Column("threads waiting", ("threads", "waiting"), 7, str, _waiting),
    Column("held share", ("held", "%"), 4, percent, _held, _is_held_estimated),
    Column("longest wait", ("longest", "wait ms"), 7, milliseconds, _longest_wait),
    Column("longest hold", ("longest", "hold ms"), 7, milliseconds, _longest_hold),
    Column("overhead", ("cost", "%"), 4, small_percent, _overhead),
)
"""With the name and the pid they fill 80 cells."""

_NAME, _PID = len(COLUMNS), len(COLUMNS) + 1
_NAMES = (*(column.name for column in COLUMNS), "name", "pid")


@dataclass(frozen=True, slots=True)
class Order:
    """What the table is sorted by: the process with most of it first, or the first name."""

    place: int = 0
    """In `COLUMNS`, and behind them the name and the pid."""
    is_reversed: bool = False

    @property
    def name(self) -> str:
        """The column, in words."""
        return _NAMES[self.place]

    def next(self) -> "Order":
        """Return the order by the next column."""
        return Order((self.place + 1) % len(_NAMES))

    def reversed(self) -> "Order":
        """Return the same order from its other end."""
        return Order(self.place, not self.is_reversed)

    def sorted(self, processes: Iterable[ProcessRates]) -> list[ProcessRates]:
        """Return *processes* in this order; from either end, what is not known comes last."""
        by_name = sorted(processes, key=lambda seen: (seen.process.name, seen.process.pid))
        if self.place == _NAME:
            return by_name[::-1] if self.is_reversed else by_name
        if self.place == _PID:
            return sorted(by_name, key=lambda seen: seen.process.pid, reverse=self.is_reversed)
        sign = 1 if self.is_reversed else -1
        figures = {id(seen): COLUMNS[self.place].figure(seen, seen) for seen in by_name}
        return sorted(
            by_name,
            key=lambda seen: (figures[id(seen)] is None, sign * (figures[id(seen)] or 0)),
        )
