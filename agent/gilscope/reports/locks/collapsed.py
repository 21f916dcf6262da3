"""What threads have lost waiting for locks as collapsed stacks, which flame graphs are drawn from.

One line a stack: ``locks``, what was waited for, the calls from the outermost to the innermost,
separated by semicolons; a space, and nanoseconds.
"""

from collections.abc import Iterator

from gilscope.model.locks import LockRecording, LockWait
from gilscope.naming.lock_words import short_words
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.flame_levels import levels, summed
from gilscope.reports.locks.losses import lost_waits
from gilscope.text.printable import printable

__all__ = ["render"]


def render(*recordings: LockRecording, names_process: bool = False) -> str:
    """Return one line a stack with its nanoseconds, sorted; empty where nothing was lost.

    Where it *names_process*, that is a level of its own below ``locks``.
    """
    names = SiteNames()

    def lines() -> Iterator[tuple[str, int]]:
        for recording in recordings:
            process = recording.observation.process
            below = (f"{process.name}, pid {process.pid}",) if names_process else ()
            for wait in lost_waits(recording):
                stack = ("locks", *below, short_words(wait), *_sites(wait, names))
                yield ";".join(map(_plain, stack)), wait.wait_ns

    return "".join(f"{stack} {ns}\n" for stack, ns in sorted(summed(lines())))


def _sites(wait: LockWait, names: SiteNames) -> Iterator[str]:
    for level in levels(wait.stack):
        yield level if isinstance(level, str) else names.site(level)


def _plain(name: str) -> str:
    return printable(name).replace(";", ":")
