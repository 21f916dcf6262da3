"""Both ends of waits of programs that run on while they are looked at: nothing impossible."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from accuracy.blame_truth import (
    Stage,
    assert_adds_up,
    known_share,
    lines_marked,
    lost_by,
    told,
)
from gilscope.model.gil import Edge
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_FRAME, Stack, StackState

pytestmark = [pytest.mark.live, pytest.mark.slow]

_BUSY = "blame_busy.py"
_INTERPRETERS = "blame_interpreters.py"
_SCENARIOS = ("convoy", "calls", "encode", "pool")

_KNOWN = {"calls": 0.9}
"""Share of the waiting time of which both ends are known, at least; 0.99 but for `calls`.

The calls of that one end within the microsecond in which they are looked at.
"""
_KNOWN_OTHERWISE = 0.99
_IMPOSSIBLE = 0.01
"""Share that may be attributed to stacks that are marked as torn and cannot be, at most."""
_MOST = 0.9

_FIRST_WITH_OWN_GILS = (3, 12)

_BOOTSTRAP = ["run", "_bootstrap_inner", "_bootstrap"]
_MODULE = "<module>"
_NAMELESS: dict[type[ast.AST], str] = {ast.GeneratorExp: "<genexpr>", ast.Lambda: "<lambda>"}


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_no_stack_is_impossible(scenario: str, stage: Stage) -> None:
    """
    Every stack is one that the program's calls can make, and nearly all are known.

    Those that changed while they were looked at are marked, and hardly ever wrong.
    """
    workload = stage.played(_BUSY)
    edges = workload.edges_of(scenario)

    assert lost_by(edges).ns > 100_000_000
    impossible_ns = 0
    for edge in edges:
        _assert_possible(edge.waiter, workload.script)
        if edge.holder.state is not StackState.TORN:
            _assert_possible(edge.holder, workload.script)
        elif not _is_possible(edge.holder, workload.script):
            impossible_ns += edge.lost.ns
    assert impossible_ns <= _IMPOSSIBLE * lost_by(edges).ns
    assert known_share(edges) >= _KNOWN.get(scenario, _KNOWN_OTHERWISE)


def test_edges_add_up_to_the_waiting_time(stage: Stage) -> None:
    """
    Of each kind, every nanosecond that was lost has a waiter and a holder, and nothing more.
    """
    for observation in stage.played(_BUSY).seen.values():
        assert_adds_up(observation)


def test_convoy_is_blamed_on_the_thread_that_computes(stage: Stage) -> None:
    """
    The thread that comes back from os.read waits in that line, behind the loop that computes.
    """
    workload = stage.played(_BUSY)
    waits, holds = (lines_marked(workload.script, f"{what} here") for what in ("waits", "holds"))
    edges = _of_waiter(workload.edges_of("convoy"), "serve", str(workload.script))
    blamed = [
        edge
        for edge in edges
        if edge.waiter.frames[0].line in waits
        and edge.holder.frames
        and edge.holder.frames[0].function == "crunch"
        and edge.holder.frames[0].line in holds
        # A wait that ends just before the interval does has another name.
        and edge.kind in (Kind.CONVOY, Kind.BLOCKING_CALL)
    ]
    in_convoy = [edge for edge in blamed if edge.kind is Kind.CONVOY]

    assert lost_by(blamed).ns >= _MOST * lost_by(edges).ns
    assert lost_by(in_convoy).ns > 100_000_000


def test_short_calls_are_blamed_on_their_thread(stage: Stage) -> None:
    """
    Whatever is seen of a stack that changes all the time, it is of the thread that had the GIL.
    """
    workload = stage.played(_BUSY)
    own = str(workload.script)
    edges = workload.edges_of("calls")
    ramblers = _of_waiter(edges, "ramble", own)
    climbers = _of_waiter(edges, "climb", own)

    # A thread is never kept by itself.
    assert not {"ramble"} & {_own_base(edge.holder, own) for edge in ramblers}
    assert not {"climb"} & {_own_base(edge.holder, own) for edge in climbers}
    for edge in edges:
        if edge.holder.state in (StackState.WHOLE, StackState.TORN):
            assert _own_base(edge.holder, own) in ("climb", "ramble", "nap", "<module>", None)
    for mine, other in ((ramblers, "climb"), (climbers, "ramble")):
        behind = [edge for edge in mine if _own_base(edge.holder, own) == other]
        # Of a loop that was caught between two calls, both times, only its callers are sure.
        told_of = [edge for edge in mine if _own_base(edge.holder, own) is not None]
        # The third thread wants the GIL too, and on a busy machine keeps it for a while.
        third = [edge for edge in mine if _own_base(edge.holder, own) == "nap"]
        others_ns = lost_by(told_of).ns - lost_by(third).ns
        assert lost_by(behind).ns >= _MOST * others_ns, told(mine)
        assert lost_by(behind).ns > 100_000_000


def test_calls_into_the_standard_library_are_told(stage: Stage) -> None:
    """
    Who waits for json.dumps is told of the functions inside it, down to the one that calls C.
    """
    workload = stage.played(_BUSY)
    edges = _of_waiter(workload.edges_of("encode"), "nap", str(workload.script))
    in_c = [
        edge
        for edge in edges
        if ["iterencode", "encode", "dumps", "encode_all"]
        == [frame.function.rpartition(".")[2] for frame in edge.holder.frames[:4]]
    ]

    assert lost_by(in_c).ns >= _MOST * lost_by(edges).ns


def test_threads_that_are_gone_have_told_where_they_waited(stage: Stage) -> None:
    """
    The waits of threads that live for two of them are told, behind the thread that computes.
    """
    workload = stage.played(_BUSY)
    own = str(workload.script)
    edges = _of_waiter(workload.edges_of("pool"), "answer", own)
    behind = [edge for edge in edges if _own_base(edge.holder, own) == "crunch"]

    assert lines_marked(workload.script, "waits here") >= {
        edge.waiter.frames[0].line for edge in edges
    }
    assert lost_by(edges).ns > 100_000_000
    assert lost_by(behind).ns >= _MOST * lost_by(edges).ns


def test_interpreters_with_their_own_gil_are_kept_apart(stage: Stage) -> None:
    """
    Who waits in an interpreter waits for a thread of that interpreter.
    """
    if stage.interpreter.minor < _FIRST_WITH_OWN_GILS:
        pytest.skip("one GIL for all before 3.12")
    workload = stage.played(_INTERPRETERS)
    duel = workload.script.with_name("blame_duel.py")
    edges = workload.observation.totals.edges
    files = [f"<duel {number}>" for number in range(3)]

    assert_adds_up(workload.observation)
    for file in files:
        own = _of_waiter(edges, "rest", file)
        behind = [edge for edge in own if _own_base(edge.holder, file) == "toil"]
        for edge in own:
            _assert_possible(edge.waiter, duel, file=file)
            _assert_possible(edge.holder, duel, file=file)
            others = {frame.file for frame in edge.holder.frames} & {*files} - {file}
            assert set() == others, edge
        assert lost_by(behind).ns >= _MOST * lost_by(own).ns
        assert lost_by(behind).ns > 100_000_000
    assert known_share(edges) >= _KNOWN_OTHERWISE, told(
        edge for edge in edges if not known_share([edge])
    )


def _of_waiter(edges: tuple[Edge, ...], function: str, file: str) -> list[Edge]:
    """Return the edges of the thread that runs *function*, where it stands in that very frame."""
    return [edge for edge in edges if _own_base(edge.waiter, file) == function]


# Where a stack may be any of those that the program can make.


def _assert_possible(stack: Stack, script: Path, *, file: str | None = None) -> None:
    """Assert that the calls in *script*, run as *file*, can make the stack.

    A frame's line has to name the function of the next inner frame. What the script calls of other
    files is not known, but that has to be innermost; and what calls the script has to be the
    beginning of a thread or of the program.
    """
    own = str(script) if file is None else file
    named, lines = _names_by_line(script), _lines_by_function(script)
    if not stack.frames:
        return
    for at, frame in enumerate(stack.frames):
        # The innermost one may not have begun.
        if frame.file == own and not (at == 0 and frame.line is None):
            assert frame.line in lines[frame.first_line, _plain(frame.function)], stack
    for inner, outer in zip(stack.frames, stack.frames[1:], strict=False):
        # Weak references call back wherever something is freed.
        is_called_back = inner.file.endswith("/_weakrefset.py")
        if outer.file == own and inner != UNKNOWN_FRAME and not is_called_back:
            assert _plain(inner.function) in named[outer.line or 0], stack
    if stack.state is not StackState.CUT:
        assert _begins_as_it_must(stack, own), stack


def _is_possible(stack: Stack, script: Path) -> bool:
    try:
        _assert_possible(stack, script)
    except AssertionError:
        return False
    return True


def _own_base(stack: Stack, file: str) -> str | None:
    """Return the outermost function of the stack that is in *file*."""
    own = [frame.function for frame in stack.frames if frame.file == file]
    return own[-1] if own else None


def _begins_as_it_must(stack: Stack, own: str) -> bool:
    is_own = [frame.file == own for frame in stack.frames]
    functions = [_plain(frame.function) for frame in stack.frames]
    if functions[-1] == _MODULE:
        return True
    if True not in is_own or stack.frames[0].file.endswith("/_weakrefset.py"):
        return functions[-1] == _BOOTSTRAP[-1]
    called, calling = is_own.index(True), len(is_own) - is_own[::-1].index(True)
    return all(is_own[called:calling]) and functions[calling:] == _BOOTSTRAP


@cache
def _lines_by_function(script: Path) -> Mapping[tuple[int, str], range]:
    """Return the lines of each function, by its first line and its plain name."""
    found: dict[tuple[int, str], range] = {}
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.FunctionDef | ast.GeneratorExp | ast.Lambda):
            name = node.name if isinstance(node, ast.FunctionDef) else _NAMELESS[type(node)]
            found[node.lineno, name] = range(node.lineno, (node.end_lineno or 0) + 1)
    # The first line of a module differs between versions.
    lines = range(len(script.read_text().splitlines()) + 1)
    return found | {(first, _MODULE): lines for first in lines}


@cache
def _names_by_line(script: Path) -> Mapping[int, set[str]]:
    """Return the functions that the code in each line names."""
    tree = ast.parse(script.read_text())
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    names: dict[int, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names[node.lineno].add("__init__" if node.id in classes else node.id)
        elif isinstance(node, ast.Attribute):
            names[node.end_lineno or 0].add(node.attr)
        elif isinstance(node, ast.GeneratorExp):
            names[node.lineno].add("<genexpr>")
        elif isinstance(node, ast.Call):
            names[node.lineno] |= _called_by(node)
    return names


def _called_by(node: ast.Call) -> set[str]:
    # Thread(...) calls __init__, whose class is none of the script's.
    return {"__init__"} if isinstance(node.func, ast.Attribute) else set()


def _plain(function: str) -> str:
    return function.rpartition(".")[2]
