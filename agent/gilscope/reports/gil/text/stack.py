"""One end of a wait in the text report: where a thread stood."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from gilscope.model.application import Application
from gilscope.model.stack import Frame, Stack, StackState
from gilscope.naming.application import is_of_application
from gilscope.naming.bootstrap import is_threading
from gilscope.naming.places import IN_WORDS
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable

__all__ = ["Named", "stack_lines"]

_MOST_CALLERS = 3
_MOST_LINES = 5


class Named(Protocol):
    """What a recording knows of the code in which its threads stood."""

    @property
    def application(self) -> Application:
        """Which of it is the application's."""

    @property
    def sources(self) -> Mapping[tuple[str, int], str]:
        """Lines of source code by file and line."""


def stack_lines(
    stack: Stack,
    recording: Named,
    paint: Paint,
    others: Iterable[Stack] = (),
) -> Iterator[str]:
    """Yield the innermost frame of *stack* with its source line, and the calls that led to it.

    Lines of the same function in which *others* stood are listed.
    """
    if not stack.frames:
        yield f"({IN_WORDS[stack.state]})"
        return
    if stack.state is StackState.TORN:
        yield paint.dim(f"({IN_WORDS[StackState.TORN]})")
    frame = stack.frames[0]
    yield _frame_line(frame)
    if frame.line is None:
        yield paint.dim("    (which of its lines is not known)")
    elif (frame.file, frame.line) in recording.sources:
        yield f"    {printable(recording.sources[frame.file, frame.line])}"
    yield from _other_lines(frame, others, paint)
    yield from _callers(stack, recording.application, paint)


def _frame_line(frame: Frame) -> str:
    line = frame.first_line if frame.line is None else frame.line
    return f'File "{printable(frame.file)}", line {line}, in {printable(frame.function)}'


def _other_lines(frame: Frame, others: Iterable[Stack], paint: Paint) -> Iterator[str]:
    lines = {other.frames[0].line for other in others if other.frames} - {frame.line, None}
    if not lines:
        return
    numbers = sorted(line for line in lines if line is not None)
    words = ", ".join(str(number) for number in numbers[:_MOST_LINES])
    more = len(numbers) - _MOST_LINES
    yield paint.dim(
        f"  also at line{'s' if len(numbers) > 1 else ''} {words}"
        + (f" and {more} more" if more > 0 else "")
    )


def _callers(stack: Stack, application: Application, paint: Paint) -> Iterator[str]:
    callers = [frame for frame in stack.frames[1:] if not is_threading(frame)]
    is_cut = stack.state is StackState.CUT
    # Those next to the place say what it is about, the outermost one which thread it is; those of
    # the application are what can be changed.
    nearest = _MOST_CALLERS if is_cut else _MOST_CALLERS - 1
    last = len(callers) if is_cut else len(callers) - 1
    left_out, before = 0, stack.frames[0]
    for number, frame in enumerate(callers):
        is_shown = number < nearest or number >= last or len(callers) <= _MOST_CALLERS
        # A function that calls itself says nothing new.
        is_repeated = (frame.function, frame.file) == (before.function, before.file)
        if not is_shown and (is_repeated or not is_of_application(frame, application)):
            left_out += 1
            continue
        yield from _more_calls(left_out, paint)
        left_out, before = 0, frame
        yield paint.dim(f"  called from {_frame_line(frame)}")
    yield from _more_calls(left_out, paint)
    if is_cut:
        yield paint.dim(f"  ({IN_WORDS[StackState.CUT]})")


def _more_calls(count: int, paint: Paint) -> Iterator[str]:
    if count:
        yield paint.dim(f"  … {count} more call{'s' if count > 1 else ''}")
