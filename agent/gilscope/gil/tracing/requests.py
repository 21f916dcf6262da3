"""What a traced process publishes of the requests that its threads serve."""

import time
from collections.abc import Callable
from dataclasses import field, replace

from gilscope.gil.abi import HeldTraceKind
from gilscope.gil.totals.held_traces import HeldTraceBook
from gilscope.gil.totals.raw import RawProcess, Taken
from gilscope.gil.totals.traces import TraceBook
from gilscope.model.stack import Stack
from gilscope.model.traces import Traces
from gilscope.process.files.thread_variables import VariablePlace
from gilscope.process.published.process_context import ProcessContext, route_key
from gilscope.values import dataclass

__all__ = ["PublishedRequests"]


@dataclass(slots=True)
class PublishedRequests:
    """Where they are published, what they have waited, and how they kept others waiting."""

    book: TraceBook = field(default_factory=TraceBook)
    held: HeldTraceBook = field(default_factory=HeldTraceBook)
    place: VariablePlace | None = None
    """Where threads say which requests they serve; None: they do not, as far as is known."""
    context: ProcessContext | None = None
    """What the process says of itself; None: nothing, as far as is known."""

    @property
    def service(self) -> str | None:
        """What the process calls its service; None: it does not."""
        return None if self.context is None else self.context.service

    def place_for_probes(self) -> dict[str, int] | None:
        """Return where the probes find requests and their routes, None where there are none."""
        if self.place is None:
            return None
        key = None if self.context is None else route_key(self.context.attribute_keys)
        return {
            "offset": self.place.offset,
            "module": self.place.module,
            "entry_size": self.place.entry_size,
            "length_at": self.place.length_at,
            "route_key": 0 if key is None else key + 1,
        }

    def traces(self, process: RawProcess, stack: Callable[[int], Stack]) -> Traces | None:
        """Return what requests have waited up to now, None where none is published."""
        if self.place is None:
            return None
        offset_ns = time.time_ns() - time.monotonic_ns()
        held = process.held_traces
        return replace(
            self.book.traces(process.traces, stack, offset_ns),
            slow_drops=self.held.holds(held, HeldTraceKind.SLOW_DROP, offset_ns),
            long_holds=self.held.holds(held, HeldTraceKind.LONG_HOLD, offset_ns),
        )

    def keep(self, taken: Taken, stack: Callable[[int], Stack]) -> None:
        """Add what has left the tables; *stack* tells a stack by its id."""
        self.book.keep(taken.traces, stack)
        self.held.keep(taken.held_traces)
