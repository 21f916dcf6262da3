"""What is remembered of a file is forgotten with the first change of it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from gilscope.process.files.file_facts import FileFacts

_SETTLED_NS = 3_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file."""
    made = tmp_path / "python3"
    made.write_bytes(b"one")
    return made


@pytest.fixture
def facts(path: Path) -> Iterator[FileFacts]:
    """What is known of it."""
    descriptor = os.open(path, os.O_RDONLY)
    yield FileFacts(descriptor)
    os.close(descriptor)


@pytest.fixture
def _later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the last change of every file be some seconds ago."""
    now_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + _SETTLED_NS)


@pytest.mark.usefixtures("_later")
def test_the_same_question_is_answered_once(facts: FileFacts, path: Path) -> None:
    """
    And another question is another one.
    """
    asked: list[str] = []

    def answer(of: str) -> bytes:
        asked.append(of)
        return path.read_bytes()

    found = [facts.known(each, lambda each=each: answer(each)) for each in ("a", "b", "a", "b")]  # type: ignore[misc]

    assert [b"one"] * 4 == found
    assert ["a", "b"] == asked


@pytest.mark.usefixtures("_later")
@pytest.mark.parametrize("content", [b"two", b"longer"])
def test_a_changed_file_is_asked_again(facts: FileFacts, path: Path, content: bytes) -> None:
    """
    Also where neither its size nor its modification time tells the change.
    """
    before = path.stat()
    facts.known("content", path.read_bytes)
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert content == facts.known("content", path.read_bytes)


@pytest.mark.usefixtures("_later")
def test_what_changes_while_it_is_read_is_not_kept(facts: FileFacts, path: Path) -> None:
    """
    That was of neither the old file nor the new one.
    """

    def read_and_change() -> bytes:
        read = path.read_bytes()
        path.write_bytes(b"longer")
        return read

    assert b"one" == facts.known("content", read_and_change)
    assert b"longer" == facts.known("content", path.read_bytes)


def test_nothing_is_kept_of_a_file_that_has_just_changed(facts: FileFacts) -> None:
    """
    It may change again within the same tick of the file system's clock.
    """
    answers = iter(["one", "two"])

    assert "one" == facts.known("content", lambda: next(answers))
    assert "two" == facts.known("content", lambda: next(answers))


@pytest.mark.usefixtures("_later")
def test_a_failure_is_no_answer(facts: FileFacts) -> None:
    """
    Memory may have been short.
    """

    def fails() -> NoReturn:
        raise MemoryError

    with pytest.raises(MemoryError):
        facts.known("content", fails)

    assert 3 == facts.known("content", lambda: 3)
