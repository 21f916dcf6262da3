"""Some seconds of tests/fuzz/elf.py, the same ones every time."""

import pytest

from fuzz.elf import Fuzzer, judge, seed_files
from support.gil.lock_program import require_tools

_EXECUTIONS = 50


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    """Return the fuzzer with its sound files."""
    require_tools()
    return Fuzzer(seed_files(tmp_path_factory.mktemp("sound")))


def test_damaged_files_break_no_promise(fuzzer: Fuzzer) -> None:
    """
    Readers of damaged files raise what they document, find the same twice, and are done soon.
    """
    failures = fuzzer.run(range(_EXECUTIONS))

    assert [] == [(failure.seed, failure.reason) for failure in failures]
    assert _EXECUTIONS == fuzzer.executions
    assert len(fuzzer.outcomes) > 10


def test_a_seed_always_makes_the_same_file(fuzzer: Fuzzer) -> None:
    """
    What a run reports can be made again from its number.
    """
    assert fuzzer.damaged(7) == fuzzer.damaged(7)
    assert 1 < len({fuzzer.damaged(seed) for seed in range(20)})


def test_a_broken_promise_is_seen(monkeypatch: pytest.MonkeyPatch, fuzzer: Fuzzer) -> None:
    """
    Any other exception of a reader is a failure, with its text.
    """

    def broken(_: object) -> None:
        raise IndexError("out of the table")

    monkeypatch.setattr("fuzz.elf.resolve_sites", broken)

    assert "raised IndexError('out of the table')" == judge(fuzzer.files[0])[1]
