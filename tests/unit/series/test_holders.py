"""By whose code the GIL was held while others waited."""

from gilscope.model.application import Application
from gilscope.model.gil import Edge, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack, StackState
from gilscope.series.holders import losses_by_holder
from support.recordings.gil import MS, SERVING

_SITE = "/srv/venv/lib/python3.12/site-packages"
_LOCAL = Frame("Local.__getattr__", f"{_SITE}/asgiref/local.py", 130, 143)
_RENDER = Frame("Template.render", f"{_SITE}/django/template/base.py", 160, 171)
_PAGE = Frame("page", "/srv/shop/views.py", 9, 12)
_OTHER_LINE = Frame("page", "/srv/shop/views.py", 9, 14)
_WRITE = Frame("write", "/srv/shop/log.py", 3, 4)


def _edge(kind: Kind, holder: Stack, ms: int, count: int = 1) -> Edge:
    return Edge(kind, SERVING, holder, Tally(ms * MS, count))


def test_losses_of_a_function_are_added_up_over_what_it_called() -> None:
    """
    Its line is the one that cost the most, and so is the stack below it.
    """
    costliest = Stack((_RENDER, _PAGE))
    edges = [
        _edge(Kind.PREEMPTION, Stack((_LOCAL, _RENDER, _PAGE)), 30, 2),
        _edge(Kind.CONVOY, costliest, 40, 3),
        _edge(Kind.CONVOY, Stack((_LOCAL, _OTHER_LINE)), 45),
        _edge(Kind.CONVOY, Stack((_WRITE,)), 20),
    ]

    page, write = losses_by_holder(edges, Application())

    assert (_PAGE, Tally(115 * MS, 6)) == (page.frame, page.lost)
    assert (Stack((_LOCAL, _OTHER_LINE)), 2) == (page.costliest, page.leaves)
    assert (Kind.CONVOY, False) == (page.kind, page.is_one_kind)
    assert (_WRITE, Tally(20 * MS, 1), 1, True) == (
        write.frame,
        write.lost,
        write.leaves,
        write.is_one_kind,
    )


def test_libraries_alone_are_one_entry() -> None:
    """
    And so is each reason why nothing is known; nothing of what was lost is missing.
    """
    no_python = Stack((), StackState.NO_PYTHON)
    edges = [
        _edge(Kind.CONVOY, Stack((_LOCAL,)), 10),
        _edge(Kind.CONVOY, Stack((_RENDER,)), 20),
        _edge(Kind.CONVOY, UNKNOWN_STACK, 4),
        _edge(Kind.PREEMPTION, no_python, 5),
    ]

    losses = losses_by_holder(edges, Application())

    assert [(None, 30), (None, 5), (None, 4)] == [
        (loss.frame, loss.lost.ns // MS) for loss in losses
    ]
    assert [Stack((_RENDER,)), no_python, UNKNOWN_STACK] == [loss.costliest for loss in losses]


def test_nothing_was_lost() -> None:
    """
    Then there is nobody.
    """
    assert () == losses_by_holder([], Application())
