"""The screen of the live view: processes above, and who keeps whom waiting in one of them below."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, Static

from gilscope.model.gil import Refusal
from gilscope.naming.places import SiteNames
from gilscope.top.blocking_pane import PairsPane, ReadSources
from gilscope.top.header import Settings, totals_line, view_line
from gilscope.top.help_text import HELP
from gilscope.top.layout import Span
from gilscope.top.locks.rates import LockRates
from gilscope.top.process_table import AnyRates, RowKey, heading, matches, rows
from gilscope.top.rates import ProcessRates
from gilscope.top.rows_widget import Rows
from gilscope.top.screens import SteadyScreen, TextScreen, text_of
from gilscope.top.snapshot import NOTHING, Snapshot

__all__ = ["MainScreen"]

_Identity = tuple[int, int]
"""The pid of a process, and when it was attached."""


class MainScreen(SteadyScreen):
    """Two tables, and the keys that say what is in them."""

    CSS = """
    MainScreen { overflow: hidden; }
    MainScreen > Static { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    MainScreen > #head { height: 2; }
    MainScreen > Rows { height: 1fr; min-height: 3; }
    MainScreen > PairsPane { height: 1fr; min-height: 3; }
    MainScreen > Input { height: 1; border: none; padding: 0; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "sort"),
        Binding("S", "reverse", "reverse"),
        Binding("r", "roles", "roles"),
        Binding("space", "fold", "fold", show=False),
        # These two at once, so that keys typed right behind them go to where they lead.
        Binding("slash", "filter", "filter", key_display="/", priority=True),
        Binding("p", "pause", "pause"),
        Binding("tab", "switch", "pairs", key_display="tab", priority=True),
        Binding("escape", "back", "back", show=False),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "app.quit", "quit"),
    ]

    def __init__(
        self, settings: Settings, read_sources: ReadSources, count_problems: Callable[[], int]
    ) -> None:
        """Show what there is as *settings* say, which keys will change."""
        super().__init__()
        self._settings = settings
        self._count_problems = count_problems
        self._snapshot = NOTHING
        self._latest = NOTHING
        """Newer than what is shown, while that is paused."""
        self._unlike_others: set[_Identity] = set()
        """Processes whose roles are hidden while those of the others are shown, or shown so."""
        self._names: dict[_Identity, SiteNames] = {}
        self._view = Static()
        self._totals = Static()
        self._head = Static(id="head")
        self._table = Rows(id="processes", is_marked=True)
        self._pane = PairsPane(read_sources, settings.application)
        self._filter = Input(placeholder="name, pid or role", compact=True)

    def compose(self) -> ComposeResult:
        """Yield the widgets, from top to bottom."""
        yield self._view
        yield self._totals
        yield self._head
        yield self._table
        yield self._pane
        yield self._filter
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Let the keys go to the processes."""
        self.set_focus(self._table)

    def on_resize(self) -> None:
        """Fit the tables to the new width."""
        self.call_after_refresh(self._draw)

    def show(self, snapshot: Snapshot) -> None:
        """Show *snapshot*, unless what is shown is paused."""
        self._latest = snapshot
        if not self._settings.is_paused:
            self._snapshot = snapshot
            named: list[AnyRates] = [*snapshot.processes, *snapshot.without_gil]
            alive = {_identity(process) for process in named}
            self._names = {who: self._names.get(who, SiteNames()) for who in alive}
            alive |= {_identity(process) for process in snapshot.transactions}
            self._unlike_others &= alive
        self._draw()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._set(replace(self._settings, order=self._settings.order.next()))

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._set(replace(self._settings, order=self._settings.order.reversed()))

    def action_roles(self) -> None:
        """Show or hide the roles of all processes."""
        self._unlike_others.clear()
        self._set(replace(self._settings, shows_roles=not self._settings.shows_roles))

    def action_fold(self) -> None:
        """Show or hide the roles of the selected process."""
        process = self._selected()
        if process is not None and not isinstance(process, Refusal):
            self._unlike_others ^= {_identity(process)}
            self._draw()

    def action_pause(self) -> None:
        """Pause what is shown, or resume with what there is now."""
        self._settings = replace(self._settings, is_paused=not self._settings.is_paused)
        self.show(self._latest)

    def action_filter(self) -> None:
        """Ask for the words that processes must have in them."""
        self._filter.display = True
        self.set_focus(self._filter)

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is to be taken as *action*, and not as a letter of the filter."""
        return not (action == "filter" and self._filter.has_focus)

    def action_help(self) -> None:
        """Say what the keys and the columns mean."""
        lines = (line.rstrip() for line in HELP.splitlines())
        self.app.push_screen(TextScreen(*((Span(line),) for line in lines)))

    def action_switch(self) -> None:
        """Go to the other table."""
        if self._table.has_focus:
            self._pane.enter()
        else:
            self.set_focus(self._table)

    def action_back(self) -> None:
        """Go back to the processes; from there, to all of them."""
        if self._table.has_focus or self._filter.has_focus:
            self._filter.value = ""
        self._filter.display = False
        self.set_focus(self._table)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show only what has the words in it."""
        self._set(replace(self._settings, words=event.value))

    def on_input_submitted(self) -> None:
        """Keep the words."""
        self._filter.display = False
        self.set_focus(self._table)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Show the pairs of the process that the cursor has come to."""
        if event.rows is self._table:
            self._draw_pairs()

    def on_rows_chosen(self) -> None:
        """Go to the pairs of the process."""
        self._pane.enter()

    def _set(self, settings: Settings) -> None:
        self._settings = settings
        self._draw()

    def _draw(self) -> None:
        settings, snapshot = self._settings, self._snapshot
        width = self.size.width - 1  # beside the scroll bar
        self._view.update(text_of(view_line(settings)), layout=False)
        self._totals.update(text_of(totals_line(snapshot, self._count_problems())), layout=False)
        self._head.update(text_of(*heading(width, settings.order)), layout=False)
        shown = [seen for seen in snapshot.processes if matches(seen, settings.words)]
        refused = [seen for seen in snapshot.refusals if matches(seen, settings.words)]
        beside: list[AnyRates] = [*snapshot.transactions, *snapshot.without_gil]
        others = [seen for seen in beside if matches(seen, settings.words)]
        every: list[AnyRates] = [*settings.order.sorted(shown), *others]
        self._table.show(rows(every, refused, width, self._shows_roles))
        self._draw_pairs()

    def _draw_pairs(self) -> None:
        selected = self._selected()
        names = SiteNames()
        if isinstance(selected, ProcessRates | LockRates):
            names = self._names.setdefault(_identity(selected), names)
        locks = None
        if isinstance(selected, ProcessRates):
            locks = self._snapshot.locks_of(selected.process.pid)
        self._pane.show(selected, names, locks)

    def _shows_roles(self, process: AnyRates) -> bool:
        return self._settings.shows_roles != (_identity(process) in self._unlike_others)

    def _selected(self) -> AnyRates | Refusal | None:
        key = self._table.key
        if not isinstance(key, RowKey):
            return None
        if key.since_ns is None:
            return next((seen for seen in self._snapshot.refusals if seen.pid == key.pid), None)
        identity = (key.pid, key.since_ns)
        every: list[AnyRates] = [
            *self._snapshot.processes,
            *self._snapshot.transactions,
            *self._snapshot.without_gil,
        ]
        return next((seen for seen in every if _identity(seen) == identity), None)


def _identity(process: AnyRates) -> _Identity:
    seen = process if isinstance(process, ProcessRates) else process.seen
    return seen.process.pid, seen.since_ns
