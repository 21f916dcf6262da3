"""What tests of the GIL's tracing share."""

import pytest

from unit.gil.lock_model import Process


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    """A process with one lock that is free, and no window yet."""
    return Process(monkeypatch)
