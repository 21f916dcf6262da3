"""How to probe one process: all that the programs are told of it."""

from collections.abc import Mapping
from dataclasses import field

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.bpf.uprobes.shared import FileIdentity
from gilscope.gil.abi import TargetFlag
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from gilscope.runtimes.sites import CallerRule
from gilscope.values import Record, dataclass

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to probe one process."""

    hooks: tuple[Hook, ...]
    load_bias: int
    """Run-time address less the file's own, for the file that *callers* speak of."""
    build_id: str
    callers: tuple[CallerRule, ...]
    conds: tuple[int, ...] = ()
    """Run-time addresses of its GILs, as far as they are known, the main interpreter's first."""
    waits_only_on_conds: bool = False
    """Libc method: any other condition variable is none of them."""
    lock_parts: Record = field(default_factory=GLIBC_X86_64.parts)
    """Where the parts of its GILs are."""
    frame_walk: Record | None = None
    """Where its Python keeps its frames; None: stacks are not read."""
    shared_file: FileIdentity | None = None
    """What the hooks are in, where all processes that run it are to have them; None: this alone."""
    records: Mapping[str, Record] = field(default_factory=dict)
    """What else the probes have to know of the process, by the table that has it."""

    @property
    def flags(self) -> int:
        """What the probe is to do in this process beyond the least: bits of `TargetFlag`."""
        flags: int = TargetFlag.KNOWS_CALLERS if self.callers else 0
        if self.frame_walk is not None:
            flags |= TargetFlag.READS_STACKS
        return flags
