"""The upper table of the live view: processes, and below each of them its thread roles."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from gilscope.model.gil import Refusal
from gilscope.text.printable import printable
from gilscope.top.columns import COLUMNS, Order
from gilscope.top.layout import Line, Row, Span, Tone, fit, fit_site, left, right
from gilscope.top.locks.rates import LockRates, LockThreadRates
from gilscope.top.locks.words import cells as lock_cells
from gilscope.top.rates import ProcessRates, RoleRates
from gilscope.top.transactions.rates import StmRates, StmThreadRates
from gilscope.top.transactions.words import cells as stm_cells
from gilscope.values import dataclass

__all__ = ["AnyRates", "RowKey", "heading", "matches", "rows"]

AnyRates = ProcessRates | StmRates | LockRates
"""Of a process with a GIL, with transactions, or with neither and locks."""

_PID_WIDTH = 7
_LEAST_NAME = 12
_INDENT = 2
_MOST_ROLES = 8

_MORE = ""
"""In place of a role, in the row that stands for further ones."""

_ABOUT = "≈"
"""Without a space: the column is narrow."""

_MARKED = 2
"""How many columns stand out where a convoy takes most of what is lost."""
_MARKED_LOST = 0.1
"""Seconds a second."""
_MARKED_CONVOY = 0.5


@dataclass(frozen=True, slots=True)
class RowKey:
    """What tells one row of the table from every other."""

    pid: int
    since_ns: int | None
    """When the process was attached; None: it was refused."""
    role: str | None = None
    """None: the row of the process itself."""


def matches(process: AnyRates | Refusal, words: str) -> bool:
    """Return whether the name, the pid or a role of *process* holds *words*, in any case."""
    if isinstance(process, Refusal):
        names = [process.name, str(process.pid)]
    elif isinstance(process, StmRates | LockRates):
        threads = (each.name for each in process.threads)
        names = [process.process.name, str(process.process.pid), *threads]
    else:
        roles = (role.role for role in process.roles)
        names = [process.process.name, str(process.process.pid), *roles]
    return any(words.lower() in name.lower() for name in names)


def heading(width: int, order: Order) -> tuple[Line, Line]:
    """Return the two lines above the table."""
    first = [
        Span("process", _head_tone("name", order)),
        Span(" " * (_name_width(width) + _PID_WIDTH - len("processpid")), Tone.HEAD),
        Span("pid", _head_tone("pid", order)),
    ]
    second = [Span(left("  thread role", _name_width(width) + _PID_WIDTH), Tone.HEAD)]
    for column in COLUMNS:
        for line, words in zip((first, second), column.head, strict=True):
            gap = " " * (column.width + 1 - len(words))
            line += [Span(gap, Tone.HEAD), Span(words, _head_tone(column.name, order))]
    return tuple(first), tuple(second)


def rows(
    processes: Iterable[AnyRates],
    refusals: Iterable[Refusal],
    width: int,
    shows_roles: Callable[[AnyRates], bool],
) -> list[Row]:
    """Return the table in *width* cells: *processes* as they come, then what was refused."""
    found: list[Row] = []
    for process in processes:
        if isinstance(process, StmRates | LockRates):
            found += _rows_without_gil(process, width, shows_threads=shows_roles(process))
            continue
        found.append(Row(_key(process), (_process_line(process, width),)))
        if shows_roles(process):
            found += _role_rows(process, width)
    for refusal in refusals:
        words = f"refused: {refusal.reason}"
        line = _line_in_words(refusal.name, refusal.pid, Span(words, Tone.BAD), width)
        found.append(Row(RowKey(refusal.pid, None), (line,)))
    return found


def _key(process: ProcessRates, role: str | None = None) -> RowKey:
    return RowKey(process.process.pid, process.since_ns, role)


def _process_line(process: ProcessRates, width: int) -> Line:
    name, pid = process.process.name, process.process.pid
    if process.invalid:
        words = Span(f"not reported: {process.invalid}", Tone.BAD)
        return _line_in_words(name, pid, words, width)
    if process.ended and not process.elapsed_ns:
        return _line_in_words(name, pid, Span("ended", Tone.DIM), width)
    return (*_name_and_pid(name, pid, width), *_cells(process, process))


def _line_in_words(name: str, pid: int, words: Span, width: int) -> Line:
    room = width - _name_width(width) - _PID_WIDTH - 2
    shown = Span(f"  {fit(printable(words.text), room)}", words.tone)
    return (*_name_and_pid(name, pid, width), shown)


def _name_and_pid(name: str, pid: int, width: int) -> tuple[Span, Span]:
    shown = left(printable(name), _name_width(width))
    return Span(shown, Tone.BOLD), Span(right(str(pid), _PID_WIDTH))


def _role_rows(process: ProcessRates, width: int) -> Iterator[Row]:
    room = _name_width(width) + _PID_WIDTH - _INDENT
    for role in process.roles[:_MOST_ROLES]:
        count = f"{role.threads}x " if role.threads > 1 else ""
        name = count + fit_site(printable(role.role), room - len(count))
        line = (Span(" " * _INDENT + left(name, room)), *_cells(process, role))
        yield Row(_key(process, role.role), (line,))
    more: Sequence[RoleRates] = process.roles[_MOST_ROLES:]
    if more:
        words = f"and {len(more)} more role{'s' if len(more) > 1 else ''} that lost less"
        line = (Span(" " * _INDENT + words, Tone.DIM),)
        yield Row(_key(process, _MORE), (line,))


def _rows_without_gil(
    process: StmRates | LockRates, width: int, *, shows_threads: bool
) -> Iterator[Row]:
    seen, name, pid = process.seen, process.process.name, process.process.pid
    room = width - _name_width(width) - _PID_WIDTH
    line: Line
    if seen.invalid:
        words = Span(f"not reported: {seen.invalid}", Tone.BAD)
        line = _line_in_words(name, pid, words, width)
    elif seen.ended:
        line = _line_in_words(name, pid, Span("ended", Tone.DIM), width)
    else:
        line = (*_name_and_pid(name, pid, width), *_cells_without_gil(process, process, room))
    yield Row(RowKey(pid, seen.since_ns), (line,))
    if seen.invalid or not shows_threads:
        return
    name_room = width - room - _INDENT
    for each in process.threads[:_MOST_ROLES]:
        count = f"{each.threads}x " if each.threads > 1 else ""
        shown = left(fit(count + printable(each.name), name_room), name_room)
        line = (Span(" " * _INDENT + shown), *_cells_without_gil(process, each, room))
        yield Row(RowKey(pid, seen.since_ns, each.name), (line,))
    more = len(process.threads) - _MOST_ROLES
    if more > 0:
        rest = f"and threads of {more} more name{'s' if more > 1 else ''}"
        line = (Span(" " * _INDENT + rest, Tone.DIM),)
        yield Row(RowKey(pid, seen.since_ns, _MORE), (line,))


def _cells_without_gil(
    process: StmRates | LockRates,
    whose: StmRates | StmThreadRates | LockRates | LockThreadRates,
    room: int,
) -> tuple[Span, ...]:
    if isinstance(process, LockRates) and isinstance(whose, LockRates | LockThreadRates):
        return lock_cells(process, whose, room)
    if isinstance(process, StmRates) and isinstance(whose, StmRates | StmThreadRates):
        return stm_cells(process, whose, room)
    raise TypeError(f"{type(whose)} of {type(process)}")


def _cells(process: ProcessRates, whose: ProcessRates | RoleRates) -> Iterator[Span]:
    is_bad = _is_convoy(whose, process.elapsed_ns)
    for place, column in enumerate(COLUMNS):
        figure = column.figure(process, whose)
        text = "" if figure is None else column.show(figure)
        if text and column.is_estimate(process, whose):
            text = _ABOUT + text
        tone = Tone.BAD if is_bad and place < _MARKED else Tone.PLAIN
        yield Span(f" {right(text, column.width)}", tone)


def _is_convoy(whose: ProcessRates | RoleRates, elapsed_ns: int) -> bool:
    is_much = whose.lost_ns >= _MARKED_LOST * max(1, elapsed_ns)
    return is_much and whose.convoy_ns >= _MARKED_CONVOY * whose.lost_ns


def _head_tone(name: str, order: Order) -> Tone:
    return Tone.SORTED if name == order.name else Tone.HEAD


def _name_width(width: int) -> int:
    return max(_LEAST_NAME, width - _PID_WIDTH - sum(column.width + 1 for column in COLUMNS))
