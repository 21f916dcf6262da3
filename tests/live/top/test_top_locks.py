"""``gilscope top --locks``: what threads wait for beside a GIL, and without one."""

import pytest

from accuracy.truth import spoken_to
from support.commands.terminal import in_terminal
from support.interpreters.known import FREE_THREADED, ONE_PER_MINOR, Interpreter
from support.paths import WORKLOADS
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_ORDINARY = [each for each in ONE_PER_MINOR if getattr(each, "id", None) == "debian-3.14"]
_SCRIPT = [str(WORKLOADS / "lock_waits.py"), "lock", "2"]
_OPTIONS = ("--locks", "--mode", "full", "--interval", "0.2")


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_a_python_without_a_gil_has_a_row(interpreter: Interpreter) -> None:
    """
    While its threads wait; below, where they have waited, and who released the lock.
    """
    with (
        spoken_to([*command_of(interpreter), *_SCRIPT]) as workload,
        in_terminal("top", "-p", str(workload.pid), *_OPTIONS) as view,
    ):
        title = f"What threads wait for in lock_waits.py ({workload.pid}), which has no GIL"
        view.shows(title, "1 traced", "locks, seen")
        workload.command()
        text = view.shows("lock in hold (lock_waits.py:", "released by hold (lock_waits.py:")
        workload.answer()
        workload.finish()

        assert "waits/s for locks" in text
        view.press("q")
        assert 0 == view.exit_code()


@pytest.mark.parametrize("interpreter", _ORDINARY)
def test_beside_a_gil_there_is_a_line(interpreter: Interpreter) -> None:
    """
    With what was lost to locks, below whose code held the GIL.
    """
    with (
        spoken_to([*command_of(interpreter), *_SCRIPT]) as workload,
        in_terminal("top", "-p", str(workload.pid), *_OPTIONS) as view,
    ):
        view.shows("Who keeps whom waiting in lock_waits.py", "1 traced")
        workload.command()
        view.comes_to(
            lambda text: any(
                line.startswith("locks ") and "lock in hold (lock_waits.py:" in line
                for line in text.splitlines()
            ),
            "line of locks",
        )
        workload.answer()
        workload.finish()
