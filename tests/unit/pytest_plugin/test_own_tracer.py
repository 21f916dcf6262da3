"""What is asked of the child, and that an answer is the one to the question."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gilscope.pytest_plugin.own_tracer import CannotTrace, OwnTracer

_ANSWERS = """\
import json, sys
print(json.dumps({"number": 0, "wait_ns": 0}), flush=True)
for line in sys.stdin:
    print(json.dumps({"number": int(line), "wait_ns": 10 * int(line)}), flush=True)
"""

Traced = Callable[[str], OwnTracer]


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    """Have a program in place of the child."""
    started: list[OwnTracer] = []
    popen = subprocess.Popen

    def made(program: str) -> OwnTracer:
        def instead(_: object, **options: Any) -> subprocess.Popen[bytes]:
            return popen([sys.executable, "-c", program], **options)

        monkeypatch.setattr(subprocess, "Popen", instead)
        started.append(OwnTracer())
        return started[-1]

    yield made
    for each in started:
        each.close()


def test_each_question_has_its_answer(traced: Traced) -> None:
    """
    One after the other.
    """
    tracer = traced(_ANSWERS)

    assert [10, 20, 30] == [tracer.sums()["wait_ns"] for _ in range(3)]


def test_an_answer_that_nobody_has_read_is_skipped(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A test's time limit may interrupt whoever waits for it.
    """
    tracer, write = traced(_ANSWERS), os.write

    def interrupted(descriptor: int, content: bytes) -> int:
        write(descriptor, content)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tracer.sums()

    assert 20 == tracer.sums()["wait_ns"]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("", "gilscope has ended with code 0"),
        ("raise SystemExit(5)", "gilscope has ended with code 5"),
        ("print('what')", "gilscope's answer cannot be read: b'what"),
        (
            'print(\'{"error": "no GIL", "remedy": "Use another."}\')',
            "no GIL\nUse another.",
        ),
    ],
)
def test_what_is_no_answer_is_said(traced: Traced, program: str, said: str) -> None:
    """
    With what the child has said of it.
    """
    with pytest.raises(CannotTrace) as raised:
        traced(program)

    assert str(raised.value).startswith(said)
