"""Libc method: turns the address that a wait returns to into a place for a probe."""

import contextlib
from collections.abc import Iterator

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.errors import GilCodeNotFound
from gilscope.process import procfs
from gilscope.process.files.mapped_file import open_mapped
from gilscope.values import dataclass

__all__ = ["ReturnSite", "hook_for"]


@dataclass(frozen=True, slots=True)
class ReturnSite:
    """Libc method: an address that a wait for the GIL returns to."""

    address: int
    is_yield: bool


@contextlib.contextmanager
def hook_for(pid: int, site: ReturnSite) -> Iterator[Hook]:
    """Give the probe for *site* in process *pid*, to be placed while its file is held.

    Raises ElfError, GilCodeNotFound, NotPermitted, NotPython or OSError.
    """
    mappings = procfs.read_maps(pid)
    for mapping in mappings:
        if mapping.executable and mapping.start <= site.address < mapping.end:
            first = next(
                (other for other in mappings if other.file == mapping.file and not other.offset),
                None,
            )
            if first is None:
                break
            offset = site.address - mapping.start + mapping.offset
            with contextlib.closing(open_mapped(pid, first)) as file:
                architecture = file.image().architecture
                seen = file.held.read(offset, architecture.jump_lookahead)
                yield Hook(
                    program="on_yield_return" if site.is_yield else "on_wait_return",
                    path=file.path,
                    offset=offset + architecture.distance_to_jump(seen),
                )
            return
    raise GilCodeNotFound(f"no file is mapped at {site.address:#x}")
