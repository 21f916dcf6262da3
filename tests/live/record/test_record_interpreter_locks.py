"""``gilscope record --locks``: which of the interpreter's own locks threads wait for."""

from collections import Counter
from pathlib import Path

import pytest

from support.interpreters.known import FREE_THREADED, MUSL_FREE_THREADED, Interpreter
from support.tracing.lock_waits import recorded_locks, waits_started

pytestmark = pytest.mark.live

_NEARLY_ALL = 0.95
"""Of the time: buckets of the parking lot have locks too, which nothing tells apart."""
_ALL = [*FREE_THREADED, *MUSL_FREE_THREADED]


@pytest.mark.parametrize("interpreter", _ALL)
def test_to_change_a_class_takes_the_lock_of_types(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Three threads count in an attribute of a class, each of its own: its dict is no other's.
    """
    _assert_named("types", "change", interpreter, sleep_clock, tmp_path)


@pytest.mark.parametrize("interpreter", _ALL)
def test_to_refer_weakly_takes_one_of_the_locks_for_that(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Three threads make references to one object.
    """
    _assert_named("weak references", "refer", interpreter, sleep_clock, tmp_path)


@pytest.mark.parametrize(
    # In 3.13 it is the lock of the dict that they are in.
    "interpreter",
    [each for each in _ALL if not str(getattr(each, "id", "")).endswith("3.13")],
)
def test_to_intern_strings_takes_the_lock_of_those(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Three threads intern strings that are new.
    """
    _assert_named("interned strings", "intern", interpreter, sleep_clock, tmp_path)


def _assert_named(
    name: str, function: str, interpreter: Interpreter, clock: Path, tmp_path: Path
) -> None:
    with waits_started(interpreter, clock, name.replace(" ", "_")) as workload:
        _, report, text = recorded_locks(workload, tmp_path)

    waited_s: Counter[str | None] = Counter()
    for thread in report["threads"]:
        for wait in thread["waits"]:
            stood = [frame["function"] for frame in wait["frames"][:1]]
            if (wait["kind"], stood) == ("interpreter", [function]):
                waited_s[wait["type"]] += wait["wait_s"]
    assert {name} == waited_s.keys() - {None}
    assert waited_s[name] > _NEARLY_ALL * sum(each["wait_s"] for each in report["threads"])
    assert f"a lock of the interpreter ({name})" in text
