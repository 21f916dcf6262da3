"""Logs that are read as one."""

from dataclasses import replace

import pytest

from gilscope.model.stm_log import LogFile
from gilscope.stm_log.merge import by_line, groups_of, merge
from support.stm_log.reading import charges, file_of, log_of
from support.stm_log.writer import MS, LogWriter, marker


def _file(name: str, begin_ms: int = 0, parts: int = 1) -> LogFile:
    writer = LogWriter()
    for number in range(8):
        now_ns = (begin_ms + number) * MS
        writer.add(now_ns, 1, "START").add(now_ns + 1000, 1, "WRITE_READ", marker(3))
        writer.add(now_ns + 2000, 1, "ABORT")
    content = writer.content
    return file_of(content + (b"\0" * 30 + content[16:]) * (parts - 1), name=name)


_FILES = [_file("app.log"), _file("app.log.fork12", 20), _file("other.log"), _file("two", parts=2)]


@pytest.mark.parametrize(
    ("how", "groups"),
    [
        ("forks", [["app.log", "app.log.fork12"], ["other.log"], ["two"], ["two"]]),
        ("none", [["app.log"], ["app.log.fork12"], ["other.log"], ["two"], ["two"]]),
        ("all", [["app.log", "app.log.fork12", "other.log", "two", "two"]]),
    ],
)
def test_logs_belong_together(how: str, groups: list[list[str]]) -> None:
    """
    A process and its forks; what follows a gap belongs to nobody.
    """
    assert groups == [[log.name for log in group] for group in groups_of(_FILES, how)]


def test_forks_belong_together_without_their_process() -> None:
    """
    Its own log may be missing.
    """
    forks = [_file("app.log.fork12"), _file("app.log.fork13")]

    assert [2] == [len(group) for group in groups_of(forks, "forks")]


def test_sums_are_those_of_all_logs() -> None:
    """
    Counts and times add up, and the duration is from the first record of all to the last.
    """
    one, other = (file.logs[0] for file in _FILES[:2])
    both = merge([one, other])

    assert (48, 2, 16) == (both.records, both.threads, both.totals.aborts)
    assert 27 * MS + 2000 == both.span_ns == both.totals.total_ns
    assert {"WRITE_READ": (16 * 2000, 0, 16)} == charges(both)
    assert 16 == sum(both.aborts_over_time.counts) == sum(both.conflicts[0].over_time.counts)
    assert 16 == both.totals.aborted_runs.count
    assert 32_000 == both.totals.aborted_runs.sum_ns


def test_one_log_is_itself() -> None:
    """
    Nothing is changed where nothing is merged.
    """
    (log,) = _FILES[0].logs

    assert log is merge([log])


def test_no_logs_cannot_be_merged() -> None:
    """
    There is nothing that the result could be.
    """
    with pytest.raises(ValueError, match="no logs"):
        merge([])


def test_log_without_records_does_not_stretch_the_time() -> None:
    """
    Its times are not known.
    """
    (log,) = _FILES[0].logs
    (empty,) = file_of(LogWriter().content).logs

    assert log.span_ns == merge([log, empty]).span_ns


def test_names_say_what_was_merged() -> None:
    """
    Forks are called so.
    """
    logs = [file.logs[0] for file in _FILES]

    assert "app.log and 1 fork" == merge(logs[:2]).name
    assert "app.log and 2 other logs" == merge(logs[:3]).name
    assert "L7, L8" == merge([replace(logs[0], layout="L7"), logs[1]]).layout


def test_offsets_do_not_tell_lines_apart() -> None:
    """
    Conflicts at one line are one.
    """
    writer = LogWriter()
    for number in range(10):
        writer.add(number * MS, 1, "START")
        writer.add(number * MS, 1, "WRITE_READ", marker(3, offset=number % 2))
        writer.add(number * MS, 1, "ABORT")
    log = log_of(writer.content)

    assert 2 == len(log.conflicts)
    assert [((marker(3),), 10)] == [(each.markers, each.count) for each in by_line(log.conflicts)]
