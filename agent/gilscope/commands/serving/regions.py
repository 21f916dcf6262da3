"""Lets processes read their own waits, for ``gilscope serve``."""

import contextlib
from collections.abc import Callable, Iterator

from gilscope.gil.probes.probe import GilProbe
from gilscope.regions.listener import RegionListener, listening_socket
from gilscope.regions.places import Places
from gilscope.regions.words import Words

__all__ = ["given_regions"]


@contextlib.contextmanager
def given_regions(
    path: str | None,
    probe: GilProbe,
    attached: Callable[[int], object | None],
    *,
    tells_holds: bool,
) -> Iterator[None]:
    """Answer processes that ask at *path*, None: nobody, until the block has ended.

    *probe* is loaded for it; *attached* returns what stands for a traced process; *tells_holds*:
    each is in full mode. To be entered in the main thread, which lives as long as the agent.
    Raises CannotListen.
    """
    if path is None:
        yield
        return
    places = Places(probe.tables, tells_holds=tells_holds)
    with (
        Words(places.room) as words,
        contextlib.closing(RegionListener(places, words, attached)) as listener,
        listening_socket(path, listener.answer),
    ):
        probe.before_detach = listener.end
        yield
