"""The live view: a textual application that reads a source now and then and shows it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver

from gilscope.exporter.source import Source
from gilscope.top.blocking_pane import ReadSources
from gilscope.top.header import Settings
from gilscope.top.main_screen import MainScreen
from gilscope.top.snapshot import NOTHING, take_snapshot
from gilscope.top.terminal_driver import TerminalDriver

__all__ = ["TopApp"]

_log = logging.getLogger(__name__)


class TopApp(App[None]):
    """Shows a source until q, Ctrl-C or `end_soon`."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        source: Source,
        settings: Settings,
        *,
        read_sources: ReadSources = lambda _pid, _frames: {},
        count_problems: Callable[[], int] = lambda: 0,
    ) -> None:
        """Show *source* as *settings* say at first.

        *read_sources* finds the source lines of stacks, *count_problems* says how many problems the
        log holds.
        """
        # The terminal's own colours, or none at all.
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._source = source
        self._interval_s = settings.interval_s
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._is_ending = False
        self._main = MainScreen(settings, read_sources, count_problems)

    def on_mount(self) -> None:
        """Begin to take snapshots."""
        self._event_loop = asyncio.get_running_loop()
        self.push_screen(self._main)
        self.run_worker(self._watch())
        if self._is_ending:
            self.exit()

    def end_soon(self) -> None:
        """End the view, also one that has not begun. Any thread may call this."""
        self._is_ending = True
        loop = self._event_loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.exit)

    def get_driver_class(self) -> type[Driver]:
        """Return what reads the keys: textual's own, fixed."""
        driver = super().get_driver_class()
        return TerminalDriver if driver is LinuxDriver else driver

    async def _watch(self) -> None:
        seen = NOTHING
        while True:
            try:
                # Reading the kernel's tables takes its time, and keys are answered meanwhile.
                seen = await asyncio.to_thread(take_snapshot, self._source, seen)
            except Exception:  # noqa: BLE001 - the next read may well succeed
                _log.exception("could not read the traced processes this time")
            self._main.show(seen)
            await asyncio.sleep(self._interval_s)
