"""Writes each stack and each frame once: thousands of edges share a few hundred of them."""

from typing import Any

from gilscope.model.stack import Frame, Stack

__all__ = ["StackTable"]


class StackTable:
    """Numbers stacks and frames in the order in which they come."""

    def __init__(self) -> None:
        self._stacks: dict[Stack, int] = {}
        self._frames: dict[Frame, int] = {}

    def number(self, stack: Stack) -> int:
        """Return the number by which *stack* is known from now on."""
        if stack not in self._stacks:
            self._stacks[stack] = len(self._stacks)
            for frame in stack.frames:
                self._frames.setdefault(frame, len(self._frames))
        return self._stacks[stack]

    def stacks(self) -> list[dict[str, Any]]:
        """Return the stacks by their numbers: state, and numbers of frames, innermost first."""
        return [
            {
                "state": stack.state.value,
                "frames": [self._frames[frame] for frame in stack.frames],
            }
            for stack in self._stacks
        ]

    def frames(self) -> list[dict[str, Any]]:
        """Return the frames by their numbers."""
        return [
            {
                "function": frame.function,
                "file": frame.file,
                "line": frame.line,
                "first_line": frame.first_line,
            }
            for frame in self._frames
        ]
