"""What is asked of the loader: which programs and tables, and with which configuration."""

from collections.abc import Mapping
from dataclasses import field

from gilscope.bpf.map import RecordLayout
from gilscope.values import dataclass

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """What to load from one probe file."""

    probe: str
    """File name in ``probes/``."""
    constants: Mapping[str, int]
    """Macros that are the same on every machine."""
    parameters: Mapping[str, int]
    """What differs from one machine or run to the next; 64 bits each, of either sign."""
    entries: Mapping[str, int]
    """Table to how many entries it has, and ring to its pages; those of fixed size are not here."""
    table_flags: int
    """What hash tables are made with."""
    programs: Mapping[str, str]
    """Function name to ``uprobe``, ``uprobe_multi`` or ``raw_tracepoint``."""
    tables: tuple[str, ...]
    rings: Mapping[str, RecordLayout]
    """Name to what its records hold, which BCC does not tell."""

    inner_of: Mapping[str, str] = field(default_factory=dict)
    """Name of a map of maps to that of a table which is like the maps in it."""
    later: frozenset[str] = frozenset()
    """Programs that few runs need: where they are compiled already, they are loaded when they are
    first asked for."""

    def defines(self) -> dict[str, int]:
        """Return the macros with which the programs are compiled for this request alone."""
        return {
            **self.constants,
            **self.parameters,
            **{f"ENTRIES_OF_{table}": count for table, count in self.entries.items()},
            "TABLE_FLAGS": self.table_flags,
        }
