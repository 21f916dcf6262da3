"""Keeps the last captures in a folder, each in a file that only its owner may read."""

import re
import secrets
from datetime import UTC, datetime
from operator import methodcaller
from pathlib import Path

from gilscope.model.moment.dump import Dump
from gilscope.system.atomic_output import write_atomically
from gilscope.text.units import NS_PER_S

__all__ = ["CaptureFiles", "name_of"]

_OWN = re.compile(r"gilscope-\d{8}T\d{6}\.\d{3}Z-\d+-[0-9a-f]{8}\.json")
_OWNER_ONLY = 0o600
_NS_PER_MS = 1_000_000


def name_of(dump: Dump, mark: str) -> str:
    """Return the name of the file of *dump*, which sorts by time; *mark* tells it from others."""
    at = datetime.fromtimestamp(dump.at_ns // NS_PER_S, UTC)
    ms = dump.at_ns % NS_PER_S // _NS_PER_MS
    return f"gilscope-{at:%Y%m%dT%H%M%S}.{ms:03}Z-{dump.pid}-{mark}.json"


class CaptureFiles:
    """The captures in one folder, in which there may be other files as well."""

    def __init__(self, folder: Path, most: int) -> None:
        """Keep the last *most* of them, whoever wrote the earlier ones."""
        self._folder = folder
        self._most = most

    def write(self, dump: Dump, line: str) -> Path:
        """Write *line*, the JSON of *dump*, and remove what is too old; raises OSError."""
        # Nobody can know the name beforehand and put a link there.
        path = self._folder / name_of(dump, secrets.token_hex(4))
        try:
            write_atomically(path, methodcaller("write", f"{line}\n".encode()), mode=_OWNER_ONLY)
        except OSError as error:
            # Where the disk is full, the kernel knows a descriptor alone.
            error.filename = error.filename or str(path)
            raise
        for old in self._own()[: -self._most]:
            old.unlink(missing_ok=True)
        return path

    def _own(self) -> list[Path]:
        return sorted(each for each in self._folder.iterdir() if _OWN.fullmatch(each.name))
