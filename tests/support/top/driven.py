"""Drives the live view by keys and without a terminal."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable

from textual.pilot import Pilot

from gilscope.model.gil import GilObservation, Refusal
from gilscope.model.locks import LockObservation
from gilscope.model.stack import Frame
from gilscope.model.transactions import StmObservation
from gilscope.top.app import TopApp
from gilscope.top.blocking_table import Sources
from gilscope.top.header import Settings
from support.top.views import Made

__all__ = ["Act", "View", "run"]

_HOPS = 5
"""A key goes to the application, the screen and a widget, whose message goes back up."""

Act = Callable[["View"], Awaitable[None]]


class View:
    """The application, and what is on its screen."""

    def __init__(self, app: TopApp, pilot: Pilot[None], source: Made) -> None:
        self.app = app
        self.pilot = pilot
        self.source = source

    @property
    def lines(self) -> list[str]:
        """What a terminal would show."""
        return [line.text.rstrip() for line in self.app.screen._compositor.render_strips()]  # noqa: SLF001 - textual tells it nowhere else

    @property
    def text(self) -> str:
        """The same in one piece."""
        return "\n".join(self.lines)

    async def press(self, *keys: str) -> None:
        """Press *keys*, and wait until what they do has been drawn."""
        for key in keys:
            self.app.simulate_key(key)
            await self.settle()

    async def settle(self) -> None:
        """Wait until every widget has done what it was told, and what that told others."""
        for _ in range(_HOPS):
            await self.pilot.pause(0)

    async def look(self, *observations: GilObservation) -> None:
        """Let the source be asked once more, and wait until its answer has been drawn."""
        if observations:
            self.source.observations = list(observations)
        assert self.source.permits is not None
        self.source.permits.release()
        # The next question comes when the last answer is on the screen.
        await asyncio.to_thread(self.source.asked.acquire)
        await self.settle()


def run(
    act: Act,
    *observations: GilObservation,
    refusals: Iterable[Refusal] = (),
    transactions: Iterable[StmObservation] = (),
    locks: Iterable[LockObservation] = (),
    problems: int = 0,
) -> TopApp:
    """Show *observations*, do what *act* does, and return the application after its end."""
    permits = threading.Semaphore(0)
    source = Made(
        *observations, refusals=refusals, transactions=transactions, locks=locks, permits=permits
    )
    app = TopApp(
        source.source,
        Settings("full", 0.001),
        read_sources=_read_sources,
        count_problems=lambda: problems,
    )

    async def drive() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            view = View(app, pilot, source)
            try:
                await asyncio.to_thread(source.asked.acquire)
                await view.look()
                await act(view)
            finally:
                permits.release(1_000_000)

    asyncio.run(drive())
    return app


def _read_sources(pid: int, frames: Iterable[Frame]) -> Sources:
    return {(each.file, 13): f"line 13 of {pid}" for each in frames if each.line == 13}
