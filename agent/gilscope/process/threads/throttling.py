"""For how long the CPU limit of its cgroups has kept a process from running."""

from collections.abc import Iterator
from pathlib import Path

__all__ = ["cgroup_folders", "parse_throttled_ns", "throttled_ns"]

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


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


def throttled_ns(pid: int, *, proc: Path = _PROC, root: Path = _CGROUPS) -> int | None:
    """Return the time of the cgroup that has been throttled most, since it was made.

    None where nothing limits the process, or its cgroups cannot be seen from here.
    """
    try:
        folders = list(cgroup_folders((proc / str(pid) / "cgroup").read_text(), root))
    except (OSError, ValueError):
        return None
    found = [ns for folder in folders if (ns := _throttled_ns(folder)) is not None]
    return max(found, default=None)


def _throttled_ns(folder: Path) -> int | None:
    try:
        return parse_throttled_ns((folder / "cpu.stat").read_text())
    except (OSError, ValueError):
        return None
