"""The checks that follow each fault see what they look for."""

import os

import pytest

from accuracy.truth import started
from faults.agent_watch import AgentWatch
from faults.bpf_objects import all_objects
from faults.half import SUBJECTS_OF
from faults.memory_text import changed_bytes
from faults.plain_words import not_plain
from faults.registry import all_faults
from support.commands.gilscope import eventually, gilscope_started

_PYTHON = "/usr/bin/python3.11"


@pytest.mark.live
@pytest.mark.beside_others
def test_breakpoints_and_objects_of_an_agent_are_seen() -> None:
    """
    While it traces there are some of both, after SIGKILL none.
    """
    watch = AgentWatch()
    with started([_PYTHON], "exact_count.py") as workload:
        assert [] == changed_bytes(workload.pid)
        with gilscope_started("record", "-p", str(workload.pid)) as command:
            command.says("Tracing the GIL of")
            watch.add(command.pid)
            eventually(lambda: {kind for kind, _ in watch.objects} >= {"prog", "map"})
            assert all(" is 0xcc" in place for place in changed_bytes(workload.pid))
            assert changed_bytes(workload.pid)
            assert watch.objects & all_objects()
            command.process.kill()
            command.process.wait()
        eventually(lambda: not changed_bytes(workload.pid))
        eventually(lambda: not watch.objects & all_objects())
    watch.stop()


@pytest.mark.live
@pytest.mark.beside_others
def test_figures_are_those_of_the_process() -> None:
    """
    Of this one: its descriptors, and memory that it has.
    """
    figures = AgentWatch().figures(os.getpid())
    more = os.open("/dev/null", os.O_RDONLY)
    try:
        assert figures.descriptors + 1 == AgentWatch().figures(os.getpid()).descriptors
    finally:
        os.close(more)
    assert 0 < figures.private_kib <= figures.resident_kib


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("error: there is no process 4711\nList them with: gilscope doctor --all\n", True),
        ("Tracing\tthe GIL of caf\u00e9.py\n", True),
        ("Traceback (most recent call last):\n  File x\nValueError: y\n", False),
        ("KeyboardInterrupt\n", False),
        ("Fatal Python error: init_import_site: x\nTraceback (most recent call last):\n", True),
        ("json.decoder.JSONDecodeError: z\n", False),
        ("a \x1b[31mred\n", False),
        ("a\rb\n", False),
        ("a \u202e b\n", False),
        ("a \u2028 b\n", False),
        ("a \udcff b\n", False),
    ],
)
def test_what_is_plain(text: str, *, is_plain: bool) -> None:
    """
    Words are, and those of an interpreter that was ended early; tracebacks and controls are not.
    """
    assert is_plain == (not not_plain(text))


def test_matrix_is_large() -> None:
    """
    Each says what happens and what is expected.
    """
    known = all_faults().values()

    assert len(known) >= 120
    assert [] == [fault.name for fault in known if len(fault.what) < 20]


def test_every_fault_is_played_by_one_file_of_tests() -> None:
    """
    A new subject is in one of them, and in no two.
    """
    subjects = [subject for kind in SUBJECTS_OF.values() for subject in kind]

    assert sorted({fault.subject for fault in all_faults().values()}) == sorted(subjects)
