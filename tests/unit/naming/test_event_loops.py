"""Stacks that run in an event loop."""

import pytest

from gilscope.model.stack import Frame
from gilscope.naming.event_loops import event_loop


@pytest.mark.parametrize(
    ("function", "file", "loop"),
    [
        ("BaseEventLoop.run_forever", "/usr/lib/python3.12/asyncio/base_events.py", "asyncio"),
        ("run_forever", "/usr/lib/python3.8/asyncio/base_events.py", "asyncio"),
        ("Runner.run", "/usr/lib/python3.12/asyncio/runners.py", "asyncio"),
        ("BaseEventLoop.run_forever", "asyncio/base_events.py", "asyncio"),
        ("run", "/v/site-packages/uvloop/__init__.py", "uvloop"),
        ("Hub.run", "/v/site-packages/gevent/hub.py", "gevent"),
        ("run_forever", "/srv/app.py", None),
        ("BaseEventLoop.close", "/usr/lib/python3.12/asyncio/base_events.py", None),
    ],
)
def test_loops_are_known_by_what_runs_them(function: str, file: str, loop: str | None) -> None:
    """
    Wherever in the stack that is; functions of the same name elsewhere are none.
    """
    inner = Frame("handle", "/srv/app.py", 3, 1)

    assert loop == event_loop((inner, Frame(function, file, 600, 590), inner))
