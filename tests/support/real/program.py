"""What the tests know of a program of the recipes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

__all__ = ["Program"]

_LIBRARIES_ALONE = "(libraries alone)"
_PYTHONS_OWN = ("/usr/lib/python3", "<frozen ")


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the recipes."""

    name: str
    line: str
    """How it is started, as its page says."""
    file: str
    """Of the application; empty where it has none."""
    functions: frozenset[str]
    """That keep the GIL; none: libraries alone do."""
    requirements: str = "requirements.txt"
    made_by: str = ""
    """The command that makes what is started, as its page says, where it has to be made."""
    known_as: str = ""
    """How the interpreter names the file of its functions, where not by where it is."""
    shown_as: str = ""
    """What reports call that file, where not by its own name."""
    native: tuple[str, ...] = ()
    """What the name of the C function that keeps the GIL has in it: its file's, and its own."""
    says_ready: str = "ready"
    """When it works, unless it `is_server`."""
    says_uncontended: str = ""
    """What the report says of it, where no thread waits for the GIL."""
    is_server: bool = False
    """Whether it works for clients; others work by themselves."""
    ends_by_signal: bool = False
    """As servers do; others end with their input."""

    def has_frames(self, frames: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the innermost of *frames* that are its own is of its functions."""
        if not self.functions:
            return bool(frames) and all(each["file"].startswith(_PYTHONS_OWN) for each in frames)
        own = [each for each in frames if each["file"].endswith(self._named_file)]
        return bool(own) and own[0]["function"] in self.functions

    def has_place(self, place: str) -> bool:
        """Return whether *place*, as reports write it, is in its functions."""
        if not self.functions:
            return place == _LIBRARIES_ALONE
        function, _, rest = place.partition(" (")
        file = self.shown_as or PurePosixPath(self._named_file).name
        return function in self.functions and rest.startswith(f"{file}:")

    @property
    def _named_file(self) -> str:
        """How the interpreter names the file of its functions, or how that name ends."""
        return self.known_as or f"/recipes/{self.file}"
