"""Names places and threads by the stacks that were noted of them."""

import pytest

from gilscope.model.stack import UNKNOWN_FRAME, UNKNOWN_STACK, Frame, Stack, StackState
from gilscope.naming.places import SiteNames, role_of

_LIBRARY = "/usr/lib/python3.11"
_THREADING = f"{_LIBRARY}/threading.py"
_BOOTSTRAP = (
    Frame("Thread.run", _THREADING, 971, 975),
    Frame("Thread._bootstrap_inner", _THREADING, 1038, 1045),
    Frame("Thread._bootstrap", _THREADING, 995, 1002),
)
_STEP = Frame("step", "/srv/app/jobs.py", 7, 9)
_WORKER = Frame("worker", "/srv/app/jobs.py", 41, 44)
_PROGRAM = Frame("<module>", "/srv/app/main.py", 1, 20)


def _role(*frames: Frame, state: StackState = StackState.WHOLE) -> str:
    return role_of(Stack(frames, state))


def test_site_has_the_line_that_was_executing() -> None:
    """
    Only where that is not known, the line of the ``def`` stands for it.
    """
    names = SiteNames()

    assert "step (jobs.py:9)" == names.site(_STEP)
    assert "step (jobs.py:7)" == names.site(Frame("step", "/srv/app/jobs.py", 7))
    assert "unknown" == names.site(UNKNOWN_FRAME)


def test_site_of_a_stack() -> None:
    """
    A stack is named by its innermost frame, or in words why it has none.
    """
    names = SiteNames()

    assert "step (jobs.py:9)" == names.innermost(Stack((_STEP, _WORKER)))
    assert "no Python code" == names.innermost(Stack((), StackState.NO_PYTHON))
    assert "unknown" == names.innermost(UNKNOWN_STACK)


def test_files_of_one_name_are_told_apart() -> None:
    """
    The first file keeps its short name; others show as much of their folders as it takes.
    """
    names = SiteNames()
    files = [
        "/srv/shop/views.py",
        "/srv/blog/views.py",
        "/opt/blog/views.py",
        "/views.py",
        "views.py",
        "/usr/lib/python3.11/views.py",
        "/srv/shop/views.py",
    ]

    assert [
        "views.py",
        "blog/views.py",
        "opt/blog/views.py",
        "/views.py",
        "./views.py",
        "python3.11/views.py",
        "views.py",
    ] == [names.path(file) for file in files]


@pytest.mark.parametrize("file", ["<string>", "<frozen runpy>", "", "jobs.py", "../jobs.py"])
def test_what_has_no_folder_keeps_its_name(file: str) -> None:
    """
    Names that are no paths, and relative ones, stay as they are.
    """
    assert file == SiteNames().path(file)


def test_cells_of_two_kernels_are_told_apart() -> None:
    """
    By the kernels' process ids, where they have the same text.
    """
    names = SiteNames()
    files = [f"/tmp/ipykernel_{pid}/1632140807.py" for pid in (47, 48)]

    assert ["notebook cell 1632140807", "ipykernel_48/notebook cell 1632140807"] == [
        names.path(file) for file in files
    ]


def test_role_is_the_function_above_threading() -> None:
    """
    It is what a thread's totals stand under, whatever the thread was doing.
    """
    assert "worker (jobs.py:41)" == _role(_STEP, _WORKER, *_BOOTSTRAP)
    assert "worker (jobs.py:41)" == _role(*[_STEP] * 20, _WORKER, *_BOOTSTRAP)
    assert "worker (jobs.py:41)" == _role(_STEP, _WORKER)
    assert "worker (jobs.py:41)" == _role(UNKNOWN_FRAME, _WORKER, *_BOOTSTRAP)


def test_role_of_a_stack_without_its_inner_end() -> None:
    """
    What a thread runs for its life stands at the other end.
    """
    assert "worker (jobs.py:41)" == _role(_WORKER, *_BOOTSTRAP, state=StackState.TORN)


@pytest.mark.parametrize(
    "outermost",
    [
        _PROGRAM,
        Frame("_run_module_as_main", "<frozen runpy>", 173, 198),
        Frame("_run_module_as_main", "/usr/lib/python3.9/runpy.py", 170, 197),
        Frame("_shutdown", _THREADING, 1520, 1566),
    ],
    ids=["script", "module", "module before 3.11", "ending"],
)
def test_main_thread(outermost: Frame) -> None:
    """
    It begins in the program's module, or in what runs it as one, and ends in wait for the others.
    """
    assert "MainThread" == _role(_STEP, outermost)


def test_other_file_called_runpy() -> None:
    """
    A thread that begins in somebody's own file of that name is not the main one.
    """
    assert "serve (runpy.py:3)" == _role(Frame("serve", "/srv/app/runpy.py", 3, 4))


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        (Stack((_STEP, _WORKER), StackState.CUT), "deeper than what is noted"),
        (Stack((), StackState.NO_PYTHON), "no Python code"),
        (Stack((_STEP, UNKNOWN_FRAME)), "unknown"),
        (Stack((_STEP, UNKNOWN_FRAME, *_BOOTSTRAP)), "unknown"),
        (UNKNOWN_STACK, "unknown"),
    ],
)
def test_role_that_cannot_be_told(stack: Stack, words: str) -> None:
    """
    Without a known outermost frame there is no role, and the words say why.
    """
    assert words == role_of(stack)


def test_thread_that_is_in_threading() -> None:
    """
    It is known by its `run`, and before that it is only just starting.
    """
    timer = Frame("Timer.run", _THREADING, 1386, 1389)
    wait = Frame("Event.wait", _THREADING, 604, 622)

    assert "Timer.run (threading.py:1386)" == _role(wait, timer, *_BOOTSTRAP[1:])
    assert "Thread.run (threading.py:971)" == _role(*_BOOTSTRAP)
    assert "starting" == _role(*_BOOTSTRAP[1:])
