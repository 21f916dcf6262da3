"""What a PyPy's file says of it, as the resolver has found it and the cache keeps it."""

from collections.abc import Mapping

from gilscope.values import dataclass

__all__ = ["Facts", "packed_version"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Numbers by name, which `gilscope.runtimes.pypy.sites` has written.

    ``lock``, ``waiting``, ``threads`` and ``data``, ``bss`` with their sizes are addresses in the
    file; ``python`` and ``pypy`` are versions; ``type.NAME`` is what objects of a type begin with,
    and ``NAME.field`` is where a field is in it, bytes; ``sections``, ``jit.current`` and
    ``jit.mark`` are addresses too, see `gilscope.runtimes.pypy.own_work`. Only the first two are
    always there.
    """

    numbers: Mapping[str, int]

    def __getitem__(self, name: str) -> int:
        return self.numbers[name]

    def __contains__(self, name: str) -> bool:
        return name in self.numbers

    @property
    def knows_frames(self) -> bool:
        """Whether the file has told where threads and their frames are."""
        return "threads" in self.numbers

    @property
    def knows_own_work(self) -> bool:
        """Whether the file has told where PyPy notes that it collects garbage, and compiles."""
        return self.knows_frames and "sections" in self.numbers

    @property
    def version(self) -> str:
        """``3.9.16 (PyPy 7.3.11)``."""
        python, pypy = self.numbers.get("python"), self.numbers.get("pypy")
        if python is None or pypy is None:
            return "PyPy"
        return f"{_unpacked(python)} (PyPy {_unpacked(pypy)})"


def packed_version(text: str) -> int:
    """Return a version of three numbers as one."""
    major, minor, micro = map(int, text.split("."))
    return major << 16 | minor << 8 | micro


def _unpacked(version: int) -> str:
    return f"{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}"
