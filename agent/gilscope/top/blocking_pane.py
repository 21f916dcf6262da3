"""The lower pane of the live view: the worst pairs of one process, or why there are none."""

import asyncio
from collections.abc import Callable, Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from gilscope.model.application import Application
from gilscope.model.gil import Refusal
from gilscope.model.stack import Frame
from gilscope.naming.places import SiteNames
from gilscope.text.printable import printable
from gilscope.top.blocking_table import (
    Ends,
    Sources,
    changes,
    details,
    frames,
    heading,
    held_by,
    kept_by,
    pair_ends,
    routes,
    rows,
    when_empty,
)
from gilscope.top.layout import Span, Tone, fit
from gilscope.top.locks.rates import LockRates
from gilscope.top.locks.words import explained as locks_explained
from gilscope.top.locks.words import in_short
from gilscope.top.process_table import AnyRates
from gilscope.top.rates import ProcessRates
from gilscope.top.rows_widget import Rows
from gilscope.top.screens import TextScreen, text_of
from gilscope.top.transactions.rates import StmRates
from gilscope.top.transactions.words import explained

__all__ = ["PairsPane", "ReadSources"]

ReadSources = Callable[[int, Iterable[Frame]], Sources]
"""Returns the source lines at which frames of the process with this pid stood."""

_MOST = 100
"""Pairs that are listed."""
_LEAST_HEIGHT = 10
"""Below which each line is needed for them."""


class PairsPane(Vertical):
    """Says of one process whose code keeps the GIL, and who keeps whom waiting.

    Of one with transactions it says what these lose, of one without a GIL what its threads wait for
    instead, and of one without figures why it has none.
    """

    DEFAULT_CSS = """
    PairsPane Static { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    PairsPane #why { height: 1fr; text-wrap: wrap; padding: 0 1; display: none; }
    PairsPane Rows { height: 1fr; }
    """

    def __init__(self, read_sources: ReadSources, application: Application) -> None:
        """Take source lines from *read_sources*; tell *application* apart from libraries."""
        super().__init__()
        self._application = application
        self._read_sources = read_sources
        self._process: ProcessRates | None = None
        self._names = SiteNames()
        self._ends: list[Ends] = []
        self._title = Static(id="title")
        self._kept_by = Static(id="kept-by")
        self._held_by = Static(id="held-by")
        self._changes = Static(id="changes")
        self._routes = Static(id="routes")
        self._locks = Static(id="locks")
        self._head = Static()
        self._rows = Rows(id="pairs", is_marked=False)
        self._why = Static(id="why")

    def compose(self) -> ComposeResult:
        """Yield the widgets, from top to bottom."""
        yield self._title
        yield self._kept_by
        yield self._held_by
        yield self._changes
        yield self._routes
        yield self._locks
        yield self._head
        yield self._rows
        yield self._why

    def show(
        self, selected: AnyRates | Refusal | None, names: SiteNames, locks: LockRates | None = None
    ) -> None:
        """Show the pairs of *selected*, whose places have *names*, and its *locks* beside a GIL."""
        is_process = isinstance(selected, ProcessRates) and not selected.invalid
        self._process = selected if isinstance(selected, ProcessRates) and is_process else None
        self._names = names
        self._ends = pair_ends(self._process.pairs, names)[:_MOST] if self._process else []
        elapsed_ns = self._process.elapsed_ns if self._process else 0
        width = self.size.width
        self._title.update(text_of((Span(fit(_title(selected), width), Tone.BOLD),)), layout=False)
        process, application = self._process, self._application
        keepers = kept_by(process, application, names) if process else ""
        holders = held_by(process.holder_samples, application, names) if process else ""
        _show_line(self._kept_by, "kept by", keepers, width)
        _show_line(self._held_by, "held by", holders, width)
        gains = changes(process, application) if process else ""
        has_room = self.size.height >= _LEAST_HEIGHT
        _show_line(self._changes, "to change", gains if has_room else "", width)
        late = routes(process, application, names) if process else ""
        _show_line(self._routes, "routes", late, width)
        waits = in_short(locks, names) if process and locks is not None else ""
        _show_line(self._locks, "locks", waits, width)
        self._head.update(text_of(heading(width)), layout=False)
        self._why.update(_why(selected, names), layout=False)
        self._head.display = self._rows.display = bool(self._ends)
        self._why.display = not self._ends
        self._rows.show(rows(self._ends, elapsed_ns, width - 1))
        if self._rows.has_focus and not self._ends:
            self.screen.focus_previous()

    def enter(self) -> None:
        """Let the keys go to the pairs, if there are any."""
        if self._ends:
            self.screen.set_focus(self._rows)

    async def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Show the two stacks of the pair."""
        event.stop()
        process = self._process
        chosen = next((ends for ends in self._ends if ends.key == event.rows.key), None)
        if chosen is None or process is None:
            return
        # Files may be large, and far away.
        pid, names = process.process.pid, self._names
        sources = await asyncio.to_thread(self._read_sources, pid, frames(chosen))
        width = self.app.size.width - 1
        lines = details(chosen, process.elapsed_ns, names, sources, width)
        self.app.push_screen(TextScreen(*lines))


def _show_line(widget: Static, heading: str, words: str, width: int) -> None:
    widget.update(text_of((Span(fit(f"{heading} {words}", width)),)), layout=False)
    widget.display = bool(words)


def _title(selected: AnyRates | Refusal | None) -> str:
    if selected is None:
        return ""
    if isinstance(selected, Refusal):
        return f"{printable(selected.name)} ({selected.pid}) is not traced"
    who = f"{printable(selected.process.name)} ({selected.process.pid})"
    if isinstance(selected, StmRates):
        return f"Transactions of {who}"
    if isinstance(selected, LockRates):
        return f"What threads wait for in {who}, which has no GIL"
    if selected.invalid:
        return f"{who} is not reported"
    mark = ", ≈ by the stacks of some of the waits" if selected.is_estimate else ""
    return f"Who keeps whom waiting in {who}{mark}"


def _why(selected: AnyRates | Refusal | None, names: SiteNames) -> Text:
    if selected is None:
        return Text("No Python that was chosen is running.")
    if isinstance(selected, Refusal):
        return Text(f"{printable(selected.reason)}\n{printable(selected.remedy)}")
    if isinstance(selected, StmRates):
        return Text(printable(selected.seen.invalid) or "\n".join(explained(selected)))
    if isinstance(selected, LockRates):
        said = "\n".join(map(printable, locks_explained(selected, names)))
        return Text(printable(selected.seen.invalid) or said)
    return Text(printable(selected.invalid) or when_empty(selected))
