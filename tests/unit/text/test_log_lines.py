"""What is logged."""

import json
import logging

from gilscope.text.log_lines import JsonLines, LogLines


def test_messages_and_tracebacks_are_printable() -> None:
    """
    A name in a message, and one in the text of an exception, say nothing to a terminal.
    """
    failure = ValueError("\033[31mred\r\u202e")
    record = logging.LogRecord(
        "x", logging.ERROR, "x.py", 1, "no \033]0;%s\a", ("PWN",), (ValueError, failure, None)
    )

    assert "ERROR: no ]0;PWN\nValueError: [31mred " == LogLines().format(record)


def test_json_is_an_object_a_line() -> None:
    """
    With the time in UTC; what would break a line, or a terminal, is escaped.
    """
    failure = ValueError("red\n")
    words = ("a.b", logging.WARNING, "x.py", 1, "not traced: %s", ("x\x1b\n",))
    record = logging.LogRecord(*words, (ValueError, failure, None))
    record.created = 1700000000.25
    line = JsonLines().format(record)

    assert "\n" not in line
    assert {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "warning",
        "logger": "a.b",
        "message": "not traced: x\x1b\n",
        "exception": "ValueError: red\n",
    } == json.loads(line)


def test_fields_for_programs() -> None:
    """
    They stand behind the message, on the same line, or beside it.
    """
    record = logging.LogRecord("a", logging.WARNING, "x.py", 1, "capture of pid %d", (7,), None)
    record.fields = {"capture": {"name": "\x1b[31m\n"}}
    text = LogLines().format(record)

    assert 'WARNING: capture of pid 7: {"name": "\\u001b[31m\\n"}' == text
    assert {"name": "\x1b[31m\n"} == json.loads(JsonLines().format(record))["capture"]
