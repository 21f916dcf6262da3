"""What unit tests share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def nothing_is_collected() -> Iterator[None]:
    """Close nothing meanwhile that other tests have left open, and nothing that nobody closes."""
    gc.disable()
    yield
    gc.enable()
