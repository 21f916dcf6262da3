"""For how long the CPU limit of its cgroups has kept a process from running."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["Throttling", "cgroup_folders", "parse_throttled_ns"]

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_FRESH_S: Final = 1.0


def parse_throttled_ns(text: str) -> int | None:
    """Return the time in the text of a cpu.stat, None where it has none; raises ValueError."""
    fields = dict(line.split() for line in text.splitlines())
    if "throttled_usec" in fields:
        return int(fields["throttled_usec"]) * 1000
    # Version 1 of cgroups counts in nanoseconds.
    return int(fields["throttled_time"]) if "throttled_time" in fields else None


def cgroup_folders(text: str, root: Path = _CGROUPS) -> Iterator[Path]:
    """Yield where those of a process may be that limit its CPUs, from its own up to the root's.

    *text* is that of /proc/PID/cgroup. What lies outside of the agent's own view is left out.
    """
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        parts = Path(path.lstrip("/")).parts
        if ".." in parts:
            continue
        mounts = (root / controllers,) if controllers else (root, root / "unified")
        for mount in mounts:
            for depth in range(len(parts), -1, -1):
                yield mount.joinpath(*parts[:depth])


class Throttling:
    """Tells for how long processes have been kept from running. Any thread may ask."""

    def __init__(self, *, proc: Path = _PROC, root: Path = _CGROUPS) -> None:
        """Read cgroups under *root*, and which of them a process is in under *proc*."""
        self._proc = str(proc)
        self._root = root
        self._known: dict[str, tuple[float, int | None]] = {}
        """When it was read and what it was, by the text that names the cgroups."""

    def of(self, pid: int) -> int | None:
        """Return the time of the cgroup of *pid* that was throttled most, since it was made.

        None where nothing limits the process, or its cgroups cannot be seen from here. Those that
        are asked for within a second share one reading, as workers share their cgroup.
        """
        try:
            with open(f"{self._proc}/{pid}/cgroup", encoding="utf-8") as file:  # noqa: PTH123 - of many
                text = file.read()
        except (OSError, ValueError):
            return None
        now_s = time.monotonic()
        known = self._known.get(text)
        if known is None or now_s - known[0] > _FRESH_S:
            self._known = {
                each: read for each, read in self._known.items() if now_s - read[0] <= _FRESH_S
            }
            known = self._known[text] = now_s, self._most_ns(text)
        return known[1]

    def _most_ns(self, text: str) -> int | None:
        try:
            folders = list(cgroup_folders(text, self._root))
        except ValueError:
            return None
        found = [ns for folder in folders if (ns := _throttled_ns(folder)) is not None]
        return max(found, default=None)


def _throttled_ns(folder: Path) -> int | None:
    try:
        return parse_throttled_ns((folder / "cpu.stat").read_text())
    except (OSError, ValueError):
        return None
