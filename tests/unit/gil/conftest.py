"""What tests of the GIL's tracing share."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from support.gil.lock_model import Process
from support.gil.lock_page import LockPage, MakeLocks
from support.gil.windows_setting import Setting


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    """A process with one lock that is free, and no window yet."""
    return Process(monkeypatch)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A process that nothing has begun with."""
    return Setting(monkeypatch)


@pytest.fixture
def lock_page() -> Iterator[MakeLocks]:
    """What makes pages of locks, which are given up in the end."""
    with ExitStack() as stack:

        def make(*locked: int) -> LockPage:
            made = LockPage(*locked)
            stack.callback(made.close)
            return made

        yield make
