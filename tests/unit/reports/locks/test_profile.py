"""Waits for locks as samples of a profile."""

from gilscope.reports.gil.profiles.content import profile_of
from support.recordings.gil import with_edges
from support.recordings.locks import MS, lock_recording

_HOLDER = "compare (app.py:41)"


def test_a_wait_is_a_sample_at_the_stack_that_waited() -> None:
    """
    Labels say for which lock, and where it was held and released if that is known.
    """
    profile = profile_of(locks=[lock_recording()])
    samples = {
        tuple(dict(labels).get(name, "") for name in ("lock", "holder", "releaser")): (
            [each.function for each in stack],
            values,
        )
        for (stack, labels), values in profile.samples()
    }

    assert ["lock_waits", "lock_wait"] == [each.name for each in profile.types]
    assert {
        ("object (list)", _HOLDER, "sort (app.py:33)"): (["append", "work"], [2, 24 * MS]),
        ("object (list)", _HOLDER, ""): (["append", "work"], [0, 6 * MS]),
        ("lock", "", ""): (["append", "work"], [2, 20 * MS]),
    } == samples
    assert "lock_wait" == profile.default.name


def test_beside_a_gil_locks_have_types_of_their_own() -> None:
    """
    The GIL's are shown first.
    """
    profile = profile_of(with_edges(), locks=[lock_recording()])
    names = [each.name for each in profile.types]

    assert ["gil_waits", "gil_wait", "gil_held_up", "gil_hold", "lock_waits", "lock_wait"] == names
    assert "gil_held_up" == profile.default.name


def test_what_no_sample_says_is_a_comment() -> None:
    """
    Coverage, what was lost, and why it was not seen to the end.
    """
    seen = profile_of(locks=[lock_recording(invalid="its probe has gone")]).comments
    untraced = profile_of(locks=[lock_recording(invalid="too old", has_totals=False)])

    assert "app.py, pid 4711: locks, 1.000s of 1.000s observed" in seen[0]
    whose = "app.py, pid 4711: locks"
    assert [
        f"{whose}: not seen to the end: its probe has gone",
        f"{whose}: not counted in full: 1 sleep begun before the recording, not counted",
    ] == list(seen[1:])
    assert [] == list(untraced.samples())
