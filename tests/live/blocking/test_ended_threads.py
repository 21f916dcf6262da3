"""Threads that have ended before anybody could ask them what they were for."""

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope_started
from support.commands.json_reports import only_process

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_WAITS = 2
"""Of each thread: one to begin, one after a blocking call."""


def test_thread_for_each_request_is_known_by_what_it_has_waited_in() -> None:
    """
    Those of the first seconds like those of the last, though their first wait was in no Python.
    """
    with (
        started(["/usr/bin/python3"], "thread_for_each.py") as workload,
        gilscope_started("record", "-p", str(workload.pid), "--format", "json") as command,
    ):
        command.says("Tracing the GIL of thread_for_each.py")
        number = workload.run()["threads"]
        workload.finish()
        outcome = command.outcome()
    threads = only_process(outcome.output)["threads"]
    # Where the machine was busy, a thread found the GIL free when it came back.
    roles = [
        thread["role"]
        for thread in threads
        if thread["tid"] != workload.pid and thread["waits"] == _WAITS
    ]

    assert len(roles) > number / 2
    assert {workload.ready["role"]} == set(roles)
