"""Whose code a frame is, and which of a stack can be changed."""

import pytest

from gilscope.model.application import Application
from gilscope.model.stack import UNKNOWN_FRAME, Frame, Stack, StackState
from gilscope.naming.application import application_frame, is_of_application

_SITE = "/srv/venv/lib/python3.12/site-packages"
_LOCAL = Frame("Local.__getattr__", f"{_SITE}/asgiref/local.py", 130, 143)
_RENDER = Frame("Template.render", f"{_SITE}/django/template/base.py", 160, 171)
_PAGE = Frame("page", "/srv/shop/views.py", 9, 12)
_HANDLER = Frame("BaseHandler.get", f"{_SITE}/django/core/handlers/base.py", 100, 197)
_STARTER = Frame("<module>", "/srv/venv/bin/gunicorn", 1, 8)
_RUN = Frame("Thread.run", "/usr/lib/python3.12/threading.py", 1000, 1010)


def _found(*frames: Frame, application: Application | None = None) -> Frame | None:
    return application_frame(Stack(frames), application or Application())


def test_the_innermost_frame_that_is_nobody_elses() -> None:
    """
    Below a view are frames of the framework, and above it as well.
    """
    assert _PAGE == _found(_LOCAL, _RENDER, _PAGE, _HANDLER, _RUN)


@pytest.mark.parametrize(
    "made",
    [
        Frame("<lambda>", "<string>", 1, 1),
        Frame("__create_fn__.<locals>.__init__", "<string>", 2, 3),
        Frame("root", "<template>", 10, 12),
    ],
)
def test_code_that_is_made_at_run_time_is_its_callers(made: Frame) -> None:
    """
    Nobody can change a line of it.
    """
    assert _PAGE == _found(made, _LOCAL, _PAGE, _HANDLER)


def test_code_without_a_file_that_calls_itself() -> None:
    """
    A program that was given as a text has nothing else; what a library makes is not its own.
    """
    crunch = Frame("crunch", "<string>", 3, 4)
    cell = Frame("crunch", "<ipython-input-3-1234>", 1, 2)

    assert crunch == _found(_LOCAL, crunch, Frame("<module>", "<string>", 1, 9))
    assert cell == _found(cell, crunch)
    assert _found(Frame("<lambda>", "<string>", 1, 1), _LOCAL, _HANDLER) is None


def test_a_worker_of_multiprocessing_has_no_text_of_its_own() -> None:
    """
    What it is started by is Python's.
    """
    library = "/usr/lib/python3.12/multiprocessing/spawn.py"
    text = Frame("<module>", "<string>", 1, 1)

    assert _found(_LOCAL, Frame("spawn_main", library, 100, 122), text) is None
    assert text == _found(_LOCAL, text)


def test_a_stack_of_libraries_has_none() -> None:
    """
    Nor has one without frames, or one whose code has gone.
    """
    assert _found(_LOCAL, _HANDLER, _RUN) is None
    assert application_frame(Stack((), StackState.NO_PYTHON), Application()) is None
    assert _found(UNKNOWN_FRAME, _HANDLER) is None


def test_a_script_that_starts_an_installed_program_is_of_no_application() -> None:
    """
    Unless it computes itself, or has a function that does.
    """
    function = Frame("crunch", "/srv/venv/bin/tool", 4, 6)

    assert _found(_LOCAL, _HANDLER, _STARTER) is None
    assert _STARTER == _found(_STARTER)
    assert function == _found(_LOCAL, function, Frame("<module>", "/srv/venv/bin/tool", 1, 9))


@pytest.mark.parametrize(
    ("file", "is_own"),
    [
        ("/srv/shop/views.py", True),
        ("app.zip/shop/views.py", True),
        ("<string>", True),
        ("/tmp/ipykernel_47/1234.py", True),
        ("<frozen importlib._bootstrap>", False),
        ("/usr/lib/python3.12/json/encoder.py", False),
        (f"{_SITE}/shop/views.py", False),
    ],
)
def test_what_neither_came_with_python_nor_was_installed(file: str, *, is_own: bool) -> None:
    """
    Modules in archives, code in strings and cells of notebooks are the application's.
    """
    assert is_own is is_of_application(Frame("page", file, 1, 2), Application())


@pytest.mark.parametrize(
    "application",
    [
        Application(folders=(f"{_SITE}/django/template",)),
        Application(packages=("django.template",)),
        Application(packages=("nothing", "django.template.base")),
    ],
)
def test_the_user_can_say_what_is_the_applications(application: Application) -> None:
    """
    Then nothing else is.
    """
    assert _RENDER == _found(_LOCAL, _RENDER, _PAGE, _HANDLER, application=application)
    assert not is_of_application(_PAGE, application)


def test_a_folder_is_no_beginning_of_a_name() -> None:
    """
    Nor is a package.
    """
    frame = Frame("page", "/srv/shopping/views.py", 1, 2)

    assert not is_of_application(frame, Application(folders=("/srv/shop",)))
    assert not is_of_application(frame, Application(packages=("shop",)))
