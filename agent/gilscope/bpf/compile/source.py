"""Flattens a probe and the headers it shares into the one text that BCC wants."""

import re
from collections.abc import Callable

__all__ = ["flatten"]

_QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"[ \t]*$')


def flatten(name: str, read: Callable[[str], str]) -> str:
    """Return the text of probe *name* with every ``#include "…"`` replaced by that file, once.

    BCC turns ``table.lookup()`` and its like into helper calls in the main file only; in a header
    they would compile to indirect calls, which the kernel refuses. ``#line`` keeps the compiler's
    messages true to the files. *read* returns the text of a file by its name; what it raises is
    passed on.
    """
    return "\n".join(_lines(name, read, set())) + "\n"


def _lines(name: str, read: Callable[[str], str], seen: set[str]) -> list[str]:
    seen.add(name)
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(read(name).splitlines(), start=1):
        include = _QUOTED_INCLUDE.match(line)
        if include is None:
            lines.append(line)
            continue
        if include[1] not in seen:
            lines += _lines(include[1], read, seen)
        lines.append(f'#line {number + 1} "{name}"')
    return lines
