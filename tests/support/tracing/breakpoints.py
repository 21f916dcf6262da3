"""Looks for the breakpoints of probes in the memory of a process."""

from gilscope.process import procfs
from gilscope.process.memory import ProcessMemory
from gilscope.process.view import view_of
from gilscope.transactions.target import StmTarget, inspect_stm

__all__ = ["breakpoints", "stm_target"]

_BREAKPOINT = b"\xcc"


def stm_target(pid: int) -> StmTarget:
    """Return where the transactions of *pid* would be probed."""
    target = inspect_stm(view_of(pid))
    assert target is not None
    return target


def breakpoints(target: StmTarget, pid: int | None = None) -> int:
    """Return at how many of its places *target*, or its fork *pid*, has a breakpoint now."""
    pid, path = pid or target.process.pid, target.file.mapping.path
    code = [each for each in procfs.read_maps(pid) if each.executable and each.path == path]
    found = []
    with ProcessMemory(pid) as memory:
        for hook in target.sites.hooks:
            (mapping,) = [
                each for each in code if 0 <= hook.offset - each.offset < each.end - each.start
            ]
            found.append(memory.read(mapping.start + hook.offset - mapping.offset, 1))
    return found.count(_BREAKPOINT)
