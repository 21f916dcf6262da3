"""The file in which one agent leaves its counters for the next."""

import argparse
import fcntl
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from gilscope.commands.serving.kept_file import kept_counters
from gilscope.commands.serving.options import check_options, prepare_parser
from gilscope.errors import CountersNotKept
from support.reports.services import CONVOYS, ScrapedAgent, of_service, worker


def _waits_told(path: Path, *waits: int) -> list[float | None]:
    """Return what an agent tells that sees a worker with so many waits, one after the other."""
    with kept_counters(str(path), 1) as kept:
        assert kept is not None
        agent = ScrapedAgent(kept.counters)
        return [
            of_service(agent.scrape(worker(1, waits=each)), CONVOYS, interpreter="0")
            for each in waits
        ]


def test_an_agent_continues_what_the_one_before_has_left(tmp_path: Path) -> None:
    """
    In a file that it makes, and that nobody else can read.
    """
    path = tmp_path / "counters"

    assert [[3, 5], [5, 6], [8]] == [_waits_told(path, *each) for each in ((3, 5), (0, 1), (2,))]
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_agent_that_tells_nothing_leaves_what_it_has_found(tmp_path: Path) -> None:
    """
    It could not listen, or load its probes: nobody has been told more.
    """
    path = tmp_path / "counters"
    _waits_told(path, 3)
    left = path.read_bytes()
    with pytest.raises(ZeroDivisionError), kept_counters(str(path), 1):
        _ = 1 / 0

    assert left == path.read_bytes()


def test_an_agent_that_fails_leaves_what_it_has_told(tmp_path: Path) -> None:
    """
    Whatever it has failed for.
    """
    path = tmp_path / "counters"
    agent = kept_counters(str(path), 1)
    kept = agent.__enter__()
    assert kept is not None
    ScrapedAgent(kept.counters).scrape(worker(1, waits=3))
    assert not agent.__exit__(ZeroDivisionError, ZeroDivisionError(), None)

    assert [4] == _waits_told(path, 1)


def test_after_an_agent_that_was_killed_counters_begin_at_0(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """
    What it has told last is known to nobody, and a counter must not fall by a part.
    """
    path = tmp_path / "counters"
    _waits_told(path, 3)
    with kept_counters(str(path), 1) as kept:
        assert kept is not None
        ScrapedAgent(kept.counters).scrape(worker(1, waits=3))
        killed = path.read_bytes()
    path.write_bytes(killed)

    assert [1] == _waits_told(path, 1)
    assert "the last gilscope was killed" in caplog.text


def test_a_file_that_is_cut_short_begins_at_0(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """
    As after a power failure while it was written; it says so.
    """
    path = tmp_path / "counters"
    _waits_told(path, 3)
    os.truncate(path, path.stat().st_size // 2)

    assert [1] == _waits_told(path, 1)
    assert f"counters begin at 0: {path} cannot be read" in caplog.text


@pytest.mark.parametrize("left", [b"\0" * 4096, b"gilscope cou", b""])
def test_what_a_power_failure_leaves_is_no_file_of_somebody_else(
    tmp_path: Path, left: bytes
) -> None:
    """
    It was never written, or its beginning alone: an agent must not refuse to start for that.
    """
    path = tmp_path / "counters"
    path.write_bytes(left)

    assert [[3], [5]] == [_waits_told(path, 3), _waits_told(path, 2)]


def test_counters_are_left_before_the_end(tmp_path: Path) -> None:
    """
    To take probes out may be cut short; and nobody is told what the file does not know.
    """
    path = tmp_path / "counters"
    with kept_counters(str(path), 1) as kept:
        assert kept is not None
        agent = ScrapedAgent(kept.counters)
        agent.scrape(worker(1, waits=3))
        kept.leave()
        left = path.read_bytes()
        assert of_service(agent.scrape(worker(1, waits=4)), CONVOYS, interpreter="0") is None

    assert left == path.read_bytes()
    assert [4] == _waits_told(path, 1)


def test_a_file_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    """
    A wrong path must cost nobody a file.
    """
    path = tmp_path / "thesis.txt"
    path.write_text("the only copy")
    with pytest.raises(CountersNotKept, match="stays as it is"), kept_counters(str(path), 1):
        pass

    assert "the only copy" == path.read_text()


def test_two_agents_do_not_share_a_file(tmp_path: Path) -> None:
    """
    The second one would continue what the first still counts.
    """
    path = tmp_path / "counters"
    with (
        kept_counters(str(path), 1),
        pytest.raises(CountersNotKept, match="another gilscope keeps its counters in"),
        kept_counters(str(path), 1),
    ):
        pass
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("name", [".", "no such folder/counters", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    """
    A folder, a folder that is not there, a pipe that nobody writes to.
    """
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CountersNotKept), kept_counters(str(tmp_path / name), 1):
        pass


def test_a_disk_that_is_full_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Figures are told all the same, from 0, and so does the next agent.
    """
    path = tmp_path / "counters"
    _waits_told(path, 3)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("gilscope.commands.serving.kept_file.os.pwrite", full)
        assert [1] == _waits_told(path, 1)

    assert f"cannot keep the counters in {path}" in caplog.text
    assert [1] == _waits_told(path, 1)


def test_without_a_file_nothing_is_kept() -> None:
    """
    As is usual.
    """
    with kept_counters(None, 1) as kept:
        assert kept is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--all", "--per-process"], "--keep-counters is for series of services"),
        (["--stm-log", "*"], "--keep-counters is for processes"),
        (["--all"], ""),
    ],
)
def test_it_is_for_services_alone(words: list[str], complaint: str) -> None:
    """
    Numbers of processes come again, and logs are read from their beginning.
    """
    complaints: list[str] = []
    parser = argparse.ArgumentParser()
    prepare_parser(parser)
    arguments = parser.parse_args(["--keep-counters", "file", *words])
    arguments.complain = complaints.append
    check_options(arguments)

    assert complaint in "".join(complaints)
    assert bool(complaint) == bool(complaints)


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
