"""What is logged."""

import logging

from gilscope.text.log_lines import LogLines


def test_messages_and_tracebacks_are_printable() -> None:
    """
    A name in a message, and one in the text of an exception, say nothing to a terminal.
    """
    failure = ValueError("\033[31mred\r\u202e")
    record = logging.LogRecord(
        "x", logging.ERROR, "x.py", 1, "no \033]0;%s\a", ("PWN",), (ValueError, failure, None)
    )

    assert "ERROR: no ]0;PWN\nValueError: [31mred " == LogLines().format(record)
