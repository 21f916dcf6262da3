"""Remembers the sites of a file by its build-id, so that they are searched for only once."""

import contextlib
import os
import tempfile
from pathlib import Path

from gilscope.gil.sites_json import from_json, to_json
from gilscope.model import Sites

__all__ = ["SiteCache", "default_folder"]


def default_folder() -> Path:
    """Return where this user's caches live."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "gilscope"
    try:
        return Path.home() / ".cache" / "gilscope"
    except RuntimeError:
        # This user has no home: a container's, or a service's.
        return Path("/var/cache/gilscope")


class SiteCache:
    """A folder with one JSON file for each build-id.

    It only saves time: whatever is missing, damaged, not ours or not writable is searched for
    again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, build_id: str) -> Sites | None:
        """Return the remembered sites of *build_id*, or None."""
        path = self._path(build_id)
        try:
            status = path.stat()
            if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
                return None
            sites = from_json(path.read_text())
        except (OSError, ValueError):
            return None
        return sites if sites.build_id == build_id else None

    def store(self, sites: Sites) -> None:
        """Remember *sites*; where that is impossible, nothing happens."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            with tempfile.NamedTemporaryFile("w", dir=self._folder, delete=False) as file:
                file.write(to_json(sites))
            # Another agent may read or write the same file now: replacing it is atomic.
            Path(file.name).rename(self._path(sites.build_id))

    def _path(self, build_id: str) -> Path:
        return self._folder / f"sites-{build_id.replace(':', '-')}.json"
