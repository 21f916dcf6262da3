"""Tells which frames are of the application: code that those who run it can change."""

from gilscope.model.application import Application
from gilscope.model.stack import UNKNOWN_FRAME, Frame, Stack
from gilscope.naming.origins import Origin, is_made, origin_of

__all__ = ["application_frame", "is_module", "is_of_application"]

_MODULE = "<module>"
_STARTS_WORKERS = ("/multiprocessing/spawn.py", "/multiprocessing/forkserver.py")


def is_of_application(frame: Frame, application: Application) -> bool:
    """Return whether *frame* is of *application*."""
    if not application.is_said:
        return origin_of(frame) is Origin.APPLICATION and frame != UNKNOWN_FRAME
    parts = [package.replace(".", "/") for package in application.packages]
    return any(frame.file.startswith(f"{folder}/") for folder in application.folders) or any(
        f"/{part}/" in f"/{frame.file}" or f"/{frame.file}".endswith(f"/{part}.py")
        for part in parts
    )


def is_module(frame: Frame) -> bool:
    """Return whether *frame* is of a file's own code, and of no function in it."""
    return frame.function == _MODULE


def application_frame(stack: Stack, application: Application) -> Frame | None:
    """Return the innermost frame of *stack* that is of *application*, None if none is.

    The script that an installed program is started by (``bin/gunicorn``) only calls it, and is no
    more of the application than what it calls; where it is innermost, it computes itself.
    Functions that are made at run time have no file that says whose they are: their caller is told,
    unless the program itself has no file, as with ``python -c``.
    """
    own = [frame for frame in stack.frames if is_of_application(frame, application)]
    found = next((frame for frame in own if not is_made(frame)), None)
    if found is None:
        found = next(iter(own), None)
        return None if found is None or _starts_worker(found, stack) else found
    only_calls = found is not stack.frames[0] and _is_starter(found)
    return None if only_calls and not application.is_said else found


def _starts_worker(frame: Frame, stack: Stack) -> bool:
    """Return whether *frame* is the text that `multiprocessing` starts its workers by."""
    called = stack.frames.index(frame) - 1
    return called >= 0 and f"/{stack.frames[called].file}".endswith(_STARTS_WORKERS)


def _is_starter(frame: Frame) -> bool:
    *_, folder, name = ("", *frame.file.split("/"))
    return is_module(frame) and folder == "bin" and "." not in name
