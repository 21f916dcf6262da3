"""The report on STM logs for people, as a whole."""

from dataclasses import replace

from gilscope.model.stm_log import LogGroup, StmReport
from gilscope.reports.stm_log import text as stm_log_text
from gilscope.stm_log.merge import merge
from gilscope.stm_log.reader import Reading
from support.stm_log.reading import file_of, report_of
from support.stm_log.writer import MS, LogWriter, marker

_REPORT = """\
app.log
Log of PyPy-STM C8 (layout L8, events E16), 20 records of 3 threads. Accounting S2, corrected.

Total real time:         2.400s
Time in transactions:    0.400s ( 16%) committed
                         1.500s ( 62%) aborted
                         0.600s ( 25%) paused
                         0.200s (8.3%) detached: outside, with a transaction left open
                         0.000s (0.0%) without an end in the log
                         2.700s (112%) TOTAL
           including     0.100s (4.2%) minor GC collections
                 and     0.000s (0.0%) major GC collections
Outside of them:         0.300s ( 12%) waiting, mostly to begin
Total number of transactions:      4 committed:  50% aborted:  50%
     per second of real time:      2
Aborts without a conflict in the log: 1, 0.500s lost.
Waits, also of transactions without an end:
                         0.600s (1x STM_WAIT_OTHER_INEVITABLE)
                         0.300s (1x STM_WAIT_FREE_SEGMENT)

1.000s lost in aborts, 0.000s paused (1x STM_CONTENTION_WRITE_READ)
  File "app.py", line 7, in spam
    spam.append(eggs)
time line: |                         X                                  |

0.000s lost in aborts, 0.600s paused (1x STM_BECOME_INEVITABLE)
  (no position: not in a Python function)
time line: |  X                                                         |

Notes
  STM_CONTENTION_WRITE_READ: what this transaction had read was changed by another one, at the
    position or shortly after it.
  STM_BECOME_INEVITABLE: it had to become inevitable at the position, and waited for another one
    that was so.
  Source lines were looked up now, by name: the file may have changed, or be another one of that
    name.
"""


def _content() -> bytes:
    writer = LogWriter().add(0, 1, "START").add(0, 3, "START").add(100 * MS, 1, "INEVITABLE")
    writer.add(100 * MS, 1, "WAIT_OTHER_INEVITABLE").add(700 * MS, 1, "WAIT_DONE")
    writer.add(700 * MS, 1, "DETACH").add(900 * MS, 1, "REATTACH")
    writer.add(950 * MS, 1, "GC_MINOR_START")
    writer.add(1000 * MS, 3, "WRITE_READ", marker(7, "spam", offset=9)).add(1000 * MS, 3, "ABORT")
    writer.add(1050 * MS, 1, "GC_MINOR_DONE").add(1100 * MS, 1, "COMMIT")
    writer.add(1100 * MS, 2, "WAIT_FREE_SEGMENT").add(1400 * MS, 2, "WAIT_DONE")
    writer.add(1400 * MS, 2, "START").add(1900 * MS, 2, "ABORT")
    writer.add(1900 * MS, 2, "START").add(2000 * MS, 2, "COMMIT")
    return writer.add(2400 * MS, 3, "START").add(2400 * MS, 3, "INEVITABLE").content


def _report(content: bytes, most: int | None = None) -> StmReport:
    report = report_of(file_of(content), most_entries=most)
    return replace(report, sources={("app.py", 7): "spam.append(eggs)"})


def test_whole_report() -> None:
    """
    Head, conflicts and notes.
    """
    assert _REPORT == stm_log_text.render(_report(_content()))


def test_colour_changes_nothing_but_the_colour() -> None:
    """
    On a terminal the same words stand in colour.
    """
    coloured = stm_log_text.render(_report(_content()), colour=True)
    for code in ("\033[1m", "\033[2m", "\033[0m"):
        assert code in coloured
        coloured = coloured.replace(code, "")

    assert _REPORT == coloured


def test_what_is_left_out_is_added_up() -> None:
    """
    With the option that shows it.
    """
    text = stm_log_text.render(_report(_content(), most=1))

    assert "1 more entry with 0.000s lost and 0.600s paused left out; -n 2 shows all." in text


def test_log_without_conflicts_says_so() -> None:
    """
    One record, and none, are reports as well.
    """
    writer = LogWriter()
    empty = stm_log_text.render(_report(writer.content))
    one = stm_log_text.render(_report(writer.add(0, 1, "COMMIT").content))

    for text in (empty, one):
        assert "\nNo transaction was in conflict with another one.\n" in text
        assert "Total real time:         0.000s\n" in text


def test_commits_without_a_record_are_told() -> None:
    """
    In words, with the part of the time without an end that is theirs.
    """
    writer = LogWriter("L8", "C13").add(0, 1, "START").add(MS, 1, "INEVITABLE", marker(7))
    for number in range(1, 9):
        writer.add(5 * number * MS, 1, "START")
        writer.add((5 * number + 1) * MS, 1, "INEVITABLE", marker(7))
    writer.add(50 * MS, 1, "COMMIT")
    log = file_of(writer.content, Reading(events_table="C13"))
    text = stm_log_text.render(report_of(log))

    assert "\nCommitted without a record in the log: 8, 0.040s of the time without an end." in text
    assert f"{'0.040s ( 80%) without an end in the log':>59}" in text
    assert "\nTotal number of transactions:      1 committed: 100% aborted: 0.0%\n" in text


def test_merged_logs_are_listed() -> None:
    """
    Each with its part.
    """
    files = [file_of(_content(), name=name) for name in ("app.log", "app.log.fork7")]
    logs = tuple(file.logs[0] for file in files)
    report = StmReport(tuple(files), (LogGroup(merge(logs), logs),), {}, None)

    text = stm_log_text.render(report)

    assert text.startswith("app.log and 1 fork\n")
    assert (
        "  app.log               20 records,    2.400s, 2 commits, 2 aborts\n"
        "  app.log.fork7         20 records,    2.400s, 2 commits, 2 aborts\n"
    ) in text
    assert "2.000s lost in aborts, 0.000s paused (2x STM_CONTENTION_WRITE_READ)\n" in text


def test_warnings_say_what_is_wrong() -> None:
    """
    Gaps, cut ends, clocks and unknown numbers.
    """
    writer = LogWriter("L7")
    for number in range(20):
        writer.add(number * MS, 1, "START").add(number * MS - 1000, 2, "START")
    writer.add(20 * MS, 1, 33).add(20 * MS, 1, "START").add(20 * MS, 1, "START")
    second = writer.content[16:]
    content = writer.raw(b"\0" * 50 + b"garbage" + second + second[:9]).content

    text = stm_log_text.render(report_of(file_of(content)))

    size = len(second) + 16
    for words in (
        f"  app.log: 57 bytes from byte {size} on are no records, 50 of them NUL: a second process",
        f"app.log from byte {size + 57}\n",
        "  app.log: it ends in the middle of a record (9 bytes of it): the process was killed",
        "  app.log: the clock goes back at 20 records; no duration is taken for less than 0.\n",
        "  app.log: 1 record with event numbers that the table C7 does not have, counted and of no",
    ):
        assert words in text


def test_text_of_a_log_cannot_command_a_terminal() -> None:
    """
    Positions are what a program made them.
    """
    writer = LogWriter()
    for number in range(9):
        writer.add(number, 1, "START")
        writer.add(number, 1, "WRITE_READ", marker(1, "f", "\033[31m\u202e.py"))
        writer.add(number, 1, "ABORT")

    text = stm_log_text.render(report_of(file_of(writer.content, name="a\033[2J.log")))

    assert "\033" not in text
    assert "\u202e" not in text


def test_s0_does_not_tell_times_apart() -> None:
    """
    It knows how long transactions were, and not how they ended.
    """
    writer = LogWriter("L7").add(0, 1, "START").add(30 * MS, 1, "COMMIT")

    text = stm_log_text.render(report_of(file_of(writer.content, Reading(semantics="S0"))))

    assert "Accounting S0, as in 2014, pauses included.\n" in text
    assert "Time in transactions:    0.030s (100%) with their pauses\n" in text
    assert "committed" not in text
