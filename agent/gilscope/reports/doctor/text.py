"""What doctor has found, as a person reads it."""

import textwrap
from collections.abc import Iterable, Iterator

from gilscope.errors import NoGil
from gilscope.model.diagnosis import (
    Check,
    Diagnosis,
    ProcessDiagnosis,
    PythonLine,
    Status,
    first_failure,
)
from gilscope.text.printable import printable

__all__ = ["render"]

_WIDTH = 99
_STATUS_WIDTH = 8
_COLOURS = {
    Status.OK: "\033[32m",
    Status.WARNING: "\033[33m",
    Status.MISSING: "\033[31m",
    Status.UNKNOWN: "\033[2m",
}
_BOLD, _PLAIN = "\033[1m", "\033[0m"


def render(diagnosis: Diagnosis, *, colour: bool = False) -> str:
    """Return the report; *colour* adds terminal colours."""
    lines = list(_lines(diagnosis, _Paint(colour)))
    return "\n".join(line.rstrip() for line in lines) + "\n"


class _Paint:
    """Marks up text for a terminal, or leaves it alone."""

    def __init__(self, on: bool) -> None:  # noqa: FBT001 - there is nothing else to say
        self._on = on

    def bold(self, text: str) -> str:
        return f"{_BOLD}{text}{_PLAIN}" if self._on else text

    def status(self, status: Status) -> str:
        word = status.value.ljust(_STATUS_WIDTH)
        return f"{_COLOURS[status]}{word}{_PLAIN}" if self._on else word


def _lines(diagnosis: Diagnosis, paint: _Paint) -> Iterator[str]:
    yield paint.bold("This machine")
    yield from _checks(diagnosis.checks, paint)
    if diagnosis.features:
        yield ""
        yield paint.bold("What works on this kernel, and how")
        yield from _checks(diagnosis.features, paint)
    if diagnosis.process is not None:
        yield ""
        yield paint.bold(f"Process {diagnosis.process.pid}")
        yield from _checks(diagnosis.process.checks, paint)
    if diagnosis.processes is not None:
        yield ""
        yield from _pythons(diagnosis.processes, diagnosis.unreadable, paint)
    yield ""
    yield from _verdict(diagnosis, paint)


def _checks(checks: tuple[Check, ...], paint: _Paint) -> Iterator[str]:
    name_width = max(len(_words(check)) for check in checks) + 2
    indent = _STATUS_WIDTH + 2 + name_width
    told: set[str] = set()
    for check in checks:
        first, *rest = _wrapped(check.found, indent)
        yield f"  {paint.status(check.status)}{_words(check).ljust(name_width)}{first}"
        yield from (" " * indent + line for line in rest)
        if check.remedy and check.remedy not in told:
            # One cause shows in several places; its remedy is told once.
            told.add(check.remedy)
            first, *rest = _wrapped(check.remedy, indent + 3)
            yield " " * indent + paint.bold(f"-> {first}")
            yield from (" " * (indent + 3) + paint.bold(line) for line in rest)


def _pythons(lines: tuple[PythonLine, ...], unreadable: int, paint: _Paint) -> Iterator[str]:
    yield paint.bold("Python processes")
    if not lines:
        yield "  none but this one"
    else:
        table = [("pid", "process", "python", "gil")]
        table += [
            (str(line.pid), printable(line.name), line.python or "-", line.method or line.reason)
            for line in lines
        ]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        widths[1] = min(widths[1], 32)
        indent = sum(widths) + 2 + 2 * len(widths)
        for pid, name, python, outcome in table:
            first, *rest = _wrapped(outcome, indent)
            yield (
                f"  {pid:>{widths[0]}}  {name[: widths[1]]:{widths[1]}}  "
                f"{python:{widths[2]}}  {first}"
            )
            yield from (" " * indent + line for line in rest)
    if unreadable:
        verb = "processes" if unreadable > 1 else "process"
        yield f"  {unreadable} more {verb} may not be inspected"


def _verdict(diagnosis: Diagnosis, paint: _Paint) -> Iterator[str]:
    missing = _missing(diagnosis.checks)
    if missing:
        yield paint.bold(f"gilscope does not work here: {missing}.")
    else:
        yield paint.bold("gilscope works here.")
    if diagnosis.process is not None:
        yield paint.bold(_process_verdict(diagnosis.process, machine_works=not missing))


def _process_verdict(process: ProcessDiagnosis, *, machine_works: bool) -> str:
    missing = _missing(process.checks)
    if _has_locks_alone(process):
        no_gil = f"Process {process.pid} has no GIL to trace, but its locks"
        if machine_works:
            return f"{no_gil} can be traced: gilscope record --locks -p {process.pid}"
        return f"{no_gil} could be traced."
    if missing:
        return f"Process {process.pid} cannot be traced: {missing}."
    if machine_works:
        return f"Process {process.pid} can be traced: gilscope record -p {process.pid}"
    return f"Process {process.pid} could be traced."


def _has_locks_alone(process: ProcessDiagnosis) -> bool:
    failure = first_failure(process.checks)
    is_without_gil = failure is not None and failure.exit_code == NoGil.exit_code
    return is_without_gil and any(
        each.name == "locks" and each.status is Status.OK for each in process.checks
    )


def _missing(checks: Iterable[Check]) -> str:
    return ", ".join(_words(check) for check in checks if check.status is Status.MISSING)


def _words(check: Check) -> str:
    return check.name.replace("_", " ")


def _wrapped(text: str, indent: int) -> list[str]:
    # A path or a command that is too long stays whole, so that it can be copied.
    return textwrap.wrap(
        printable(text), max(20, _WIDTH - indent), break_long_words=False, break_on_hyphens=False
    ) or [""]
