"""Probes on waits that processes share are split: each gets its own, to be put in and taken out."""

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Final, Protocol

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.errors import GilscopeError
from gilscope.gil.waits.window import WaitWindow
from gilscope.process import procfs
from gilscope.values import dataclass

__all__ = ["Sharer", "SharingGoesOn", "split"]

_log = logging.getLogger(__name__)

_MOST: Final = 50
"""Processes of one file that get probes of their own when one of them needs that: each then makes
the others' traps cost a little more."""


@dataclass(frozen=True, slots=True)
class Sharer:
    """One of the processes that have the same probes on waits."""

    pid: int
    hooks: Sequence[Hook]
    window: WaitWindow | None


class SharingGoesOn(Exception):
    """No process gets probes of its own, for this reason."""


class _Probe(Protocol):
    """What splitting needs of `gil.probes.probe.GilProbe`."""

    def put_own(self, pid: int, hooks: Sequence[Hook]) -> None: ...

    def drop_own(self, pids: Iterable[int]) -> None: ...

    def split(self, pid: int) -> Sequence[Future[None]]: ...

    def await_closing(self, pid: int, closing: Sequence[Future[None]]) -> None: ...


def split(probe: _Probe, pid: int, sharers: Sequence[Sharer]) -> None:
    """Give each of *sharers*, *pid* among them, probes of its own, and take the shared ones out.

    Raises SharingGoesOn, and leaves all as it was, where they are very many or one that has not
    ended cannot have its own.
    """
    if len(sharers) > _MOST:
        raise SharingGoesOn(f"{len(sharers)} processes share the probes on them")
    # Each has its own before the shared ones go: what both see of a wait is seen once.
    for each in sharers:
        if each.window is not None:
            each.window.bear_two()
        try:
            probe.put_own(each.pid, each.hooks)
        except (GilscopeError, OSError) as error:
            if procfs.is_alive(each.pid):
                probe.drop_own(other.pid for other in sharers)
                raise SharingGoesOn(
                    f"process {each.pid}, which shares the probes on them, can have none of its "
                    f"own: {error}"
                ) from error
            _log.debug("process %d: %s", each.pid, error)
    closing = probe.split(pid)
    for each in sharers:
        probe.await_closing(each.pid, closing)
        if each.window is not None:
            each.window.closing += closing
