"""What a thread waits for in a system call, in words."""

import pytest

from gilscope.model.moment.seen import SystemCall
from gilscope.naming.system_calls import call_words, descriptor_of, futex_address


def _call(name: str, *arguments: int) -> SystemCall:
    return SystemCall(name, (*arguments, *[0] * (6 - len(arguments))))


@pytest.mark.parametrize(
    ("call", "file", "words"),
    [
        (_call("read", 5, 0x7F00, 100), "/srv/data.csv", "read on fd 5 = /srv/data.csv"),
        (_call("recvfrom", 3), "socket:[39499]", "recvfrom on fd 3 = socket:[39499]"),
        (_call("epoll_wait", 4), None, "epoll_wait on fd 4"),
        (_call("read", 0xFFFF_FFFF), None, "read on fd -1"),
        (_call("poll", 0x7F00, 1), None, "poll of 1 descriptor"),
        (_call("ppoll", 0x7F00, 3), None, "ppoll of 3 descriptors"),
        (_call("select", 8), None, "select of descriptors below 8"),
        (_call("wait4", 4711), None, "wait4 for process 4711"),
        (_call("wait4", 0xFFFF_FFFF_FFFF_FFFF), None, "wait4 for any child"),
        (_call("futex", 0x7F00, 0x189), None, "waits for a lock at 0x7f00"),
        (_call("futex", 0x7F00, 0x81), None, "futex"),
        (_call("clock_nanosleep", 1), None, "clock_nanosleep"),
        (_call("call 999"), None, "call 999"),
    ],
    ids=lambda value: value.name if isinstance(value, SystemCall) else "",
)
def test_words(call: SystemCall, file: str | None, words: str) -> None:
    """
    What the descriptor leads to, where the call has one; else what is known of its arguments.
    """
    assert words == call_words(call, file)


def test_names_of_files_are_printable_and_short() -> None:
    """
    Whoever opens a file chooses its name.
    """
    words = call_words(_call("read", 5), "/tmp/\x1b[31mred\n" + "x" * 5000)

    assert words.isprintable()
    assert words.startswith("read on fd 5 = /tmp/[31mred x")
    assert len(words) < 300


@pytest.mark.parametrize("operation", [0, 0x80, 0x189, 6, 0x8B, 13])
def test_who_sleeps_on_a_word(operation: int) -> None:
    """
    Waits of all kinds, private or not, by either clock.
    """
    assert 0x7F00 == futex_address(_call("futex", 0x7F00, operation))


def test_what_is_no_sleep_on_a_word() -> None:
    """
    Waking others is none, and another call has no such argument.
    """
    assert futex_address(_call("futex", 0x7F00, 1)) is None
    assert futex_address(_call("read", 0)) is None
    assert descriptor_of(_call("futex", 5, 0)) is None
