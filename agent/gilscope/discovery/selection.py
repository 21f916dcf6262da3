"""Which processes are wanted."""

import re
from collections.abc import Callable, Iterable, Sequence

from gilscope.naming.process import process_name
from gilscope.process import procfs

__all__ = ["Choice", "Kinship", "choose_all", "choose_matching", "choose_pids", "descendants_of"]

_CHILDREN = ("/gilscope/bpf/compile/bcc_child.py", "gilscope.runtimes.cpython.sites.search_child")
"""What agents of every user and folder start: they compile probes, and search files."""
_MOST_WORDS = 8
"""Until such a name comes: the interpreter and its options."""

Choice = Callable[[int, "Kinship"], bool]
"""Whether a process is wanted, by its pid and what is known of its ancestors."""


class Kinship:
    """Who descends from whom."""

    def __init__(self, wanted: Iterable[int]) -> None:
        self._wanted = set(wanted)

    def is_descendant(self, pid: int) -> bool:
        """Return whether *pid* is wanted itself or has an ancestor that is, and remember it."""
        line = []
        while pid > 1 and pid not in self._wanted:
            line.append(pid)
            try:
                pid = procfs.read_status(pid).parent
            except (OSError, KeyError):
                return False
        if pid not in self._wanted:
            return False
        # A child outlives its parent: the family is kept, not asked for again.
        self._wanted.update(line)
        return True

    def forget_dead(self, alive: set[int]) -> None:
        """Let the numbers of processes that have ended be those of others."""
        self._wanted &= alive


def descendants_of(pid: int) -> list[int]:
    """Return the processes that *pid* has started, and those that these have, as they are now."""
    kinship = Kinship([pid])
    return [each for each in procfs.list_pids() if each != pid and kinship.is_descendant(each)]


def choose_all() -> Choice:
    """Return the choice of every Python on the host but gilscope's own processes."""
    return lambda pid, _kinship: not _is_gilscope(_command_line(pid))


def choose_pids() -> Choice:
    """Return the choice of the given processes and their descendants."""
    return lambda pid, kinship: kinship.is_descendant(pid)


def choose_matching(pattern: re.Pattern[str]) -> Choice:
    """Return the choice of processes whose command line, joined by blanks, matches *pattern*.

    Those of gilscope are none of them: the pattern is in the command line of each agent.
    """

    def matches(pid: int, _kinship: Kinship) -> bool:
        words = _command_line(pid)
        return pattern.search(" ".join(words)) is not None and not _is_gilscope(words)

    return matches


def _command_line(pid: int) -> Sequence[str]:
    try:
        return procfs.read_command_line(pid)
    except OSError:
        return ()


def _is_gilscope(words: Sequence[str]) -> bool:
    is_child = any(child in word for word in words[:_MOST_WORDS] for child in _CHILDREN)
    return process_name(words).split(".")[0] == "gilscope" or is_child
