"""Knows event loops by their frames: what computes below them keeps all of their tasks waiting."""

from gilscope.model.stack import Stack

__all__ = ["event_loop"]

_LOOPS = {
    "asyncio": ("/asyncio/base_events.py", "run_forever"),
    "uvloop": ("/uvloop/__init__.py", "run"),
    "trio": ("/trio/_core/_run.py", "unrolled_run"),
    "gevent": ("/gevent/hub.py", "run"),
    "Tornado": ("/tornado/ioloop.py", "start"),
    "Twisted": ("/twisted/internet/base.py", "mainLoop"),
}
"""File, and the last part of the function's qualified name."""


def event_loop(stack: Stack) -> str | None:
    """Return the name of the event loop that *stack* runs in, None if it runs in none."""
    for frame in stack.frames:
        function = frame.function.rpartition(".")[2]
        for name, (file, run) in _LOOPS.items():
            if function == run and frame.file.endswith(file):
                return name
    return None
