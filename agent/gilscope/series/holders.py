"""Sums up by whose code the GIL was held while others waited for it."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

from gilscope.model.application import Application
from gilscope.model.gil import Edge, HeldUp, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import HoldState
from gilscope.model.stack import Frame, Stack
from gilscope.naming.application import application_frame
from gilscope.naming.hold_states import TellingState, telling_states
from gilscope.values import dataclass

__all__ = ["HolderLoss", "code_of", "losses_by_holder"]


@dataclass(frozen=True, slots=True)
class HolderLoss:
    """What threads lost waiting while the holder was in one function of the application."""

    frame: Frame | None
    """Of that function, with the line that cost the most; None: the holder's stack has no frame of
    the application, or is not known."""
    costliest: Stack
    """The holder's stack that cost the most."""
    leaves: int
    """In how many functions the holder stood, that one or what it called."""
    kind: Kind
    """Of the waits, where most was lost."""
    is_one_kind: bool
    """Whether they all are of that."""
    lost: Tally
    states: tuple[TellingState, ...] = ()
    """Why the holder kept the GIL, by samples; empty: not known."""


def losses_by_holder(
    edges: Iterable[Edge], application: Application, held_up: Iterable[HeldUp] = ()
) -> tuple[HolderLoss, ...]:
    """Return what was lost by the holder's function of *application*, the most time first.

    *held_up* is the same by states. Where no frame is of the application, that is one entry for
    libraries alone, and one for each reason why a stack has no frames.
    """
    groups: dict[Hashable, list[tuple[Edge, Frame | None]]] = {}
    for edge in edges:
        frame = application_frame(edge.holder, application)
        groups.setdefault(code_of(edge.holder, frame), []).append((edge, frame))
    states = _states_by_code(held_up, application)
    losses = [_loss(group, states.get(code, ())) for code, group in groups.items()]
    return tuple(sorted(losses, key=lambda loss: -loss.lost.ns))


def code_of(stack: Stack, frame: Frame | None) -> Hashable:
    """Return what the stacks of one function of the application have in common.

    *frame* is the innermost one of *stack* that is of the application, or None.
    """
    if frame is not None:
        return _function(frame)
    return None if stack.frames else stack.state


def _states_by_code(
    held_up: Iterable[HeldUp], application: Application
) -> dict[Hashable, tuple[TellingState, ...]]:
    by_code: dict[Hashable, list[tuple[HoldState, int]]] = defaultdict(list)
    for each in held_up:
        code = code_of(each.holder, application_frame(each.holder, application))
        by_code[code].append((each.state, each.ns))
    return {code: telling_states(parts) for code, parts in by_code.items()}


def _loss(group: list[tuple[Edge, Frame | None]], states: tuple[TellingState, ...]) -> HolderLoss:
    by_line: Counter[Frame | None] = Counter()
    by_stack: Counter[Stack] = Counter()
    by_kind: Counter[Kind] = Counter()
    for edge, frame in group:
        by_line[frame] += edge.lost.ns
        by_stack[edge.holder] += edge.lost.ns
        by_kind[edge.kind] += edge.lost.ns
    return HolderLoss(
        frame=max(by_line, key=by_line.__getitem__),
        costliest=max(by_stack, key=by_stack.__getitem__),
        leaves=len({_function(stack.frames[0]) for stack in by_stack if stack.frames}),
        kind=max(by_kind, key=by_kind.__getitem__),
        is_one_kind=len(by_kind) == 1,
        lost=sum((edge.lost for edge, _ in group), start=Tally()),
        states=states,
    )


def _function(frame: Frame) -> tuple[str, str, int]:
    return frame.function, frame.file, frame.first_line
