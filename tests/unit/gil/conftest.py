"""What tests of the GIL's tracing share."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from unit.gil.full_mode_setting import Setting
from unit.gil.lock_file import LockFile, MakeLocks
from unit.gil.lock_model import Process


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    """A process with one lock that is free, and no window yet."""
    return Process(monkeypatch)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A process that nothing has begun with."""
    return Setting(monkeypatch)


@pytest.fixture
def lock_file(tmp_path: Path) -> Iterator[MakeLocks]:
    """What makes files of locks, which are closed in the end."""
    with ExitStack() as stack:

        def make(locked: dict[int, int]) -> LockFile:
            made = LockFile(tmp_path, locked)
            stack.callback(made.close)
            return made

        yield make
