"""Waits for whatever the probes notice and for the ends of processes."""

import select
import time
from collections.abc import Callable

from gilscope.gil.probes.probe import GilProbe
from gilscope.process.watch import ProcessWatch

__all__ = ["Wakeups"]

_STACK_PAUSE_S = 0.05
"""After new stacks, and before the next ones are read."""


class Wakeups:
    """Knows when there is something to do."""

    def __init__(self, probe: GilProbe, watch: ProcessWatch) -> None:
        """Wait for the rings of *probe*, and for the ends of processes in *watch*."""
        self._stacks = probe.stack_ring.fileno()
        self._poll = select.epoll()
        self._poll.register(probe.notice_ring.fileno(), select.EPOLLIN)
        self._poll.register(self._stacks, select.EPOLLIN)
        self._poll.register(watch.fileno(), select.EPOLLIN)

    def wait(
        self, until_s: float, read_stacks: Callable[[], None], stacks_at_s: Callable[[], float]
    ) -> None:
        """Wait until there is something to do, until *until_s* of the monotonic clock at the most.

        New stacks are no reason to return: *read_stacks* is called instead, and not again right
        after *stacks_at_s*, the time at which the last new one was read.
        """
        while (now_s := time.monotonic()) < until_s:
            # A program that does something new all the time must not keep the agent busy.
            paused_until_s = stacks_at_s() + _STACK_PAUSE_S
            is_paused = now_s < paused_until_s
            self._poll.modify(self._stacks, 0 if is_paused else select.EPOLLIN)
            pause_s = (min(until_s, paused_until_s) if is_paused else until_s) - now_s
            ready = {fd for fd, _ in self._poll.poll(pause_s)}
            if ready - {self._stacks}:
                return
            if ready:
                read_stacks()
