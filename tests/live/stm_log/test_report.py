"""``gilscope stm report`` as users run it."""

import signal

import pytest

from support.commands.gilscope import gilscope_started
from support.stm_log.program import played_log

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


def test_interrupted_report_ends_quietly() -> None:
    """
    By the signal itself, so that a shell sees it, and without a traceback.
    """
    with gilscope_started("stm", "report", "-") as command:
        assert command.process.stdin is not None
        # So much does not fit into the pipe: it is reading when all has been written.
        with open(command.process.stdin.fileno(), "wb", closefd=False) as pipe:
            pipe.write(played_log("E16", 20_000).content)
        command.send(signal.SIGINT)
        assert -signal.SIGINT == command.process.wait(30)
        assert ("", "") == (command.output, command.messages)
