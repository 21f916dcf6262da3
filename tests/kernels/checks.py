"""What is run on each kernel: programs that are loaded, and tests with known answers."""

from dataclasses import dataclass

__all__ = ["CHECKS", "Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """A test of the suite that counts exactly, and what it says about a kernel if it passes."""

    feature: str
    what: str
    """What was counted, and in which interpreter."""
    test: str
    """Its id, as pytest takes it."""


_COUNTS = "tests/kernels/test_counts.py::"

CHECKS = (
    Check(
        "contention mode",
        "23 waits of a thread of CPython 3.11",
        f"{_COUNTS}test_waits_are_counted[debian-3.11-contention]",
    ),
    Check(
        "contention mode",
        "23 waits of a thread of CPython 3.14",
        f"{_COUNTS}test_waits_are_counted[debian-3.14-contention]",
    ),
    Check(
        "full mode",
        "23 waits of a thread of CPython 3.11 while holds are seen too",
        f"{_COUNTS}test_waits_are_counted[debian-3.11-full]",
    ),
    Check(
        "full mode",
        "97 holds of each of two threads of CPython 3.11, and all others",
        f"{_COUNTS}test_holds_are_counted[debian-3.11]",
    ),
    Check(
        "full mode",
        "97 holds of each of two threads of CPython 3.14, and all others",
        f"{_COUNTS}test_holds_are_counted[debian-3.14]",
    ),
    Check(
        "auto mode",
        "holds in windows of CPython 3.11, and none of those between them",
        f"{_COUNTS}test_holds_of_windows_are_counted[debian-3.11]",
    ),
    Check(
        "auto mode",
        "holds in windows of CPython 3.14, and none of those between them",
        f"{_COUNTS}test_holds_of_windows_are_counted[debian-3.14]",
    ),
    Check(
        "CPython 2.7",
        "20 waits of a thread for its semaphore",
        f"{_COUNTS}test_waits_for_a_semaphore_are_counted",
    ),
    Check(
        "transactions",
        "commits and cancels in windows alone",
        "tests/live/transactions/test_windows.py::test_only_what_happens_in_windows_is_counted",
    ),
    Check(
        "regions",
        "waits that a process reads itself",
        "tests/live/regions/test_region.py::test_regions_have_the_waits_of_their_thread",
    ),
)
