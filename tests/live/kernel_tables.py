"""Looks into the probes' tables behind the back of the code under test."""

from gilscope.gil.probe import GilProbe

__all__ = ["held_of", "threads_held_of"]


def held_of(probe: GilProbe, pid: int) -> dict[str, int]:
    """Return how many entries each table holds of a process; tables without any are left out."""
    held: dict[str, int] = {}
    for name, table in probe._loaded.tables.items():  # noqa: SLF001 - nobody else has to know
        for key, record in table.items():
            # A thread's key is its own id; the process is in the record.
            owner = record.get("tgid", key.get("tgid", key.get("value")))
            if owner == pid and name != "callers":
                held[name] = held.get(name, 0) + 1
    return held


def threads_held_of(probe: GilProbe, pid: int) -> set[int]:
    """Return the ids of the threads of a process that the kernel has records of."""
    threads = probe._loaded.tables["threads"]  # noqa: SLF001 - as above
    return {key["value"] for key, record in threads.items() if record["tgid"] == pid}
