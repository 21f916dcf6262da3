"""Tables of Markdown, whose cells cannot end them nor become HTML."""

import re
from collections.abc import Iterable, Iterator, Sequence

from markupsafe import escape

from gilscope.text.printable import printable

__all__ = ["plain", "table"]

_MARKS = str.maketrans({"|": "\\|", "`": "'", "*": "\\*", "[": "\\[", "]": "\\]", "~": "\\~"})
_UNDERSCORE = re.compile("([A-Za-z0-9]_+(?=[A-Za-z0-9]))|_")
"""Within a word, as the group has it, it marks nothing."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table whose first column has names, which may be anything, and others figures."""
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    for name, *figures in rows:
        yield f"| {' | '.join((plain(name), *figures))} |"


def plain(text: str) -> str:
    """Return *text* as Markdown that shows it and nothing else."""
    escaped = str(escape(printable(text).replace("\\", "\\\\")))
    return _UNDERSCORE.sub(lambda found: found[1] or "\\_", escaped.translate(_MARKS))
