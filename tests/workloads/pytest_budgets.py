"""Tests for pytest with --gilscope: one thread waits for the GIL while another holds it in C.

Known answer, as properties of each test:

* truth_ns: the time from just before the sleeping thread is woken until it has the GIL, of all
  rounds. The holder keeps the GIL from before that on, so nearly all of it is a wait.
* most_ns: the same, and all the time when the GIL was not held in C, for both threads: on a machine
  without a free CPU they wait then, too.
"""

import ctypes
import os
import signal
import threading
import time

import pytest

HELD_US = 100_000
HOLDING = ctypes.PyDLL(None)


def hold_in_c(ends):
    """Wake the waiter and keep the GIL from it."""
    began_ns = time.monotonic_ns()
    HOLDING.write(ends, b"x", 1)
    HOLDING.usleep(HELD_US)
    return began_ns


def kept_waiting(rounds, record_property=print):
    """Have a thread wait that often."""
    called_ns = time.monotonic_ns()
    begin, end = os.pipe()
    woken_ns = []

    def waiter():
        for _ in range(rounds):
            os.read(begin, 1)
            woken_ns.append(time.monotonic_ns())

    thread = threading.Thread(target=waiter)
    thread.start()
    began_ns = []
    for number in range(rounds):
        while len(woken_ns) < number or asleep(thread) != "S":
            time.sleep(0.001)
        began_ns.append(hold_in_c(end))
    thread.join()
    os.close(begin)
    os.close(end)
    truth_ns = sum(woken_ns) - sum(began_ns)
    other_ns = time.monotonic_ns() - called_ns - rounds * HELD_US * 1000
    record_property("truth_ns", truth_ns)
    record_property("most_ns", truth_ns + 2 * other_ns)


def asleep(thread):
    """Return the state of the thread, as the kernel has it."""
    with open("/proc/self/task/%d/stat" % thread.native_id) as stat:
        return stat.read().rpartition(")")[2].split()[0]


@pytest.mark.gil_budget(wait="250ms")
def test_over_its_time(record_property):
    kept_waiting(3, record_property)


@pytest.mark.gil_budget(share=0.5)
def test_over_its_share(record_property):
    kept_waiting(2, record_property)


@pytest.mark.gil_budget(wait="5s", share=5)
def test_within_its_budget(record_property):
    kept_waiting(1, record_property)


@pytest.mark.gil_budget(wait="250ms")
def test_that_fails_by_itself():
    kept_waiting(3)
    pytest.fail("of its own")


def test_without_a_budget(record_property):
    kept_waiting(2, record_property)


@pytest.mark.gil_budget(wait="1ms")
def test_that_waits_for_something_else():
    time.sleep(0.02)


@pytest.mark.gil_budget(wait="long")
def test_with_a_budget_of_nonsense():
    pass


@pytest.mark.gil_budget(wait="5s")
def test_that_loses_its_tracer():
    task = "/proc/self/task/%d/children" % os.getpid()
    with open(task) as children:
        for child in children.read().split():
            os.kill(int(child), signal.SIGKILL)
            os.waitid(os.P_PID, int(child), os.WEXITED | os.WNOWAIT)


@pytest.mark.gil_budget(wait="5s")
def test_after_it():
    pass


def test_after_it_without_a_budget():
    pass
