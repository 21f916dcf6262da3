"""Looks into the probes' tables behind the back of the code under test."""

from gilscope.gil.probes.probe import GilProbe

__all__ = ["held_of", "threads_held_of"]

_SHARED = ("callers", "next_program", "settings")
"""Hold nothing of any process."""
_ARRAYS = ("locks", "returned", "stack_shares", "wait_windows", "windows")
"""Their places are given out, and emptied by whoever gets them next."""


def held_of(probe: GilProbe, pid: int) -> dict[str, int]:
    """Return how many entries each table holds of a process; tables without any are left out.

    The places in arrays that the process has been given are counted as ``slots``.
    """
    held: dict[str, int] = {}
    for name, table in probe.tables.items():
        if name in _SHARED or name in _ARRAYS:
            continue
        for key, record in table.items():
            # A thread's key is its own id; the process is in the record.
            owner = record.get("tgid", key.get("tgid", key.get("value")))
            if owner == pid:
                held[name] = held.get(name, 0) + 1
    slots = (pid in probe._slot_of) + len(probe._other_slots.get(pid, ()))  # noqa: SLF001 - nobody else has to know
    if slots:
        held["slots"] = slots
    return held


def threads_held_of(probe: GilProbe, pid: int) -> set[int]:
    """Return the ids of the threads of a process that the kernel has records of."""
    threads = probe.tables["threads"]
    return {key["value"] for key, record in threads.items() if record["tgid"] == pid}
