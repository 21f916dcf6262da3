"""Finds the function that a thread runs for its life."""

import pytest

from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.naming.roles import (
    FRAMES_FOR_ROLE,
    job_role,
    named_role,
    resting_role,
    serves_jobs,
    telling_frames,
    thread_role,
)

_THREADING = "/usr/lib/python3.11/threading.py"
_BOOTSTRAP = (
    Frame("Thread._bootstrap", _THREADING, 995),
    Frame("Thread._bootstrap_inner", _THREADING, 1038),
)
_RUN = Frame("Thread.run", _THREADING, 971)
_WORKER = Frame("worker", "/srv/app/jobs.py", 41)
_STEP = Frame("step", "/srv/app/jobs.py", 7)


def _role(*frames: Frame) -> str | None:
    return thread_role(frames, is_main_thread=False)


def test_the_main_thread_is_called_so() -> None:
    """Whatever the main thread runs, its role is its name."""
    assert thread_role([_WORKER], is_main_thread=True) == "MainThread"
    assert thread_role([], is_main_thread=True) == "MainThread"


def test_the_target_of_a_thread() -> None:
    """The role is the function above threading's own, not what it calls."""
    assert _role(*_BOOTSTRAP, _RUN, _WORKER, _STEP) == "worker (jobs.py:41)"


def test_plain_names_before_3_11() -> None:
    """Without qualified names the same frames are recognised."""
    frames = (
        Frame("_bootstrap", "/usr/lib/python3.9/threading.py", 923),
        Frame("_bootstrap_inner", "/usr/lib/python3.9/threading.py", 961),
        Frame("run", "/usr/lib/python3.9/threading.py", 903),
        _WORKER,
    )
    assert _role(*frames) == "worker (jobs.py:41)"


def test_a_thread_with_its_own_run() -> None:
    """A subclass is known by the method that it brings."""
    own = Frame("Poller.run", "/srv/app/net/poller.py", 12)
    assert _role(*_BOOTSTRAP, own, _STEP) == "Poller.run (poller.py:12)"


def test_a_wrapper_around_run() -> None:
    """A library that replaces Thread.run does not give all threads one role."""
    tracing = "/venv/lib/python3.11/site-packages/sentry_sdk/integrations/threading.py"
    wrappers = (Frame("run", tracing, 60), Frame("_run_old_run", tracing, 70))
    assert _role(*_BOOTSTRAP, *wrappers, _RUN, _WORKER) == "worker (jobs.py:41)"


def test_a_timer() -> None:
    """A timer is known by the function that it calls, once it does."""
    timer = Frame("Timer.run", _THREADING, 1386)
    assert _role(*_BOOTSTRAP, timer, _WORKER) == "worker (jobs.py:41)"
    assert _role(*_BOOTSTRAP, timer, Frame("Event.wait", _THREADING, 604)) is None


def test_a_thread_that_stays_in_threading() -> None:
    """A timer that has not run down, and a function in C, are known by the `run` they are in."""
    timer = Frame("Timer.run", _THREADING, 1386)
    waiting = Frame("Event.wait", _THREADING, 604)
    assert resting_role([*_BOOTSTRAP, timer, waiting]) == "Timer.run (threading.py:1386)"
    assert resting_role([*_BOOTSTRAP, _RUN]) == "Thread.run (threading.py:971)"


def test_a_thread_that_has_not_come_to_run() -> None:
    """In threading's own code outside of `run` there is nothing to name it by."""
    assert resting_role([*_BOOTSTRAP, Frame("Event.set", _THREADING, 588)]) is None
    assert resting_role([]) is None


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_thread_inside_threading_has_no_role_yet(depth: int) -> None:
    """While only threading's own frames stand there, nobody knows what will come."""
    assert _role(*(*_BOOTSTRAP, _RUN)[:depth]) is None


def test_a_starting_thread_that_tells_its_parent() -> None:
    """Other functions of threading that the bootstrap calls are no role either."""
    assert _role(*_BOOTSTRAP, Frame("Event.set", _THREADING, 588)) is None


def test_a_thread_that_was_started_without_threading() -> None:
    """The outermost frame of a bare thread is its role."""
    assert _role(_WORKER, _STEP) == "worker (jobs.py:41)"


def test_a_program_with_a_module_of_the_same_name() -> None:
    """Only the standard library's threading is skipped, not somebody's file of that name."""
    own = Frame("run", "/srv/app/threading.py", 3)
    assert _role(*_BOOTSTRAP, _RUN, own, _STEP) == "run (threading.py:3)"


def test_a_frozen_program() -> None:
    """Packagers store modules of the standard library under their bare names."""
    frames = (
        Frame("Thread._bootstrap", "threading.py", 995),
        Frame("Thread._bootstrap_inner", "threading.py", 1038),
        Frame("Thread.run", "threading.py", 971),
        Frame("Pool.worker", "pool.py", 10),
    )
    assert _role(*frames) == "Pool.worker (pool.py:10)"


_POOL = Frame("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", 70)
_ITEM = Frame("_WorkItem.run", "/usr/lib/python3.11/concurrent/futures/thread.py", 53)
_LIBRARY = Frame("Flask.wsgi_app", "/venv/lib/python3.11/site-packages/flask/app.py", 900)


def test_a_thread_pool() -> None:
    """A pool's thread serves jobs, and each is known by the application's first function in it."""
    frames = (*_BOOTSTRAP, _RUN, _POOL, _ITEM, _LIBRARY, _WORKER, _STEP)
    assert serves_jobs(frames)
    assert job_role(frames) == "worker (jobs.py:41)"
    assert _role(*frames) == "_worker (concurrent/futures/thread.py:70)"


def test_a_thread_pool_between_jobs() -> None:
    """There is no job to name, only the pool's own loop."""
    assert serves_jobs([*_BOOTSTRAP, _RUN, _POOL])
    assert job_role([*_BOOTSTRAP, _RUN, _POOL, UNKNOWN_FRAME]) is None


def test_a_thread_of_the_application_serves_no_jobs() -> None:
    """It has a function of its own, whatever libraries that calls."""
    assert not serves_jobs([*_BOOTSTRAP, _RUN, _WORKER, _LIBRARY, _STEP])
    assert not serves_jobs([*_BOOTSTRAP, _RUN])


def test_an_event_loop() -> None:
    """A library's loop is called so, and its jobs, which change all the time, name nothing."""
    run = Frame("run", "/usr/lib/python3.11/asyncio/runners.py", 160)
    forever = Frame("BaseEventLoop.run_forever", "/usr/lib/python3.11/asyncio/base_events.py", 580)
    assert _role(*_BOOTSTRAP, _RUN, run, forever, _STEP) == "asyncio event loop"
    assert not serves_jobs([*_BOOTSTRAP, _RUN, run, forever, _STEP])
    assert _role(*_BOOTSTRAP, _RUN, _WORKER, run, forever) == "worker (jobs.py:41)"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("db-pool_2", "db-pool"),
        ("loader 12", "loader"),
        ("ThreadPoolExec", None),
        ("Thread-7", None),
        ("python3", None),
        ("", None),
        ("7", None),
    ],
)
def test_a_given_name(name: str, role: str | None) -> None:
    """A name with a number is that of one of many; Python's own names say nothing."""
    assert named_role(name) == role


def test_frames_that_tell_a_role() -> None:
    """The outermost ones, and the application's first, however deep a framework is."""
    deep = [*_BOOTSTRAP, _RUN, _POOL, *[_LIBRARY] * FRAMES_FOR_ROLE, _WORKER, _STEP]
    assert telling_frames(deep) == (*deep[:FRAMES_FOR_ROLE], _WORKER)
    assert telling_frames(deep[:4]) == tuple(deep[:4])


def test_a_lambda_keeps_its_qualified_name() -> None:
    """Names are given as the version stores them."""
    frame = Frame("main.<locals>.<lambda>", "<string>", 3)
    assert _role(*_BOOTSTRAP, _RUN, frame) == "main.<locals>.<lambda> (<string>:3)"


def test_deep_frames_do_not_matter() -> None:
    """Somebody who runs a thread's body by hand, far up the stack, changes nothing."""
    frames = [*_BOOTSTRAP, _RUN, _WORKER, *[_STEP] * (FRAMES_FOR_ROLE - 4), _RUN, _STEP]
    assert _role(*frames) == "worker (jobs.py:41)"
