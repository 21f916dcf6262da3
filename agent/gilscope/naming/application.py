"""Tells which frames are of the application: code that those who run it can change."""

from gilscope.model.application import Application
from gilscope.model.stack import UNKNOWN_FRAME, Frame, Stack
from gilscope.naming.origins import Origin, origin_of

__all__ = ["application_frame", "is_of_application"]

_MODULE = "<module>"


def is_of_application(frame: Frame, application: Application) -> bool:
    """Return whether *frame* is of *application*."""
    if not application.is_said:
        return origin_of(frame) is Origin.APPLICATION and frame != UNKNOWN_FRAME
    parts = [package.replace(".", "/") for package in application.packages]
    return any(frame.file.startswith(f"{folder}/") for folder in application.folders) or any(
        f"/{part}/" in f"/{frame.file}" or f"/{frame.file}".endswith(f"/{part}.py")
        for part in parts
    )


def application_frame(stack: Stack, application: Application) -> Frame | None:
    """Return the innermost frame of *stack* that is of *application*, None if none is.

    The script that an installed program is started by (``bin/gunicorn``) only calls it, and is no
    more of the application than what it calls; where it is innermost, it computes itself.
    """
    for frame in stack.frames:
        if is_of_application(frame, application):
            only_calls = frame is not stack.frames[0] and _is_starter(frame)
            return None if only_calls and not application.is_said else frame
    return None


def _is_starter(frame: Frame) -> bool:
    *_, folder, name = ("", *frame.file.split("/"))
    return frame.function == _MODULE and folder == "bin" and "." not in name
