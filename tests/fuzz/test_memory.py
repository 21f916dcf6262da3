"""A short piece of what `fuzz.memory` does for as long as one likes."""

import pytest

from fuzz import memory
from fuzz.memory import Failed, fuzz
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.runtime import Runtime


def test_whatever_is_in_the_memory_of_a_process() -> None:
    """
    The readers end soon, with figures or with an error that is expected.
    """
    assert fuzz(seed=1, rounds=60) > 3000


@pytest.mark.parametrize("error", [IndexError, MemoryError, RecursionError])
def test_a_reader_that_breaks_is_found(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The harness does not forgive what an agent would not survive.
    """

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(memory, "read_gils", broken)

    with pytest.raises(Failed, match=error.__name__):
        fuzz(seed=1, rounds=1)


def test_a_reader_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Also where it is torn again and again.
    """

    def endless(runtime: Runtime) -> None:
        while True:
            try:
                runtime.memory.read(runtime.address, 8)
            except TornRead:
                continue

    monkeypatch.setattr(memory, "read_gils", endless)

    with pytest.raises(Failed, match="100001 reads"):
        fuzz(seed=1, rounds=1)
