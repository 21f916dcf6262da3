"""What tests of the GIL's tracing share."""

import pytest

from unit.gil.full_mode_setting import Setting
from unit.gil.lock_model import Process


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    """A process with one lock that is free, and no window yet."""
    return Process(monkeypatch)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A process that nothing has begun with."""
    return Setting(monkeypatch)
