"""Remembers the sites of a file by its build-id, so that they are searched for only once."""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from gilscope.cache_folder import default_folder
from gilscope.elf import ElfImage
from gilscope.gil.model import Sites
from gilscope.gil.sites_json import from_json, to_json

__all__ = ["SiteCache", "default_folder"]


class SiteCache:
    """A folder with one file for each build-id.

    It only saves time: whatever is missing, damaged, not ours, not writable, or made from another
    file is searched for again. A seal over the sites and the very bytes of the interpreter sees to
    that, because a probe in the wrong place can crash its target.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, image: ElfImage) -> Sites | None:
        """Return the remembered sites of *image*, or None."""
        try:
            with self._path(image.build_id).open() as file:
                status = os.fstat(file.fileno())
                if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
                    return None
                seal, _, text = file.read().partition("\n")
            return from_json(text) if seal == _seal(image, text) else None
        except (OSError, ValueError):
            return None

    def store(self, image: ElfImage, sites: Sites) -> None:
        """Remember the *sites* of *image*; where that is impossible, nothing happens."""
        text = to_json(sites)
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            with tempfile.NamedTemporaryFile("w", dir=self._folder, delete=False) as file:
                try:
                    file.write(f"{_seal(image, text)}\n{text}")
                    file.flush()
                    # Another agent may use the same file now: replacing it is atomic.
                    Path(file.name).rename(self._path(image.build_id))
                except OSError:
                    Path(file.name).unlink()

    def _path(self, build_id: str) -> Path:
        return self._folder / f"sites-{build_id.replace(':', '-')}"


def _seal(image: ElfImage, text: str) -> str:
    return hashlib.sha256(f"{image.digest} {text}".encode()).hexdigest()
