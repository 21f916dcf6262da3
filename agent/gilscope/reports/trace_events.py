"""Chrome trace events as text: what all timelines have in common."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gilscope.model.stack import Stack
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.flame_levels import levels
from gilscope.text.printable import printable

__all__ = ["StackTexts", "dumped", "metadata", "microseconds", "separated"]

_NS_PER_US = 1000


def dumped(value: object) -> str:
    """Return *value* as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))


def metadata(pid: int, name: str, args: dict[str, Any], tid: int | None = None) -> dict[str, Any]:
    """Return the event that says *args* of a process, or of a track *tid* of it."""
    where = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return {"ph": "M", **where, "name": name, "args": args}


def microseconds(ns: int) -> str:
    """Return *ns*, not negative, in the unit of the format, to the nanosecond."""
    return f"{ns // _NS_PER_US}.{ns % _NS_PER_US:03}"


def separated(events: Iterable[str]) -> Iterator[str]:
    """Yield *events*, one a line, with commas between them."""
    separator = "\n"
    for event in events:
        yield separator + event
        separator = ",\n"


class StackTexts:
    """Puts stacks into words, each once: there may be a million events."""

    def __init__(self) -> None:
        self._sites = SiteNames()
        self._texts: dict[Stack, str] = {}

    def text(self, stack: Stack) -> str:
        """Return the places of *stack* as JSON, innermost first."""
        if stack not in self._texts:
            names = (
                level if isinstance(level, str) else self._sites.site(level)
                for level in reversed(levels(stack))
            )
            self._texts[stack] = dumped([printable(name) for name in names])
        return self._texts[stack]
