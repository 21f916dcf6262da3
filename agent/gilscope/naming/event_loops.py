"""Knows event loops by their frames: what computes below them keeps all of their tasks waiting."""

from collections.abc import Iterable

from gilscope.model.stack import Frame

__all__ = ["event_loop"]

_LOOPS = (
    ("asyncio", "/asyncio/base_events.py", "run_forever"),
    # A loop that is written in C, as uvloop's is, has no frame of its own.
    ("asyncio", "/asyncio/runners.py", "run"),
    ("uvloop", "/uvloop/__init__.py", "run"),
    ("trio", "/trio/_core/_run.py", "unrolled_run"),
    ("gevent", "/gevent/hub.py", "run"),
    ("Tornado", "/tornado/ioloop.py", "start"),
    ("Twisted", "/twisted/internet/base.py", "mainLoop"),
)
"""Name, file, and the last part of the function's qualified name."""


def event_loop(frames: Iterable[Frame]) -> str | None:
    """Return the name of the event loop that *frames* run in, None if they run in none."""
    for frame in frames:
        function = frame.function.rpartition(".")[2]
        for name, file, run in _LOOPS:
            # Frozen, a module has a relative name.
            if function == run and f"/{frame.file}".endswith(file):
                return name
    return None
