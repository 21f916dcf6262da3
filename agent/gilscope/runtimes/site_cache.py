"""Remembers the sites of a file by its build-id, so that they are searched for only once."""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Protocol

from gilscope.runtimes.site_codec import from_json, to_json
from gilscope.runtimes.sites import Sites
from gilscope.system.cache_dir import default_folder, open_trusted, read_trusted, replace_in

__all__ = ["FileIdentity", "SiteCache", "default_folder"]

_LARGEST_ENTRY = 1 << 20
_PREFIX = "sites-"


class FileIdentity(Protocol):
    """What tells a file from every other; an `ElfImage` does."""

    @property
    def build_id(self) -> str:
        """What the file says of itself."""

    @property
    def digest(self) -> str:
        """The SHA-256 of all its bytes, in hexadecimal."""


class SiteCache:
    """A folder with one file for each build-id.

    It only saves time: whatever is missing, damaged, not ours, not writable, or made from another
    file is searched for again. A seal over the sites and the very bytes of the interpreter sees to
    that, because a probe in the wrong place can crash its target.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, image: FileIdentity) -> Sites | None:
        """Return the remembered sites of *image*, or None."""
        try:
            entry = read_trusted(self._folder, _name(image.build_id), _LARGEST_ENTRY)
            seal, _, text = entry.partition("\n")
            return from_json(text) if seal == _seal(image, text) else None
        except (OSError, ValueError):
            return None

    def store(self, image: FileIdentity, sites: Sites) -> None:
        """Remember the *sites* of *image*; where that is impossible, nothing happens."""
        text = to_json(sites)
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            directory = open_trusted(self._folder)
            try:
                entry = f"{_seal(image, text)}\n{text}"
                replace_in(directory, _name(image.build_id), entry, _PREFIX)
            finally:
                os.close(directory)


def _name(build_id: str) -> str:
    return f"{_PREFIX}{build_id.replace(':', '-')}"


def _seal(image: FileIdentity, text: str) -> str:
    return hashlib.sha256(f"{image.digest} {text}".encode()).hexdigest()
