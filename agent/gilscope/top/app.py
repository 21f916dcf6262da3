"""The live view: a textual application that looks at a source now and then and shows it."""

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from gilscope.top.look import NOTHING, Source, look
from gilscope.top.main_screen import MainScreen
from gilscope.top.pairs_pane import ReadSources
from gilscope.top.summary import Settings

__all__ = ["TopApp"]

_log = logging.getLogger(__name__)


class TopApp(App[None]):
    """Shows a source until q, Ctrl-C, SIGINT or SIGTERM."""

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
        self._main = MainScreen(settings, read_sources, count_problems)

    def on_mount(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.exit)
        self.push_screen(self._main)
        self.run_worker(self._watch())

    async def _watch(self) -> None:
        seen = NOTHING
        while True:
            try:
                # Reading the kernel's tables takes its time, and keys are answered meanwhile.
                seen = await asyncio.to_thread(look, self._source, seen)
            except Exception:  # noqa: BLE001 - the next look may well succeed
                _log.exception("could not look at the traced processes this time")
            self._main.show(seen)
            await asyncio.sleep(self._interval_s)
