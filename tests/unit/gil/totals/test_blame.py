"""Says by name who kept whom waiting: what is shown of edges, and that it never runs back."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gilscope.gil.totals import blame as blame_module
from gilscope.gil.totals.blame import Blame
from gilscope.gil.totals.raw import RawEdge, RawProcess, RawStack, Taken, Unanswered, Waiting
from gilscope.model.gil import Edge, SlowDrop, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack, StackState
from gilscope.runtimes.cpython.code.code_objects import CodeReader, code_pointers
from gilscope.text.printable import LONGEST_LABEL
from support.gil.python_in_memory import PythonInMemory

_PID, _TID = 4711, 4712
_MS = 1_000_000
_NOW_NS = 1_000 * _MS
_INTERVAL_NS = 5 * _MS
_SERVING, _CRUNCHING, _REPLYING = (1 << 63) + 1, (1 << 63) + 2, (1 << 63) + 3
_NOBODY, _UNKNOWN, _NO_PYTHON, _UNSAMPLED = 0, 1, 2, 3
_CALL, _YIELD, _CONVOY = 0, 1, 3
# All instructions are on the first line. Of a shorter table the identity would not be all.
_LINE_TABLE = bytes([0x80 | 10 << 3 | 7, 0, 0, 0x80 | 10 << 3 | 1, 0, 0]) * 3
_INSTRUCTIONS = 30

_SERVE = Frame("serve", "/srv/app.py", 8, 8)
_CRUNCH = Frame("crunch", "/srv/app.py", 2, 2)
_REPLY = Frame("reply", "/srv/app.py", 30, 30)
_NAMES = {
    _SERVING: Stack((_SERVE, _REPLY)),
    _CRUNCHING: Stack((_CRUNCH,)),
    _REPLYING: Stack((_REPLY,)),
}


def _identity(python: PythonInMemory, code: int) -> int:
    """Return what the probes know a code object by whose name nobody has hashed."""
    offset, size = code_pointers(python.layout)
    pointers = python.read(code + offset, size).ljust(32, b"\0")
    identity = 0
    for (word,) in struct.iter_unpack("<Q", pointers + _LINE_TABLE[:16]):
        identity = _mixed(identity, word)
    return _mixed(identity, 0xFFFFFFFF) & 0xFFFFFFFF


def _mixed(value: int, added: int) -> int:
    value = (value ^ added) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
    return value ^ value >> 32


class _Process:
    """A process whose stacks the probes have sent, as far as a test wants that."""

    def __init__(self) -> None:
        self.python = PythonInMemory()
        self._codes: dict[Frame, int] = {}

    def raw(self, stack_id: int, state: int = 0) -> RawStack:
        """Return the stack of that number as the probes send it."""
        codes = [self.code(frame) for frame in _NAMES[stack_id].frames]
        first = self.python.layout.code_bytecode
        identities = [_identity(self.python, code) for code in codes]
        return RawStack(
            _PID, stack_id, state, tuple((code, first) for code in codes), tuple(identities)
        )

    def code(self, frame: Frame) -> int:
        """Return the address of the code object that *frame* runs."""
        if frame not in self._codes:
            code = self._codes[frame] = self.python.code(
                frame.function,
                frame.file,
                frame.first_line,
                line_table=_LINE_TABLE,
                instructions=_INSTRUCTIONS,
            )
            name = self.python.text(frame.function)
            # Behind the file's.
            self.python.put_int(code + self.python.layout.code_file + 8, name)
        return self._codes[frame]

    def blame(self, *known: int, keep_callers: bool = True) -> Blame:
        """Return the blame of this process, with stacks that were sent before."""
        blame = Blame(CodeReader(self.python.runtime), keep_callers=keep_callers)
        for stack_id in known or _NAMES:
            blame.learn(self.raw(stack_id))
        return blame


@pytest.fixture
def process() -> _Process:
    """A process with its code, and no waits yet."""
    return _Process()


def _edges(edges: Mapping[tuple[int, int, int], tuple[int, int]]) -> RawProcess:
    return RawProcess(edges={key: RawEdge(ns, count) for key, (ns, count) in edges.items()})


def _waiting(cause: int, since_ns: int, waiting: Waiting, **fields: Any) -> RawProcess:
    record = dict.fromkeys(("yield_started_ns", "forced_drop_ns"), 0)
    thread = {**record, "wait_started_ns": since_ns, "cause": cause, "interval_ns": _INTERVAL_NS}
    return RawProcess(threads={_TID: {**thread, **fields}}, waiting={_TID: waiting})


def _shown(blame: Blame, raw: RawProcess, *, is_final: bool = False) -> Sequence[Edge]:
    return blame.edges(raw, _NOW_NS, is_final=is_final)


def test_edges_have_names_and_the_costliest_comes_first(process: _Process) -> None:
    """
    Both ends are named, and time and number are those that the probes have counted.
    """
    raw = _edges({(_CALL, _SERVING, _CRUNCHING): (3, 1), (_CONVOY, _REPLYING, _SERVING): (7, 2)})

    assert (
        Edge(Kind.CONVOY, _NAMES[_REPLYING], _NAMES[_SERVING], Tally(7, 2)),
        Edge(Kind.BLOCKING_CALL, _NAMES[_SERVING], _NAMES[_CRUNCHING], Tally(3, 1)),
    ) == _shown(process.blame(), raw)


def test_stacks_without_names_keep_their_time(process: _Process) -> None:
    """
    What is not known is shown as that, and a thread without Python code as such.
    """
    raw = _edges({(_CALL, _UNKNOWN, _NO_PYTHON): (5, 1)})
    no_python = Stack((), StackState.NO_PYTHON)

    assert (Edge(Kind.BLOCKING_CALL, UNKNOWN_STACK, no_python, Tally(5, 1)),) == _shown(
        process.blame(), raw
    )


@pytest.mark.parametrize(
    ("number", "state"), [(0, StackState.WHOLE), (1, StackState.CUT), (2, StackState.TORN)]
)
def test_how_much_was_seen_is_kept(process: _Process, number: int, state: StackState) -> None:
    """
    A stack that is cut off or torn is not the same as one that is whole.
    """
    blame = process.blame(_CRUNCHING)
    blame.learn(process.raw(_SERVING, number))

    assert Stack((_SERVE, _REPLY), state) == blame.stack(_SERVING)


def test_without_callers_the_innermost_frame_tells_stacks_apart(process: _Process) -> None:
    """
    Two stacks with the same innermost frame are one, and their times add up.
    """
    blame = process.blame(_SERVING, _REPLYING, keep_callers=False)
    process_of_two = _edges(
        {(_CALL, _SERVING, _SERVING): (3, 1), (_CALL, _REPLYING, _SERVING): (4, 1)}
    )
    waiters = {edge.waiter: edge.lost for edge in _shown(blame, process_of_two)}

    assert {Stack((_SERVE,)): Tally(3, 1), Stack((_REPLY,)): Tally(4, 1)} == waiters
    assert Stack((_SERVE,)) == blame.stack(_SERVING)


def test_without_callers_the_applications_frame_is_kept(
    process: _Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Of a stack that ends in libraries it says who called them, whatever stands between.
    """
    encode = Frame("encode", "/usr/lib/python3.11/json/encoder.py", 2, 2)
    dumps = Frame("dumps", "/usr/lib/python3.11/json/__init__.py", 5, 5)
    whole = Stack((encode, dumps, _SERVE, _REPLY))
    monkeypatch.setitem(_NAMES, _SERVING, whole)
    monkeypatch.setitem(_NAMES, _REPLYING, Stack((encode, dumps)))

    kept = process.blame()
    ends = process.blame(keep_callers=False)

    assert whole == kept.stack(_SERVING)
    assert [Stack((encode, _SERVE)), Stack((encode,)), Stack((_CRUNCH,))] == [
        ends.stack(each) for each in (_SERVING, _REPLYING, _CRUNCHING)
    ]


def test_code_that_has_gone_is_not_named(process: _Process) -> None:
    """
    A stack whose code object's memory has another one by the time that it is read is unknown.
    """
    raw = process.raw(_CRUNCHING)
    blame = process.blame(_SERVING)
    code = process.code(_CRUNCH)
    process.python.put_int(
        code + process.python.layout.code_name, process.python.text("somebody_else")
    )
    blame.learn(raw)

    assert UNKNOWN_STACK == blame.stack(_CRUNCHING)


def test_long_wait_that_goes_on_is_put_down_to_all_who_had_it(process: _Process) -> None:
    """
    Of a wait in flight each holder has its part, the present one up to now, and no number yet.
    """
    since_ns = _NOW_NS - 30 * _MS
    slices = ((_CRUNCHING, RawEdge(20 * _MS, 1)),)
    waiting = Waiting(_SERVING, _REPLYING, _NOW_NS - 10 * _MS, slices)
    shown = _shown(process.blame(), _waiting(_CALL, since_ns, waiting))

    assert [
        (Kind.CONVOY, _NAMES[_CRUNCHING], Tally(20 * _MS, 1)),
        (Kind.CONVOY, _NAMES[_REPLYING], Tally(10 * _MS, 0)),
    ] == [(edge.kind, edge.holder, edge.lost) for edge in shown]


def test_short_wait_that_goes_on_counts_at_the_end_only(process: _Process) -> None:
    """
    As long as it may become a convoy wait, nobody can tell to which kind its time belongs.
    """
    raw = _waiting(_CALL, _NOW_NS - _MS, Waiting(_SERVING, _CRUNCHING, _NOW_NS - _MS, ()))
    blame = process.blame()

    assert () == _shown(blame, raw)
    assert [(Kind.BLOCKING_CALL, Tally(_MS, 0))] == [
        (edge.kind, edge.lost) for edge in _shown(blame, raw, is_final=True)
    ]


@pytest.mark.parametrize(
    ("waiter", "holder"), [(_SERVING, _NOBODY), (_NOBODY, _NOBODY)], ids=["holder", "both"]
)
def test_wait_whose_ends_nobody_has_looked_at(process: _Process, waiter: int, holder: int) -> None:
    """
    It is shown when they are known: time that was attributed to nobody would be there twice.
    """
    since_ns = _NOW_NS - 10 * _MS
    blame = process.blame()
    before = _shown(blame, _waiting(_YIELD, since_ns, Waiting(waiter, holder, since_ns, ())))
    after = _shown(blame, _edges({(_YIELD, _SERVING, _CRUNCHING): (12 * _MS, 1)}))

    assert () == before
    assert (
        Edge(Kind.PREEMPTION, _NAMES[_SERVING], _NAMES[_CRUNCHING], Tally(12 * _MS, 1)),
    ) == after


def test_wait_whose_holder_nobody_will_look_at(process: _Process) -> None:
    """
    At the end its time is attributed to an unknown holder, so that edges add up to waits.
    """
    since_ns = _NOW_NS - 10 * _MS
    raw = _waiting(_YIELD, since_ns, Waiting(_SERVING, _NOBODY, since_ns, ()))

    assert (Edge(Kind.PREEMPTION, _NAMES[_SERVING], UNKNOWN_STACK, Tally(10 * _MS, 0)),) == _shown(
        process.blame(), raw, is_final=True
    )


@pytest.mark.parametrize("later", [(4 * _MS, 1), (4 * _MS, 3), (11 * _MS, 0)])
def test_no_figure_runs_back(process: _Process, later: tuple[int, int]) -> None:
    """
    Neither time nor number of a pair ever falls, whatever has been read of it.
    """
    blame = process.blame()
    pair = (_CONVOY, _SERVING, _CRUNCHING)
    (before,) = _shown(blame, _edges({pair: (10 * _MS, 1)}))
    (after,) = _shown(blame, _edges({pair: later}))
    ns, count = later

    assert Tally(10 * _MS, 1) == before.lost
    assert Tally(max(10 * _MS, ns), max(1, count)) == after.lost


def test_edge_that_is_not_read_this_time_stays(process: _Process) -> None:
    """
    A pair that has been shown is shown again.
    """
    blame = process.blame()
    shown = _shown(blame, _edges({(_CALL, _SERVING, _CRUNCHING): (10, 1)}))

    assert 1 == len(shown)
    assert shown == _shown(blame, RawProcess())


def test_stack_that_has_not_been_sent_yet(process: _Process) -> None:
    """
    Its time is held back until it has a name, for it must not move from one name to another.
    """
    blame = process.blame(_SERVING)
    raw = _edges({(_CALL, _SERVING, _CRUNCHING): (10, 1)})
    before = _shown(blame, raw)
    blame.learn(process.raw(_CRUNCHING))

    assert () == before
    assert [(_NAMES[_CRUNCHING], Tally(10, 1))] == [
        (edge.holder, edge.lost) for edge in _shown(blame, raw)
    ]


def test_stack_that_will_not_be_sent_any_more(process: _Process) -> None:
    """
    At the end its time is attributed to an unknown stack.
    """
    raw = _edges({(_CALL, _SERVING, _CRUNCHING): (10, 1)})
    (edge,) = _shown(process.blame(_SERVING), raw, is_final=True)

    assert (UNKNOWN_STACK, Tally(10, 1)) == (edge.holder, edge.lost)


def test_what_has_left_the_tables_is_kept(process: _Process) -> None:
    """
    Time that was taken over adds to what the tables have now, and so do requests to let go.
    """
    blame = process.blame()
    pair = (_CALL, _SERVING, _CRUNCHING)
    taken = Taken(edges={pair: RawEdge(10, 1)}, slow_drops={_CRUNCHING: RawEdge(30, 1, 30)})
    blame.keep(taken)
    blame.keep(taken)
    raw = RawProcess(edges={pair: RawEdge(5, 1)}, slow_drops={_CRUNCHING: RawEdge(40, 1, 40)})

    assert 20 == blame.kept_ns
    assert [Tally(25, 3)] == [edge.lost for edge in _shown(blame, raw)]
    assert (SlowDrop(_NAMES[_CRUNCHING], Tally(100, 3), 40),) == blame.slow_drops(
        raw, _NOW_NS, is_final=True
    )


def test_stacks_without_time_make_room(process: _Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    When many are known, those are forgotten that nothing in the tables needs; names are kept.
    """
    monkeypatch.setattr(blame_module, "_MOST_STACKS", 4)
    blame = process.blame()
    blame.keep(Taken(edges={(_CALL, _REPLYING, _REPLYING): RawEdge(9, 1)}))
    raw = _edges({(_CALL, _SERVING, _CRUNCHING): (10, 1)})
    surplus = blame.surplus(raw)
    shown = _shown(blame, raw)
    blame.learn(process.raw(_REPLYING))

    assert {_REPLYING} == surplus
    assert set() == blame.surplus(_edges({})) & {_NO_PYTHON, _UNKNOWN}
    assert [_NAMES[_SERVING], _NAMES[_REPLYING]] == [edge.waiter for edge in shown]


def test_of_further_pairs_the_holder_is_known(
    process: _Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    When there are as many pairs as are kept, it is told whose code it was, and not whom it kept.
    """
    monkeypatch.setattr(blame_module, "_MOST_PAIRS", 1)
    blame = process.blame()
    known = {(_CALL, _SERVING, _CRUNCHING): (10, 1)}
    _shown(blame, _edges(known))
    more = {(_CALL, _REPLYING, _CRUNCHING): (4, 1), (_CALL, _REPLYING, _SERVING): (5, 1)}
    shown = _shown(blame, _edges({**known, **more}))

    assert {
        (_NAMES[_SERVING], _NAMES[_CRUNCHING], Tally(10, 1)),
        (UNKNOWN_STACK, _NAMES[_CRUNCHING], Tally(4, 1)),
        (UNKNOWN_STACK, _NAMES[_SERVING], Tally(5, 1)),
    } == {(edge.waiter, edge.holder, edge.lost) for edge in shown}


def test_further_holders_are_put_down_to_unknown_stacks(
    process: _Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    When there are as many of those as are kept too, the time is kept without any name.
    """
    monkeypatch.setattr(blame_module, "_MOST_PAIRS", 1)
    monkeypatch.setattr(blame_module, "_MOST_HOLDERS", 0)
    blame = process.blame()
    known = {(_CALL, _SERVING, _CRUNCHING): (10, 1)}
    _shown(blame, _edges(known))
    more = {(_CALL, _REPLYING, _CRUNCHING): (4, 1), (_CALL, _REPLYING, _SERVING): (5, 1)}
    shown = _shown(blame, _edges({**known, **more}))

    assert {Tally(10, 1): _NAMES[_SERVING], Tally(9, 2): UNKNOWN_STACK} == {
        edge.lost: edge.waiter for edge in shown
    }


def test_waits_left_out_are_shared_out_where_pairs_are_too_many(
    process: _Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Whose stacks were not read is shared out as ever, though no further pair has a place.
    """
    monkeypatch.setattr(blame_module, "_MOST_PAIRS", 1)
    blame = process.blame()
    _shown(blame, _edges({(_CALL, _SERVING, _CRUNCHING): (10, 1)}))
    more = {(_CALL, _SERVING, _CRUNCHING): (14, 2), (_CALL, _UNSAMPLED, _UNSAMPLED): (6, 3)}
    shown = _shown(blame, _edges(more))

    assert [(_NAMES[_SERVING], _NAMES[_CRUNCHING], Tally(20, 5))] == [
        (edge.waiter, edge.holder, edge.lost) for edge in shown
    ]


def test_further_stacks_are_unknown(process: _Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A program that makes ever new functions takes no more memory; what is known stays known.
    """
    # Those of unknown and absent stacks are there from the start.
    monkeypatch.setattr(blame_module, "_MOST_PLACES", 2 + 1)
    blame = process.blame(_SERVING, _CRUNCHING, _SERVING)

    assert [_NAMES[_SERVING], UNKNOWN_STACK] == [
        blame.stack(_SERVING),
        blame.stack(_CRUNCHING),
    ]


def test_long_names_are_kept_as_labels_where_they_are_kept_for_good(process: _Process) -> None:
    """
    Whoever records has them whole, to find the source by; whoever serves has what is exported.
    """
    code = process.python.code("f" * 4000, f"/{'d' * 4000}/app.py", 8, line_table=_LINE_TABLE)
    name = process.python.text("f" * 4000)
    process.python.put_int(code + process.python.layout.code_file + 8, name)
    first = process.python.layout.code_bytecode
    raw = RawStack(_PID, _SERVING, 0, ((code, first),), (_identity(process.python, code),))
    recording, serving = (
        Blame(CodeReader(process.python.runtime), keep_callers=keeps_all)
        for keeps_all in (True, False)
    )
    for blame in (recording, serving):
        blame.learn(raw)

    (whole,), (short,) = (blame.stack(_SERVING).frames for blame in (recording, serving))
    assert ("f" * 4000, 4008) == (whole.function, len(whole.file))
    assert (LONGEST_LABEL, LONGEST_LABEL) == (len(short.function), len(short.file))
    assert short.file.endswith("ddd/app.py")
    assert [LONGEST_LABEL] == [len(frame.file) for frame in serving.outermost(_SERVING)]


def test_slow_drops_are_named_and_the_costliest_comes_first(process: _Process) -> None:
    """
    Who was slow to let go has the time, the number of requests and the longest of them.
    """
    raw = RawProcess(slow_drops={_SERVING: RawEdge(20, 1, 20), _CRUNCHING: RawEdge(50, 3, 30)})

    assert (
        SlowDrop(_NAMES[_CRUNCHING], Tally(50, 3), 30),
        SlowDrop(_NAMES[_SERVING], Tally(20, 1), 20),
    ) == process.blame().slow_drops(raw, _NOW_NS, is_final=True)


def test_slow_drops_of_one_place_are_one(process: _Process) -> None:
    """
    Those that nobody can name add up, and the longest is the longest of all.
    """
    raw = RawProcess(slow_drops={_UNKNOWN: RawEdge(20, 1, 20), _NOBODY: RawEdge(50, 3, 30)})

    assert (SlowDrop(UNKNOWN_STACK, Tally(70, 4), 30),) == process.blame().slow_drops(
        raw, _NOW_NS, is_final=True
    )


def test_request_in_flight_counts_up_to_now(process: _Process) -> None:
    """
    It has its place while the call goes on, and nothing falls when it has been answered.
    """
    blame = process.blame()
    waiting = RawProcess(unanswered=[Unanswered(_CRUNCHING, asked_ns=100)])
    shown = [blame.slow_drops(waiting, now_ns, is_final=False) for now_ns in (130, 160)]
    between = blame.slow_drops(RawProcess(), 165, is_final=False)
    answered = RawProcess(slow_drops={_CRUNCHING: RawEdge(70, 1, 70)})
    last = blame.slow_drops(answered, 180, is_final=False)

    stack = _NAMES[_CRUNCHING]
    assert [
        (SlowDrop(stack, Tally(30, 1), 30, in_flight_ns=30),),
        (SlowDrop(stack, Tally(60, 1), 60, in_flight_ns=60),),
    ] == shown
    assert (SlowDrop(stack, Tally(60, 1), 60),) == between
    assert (SlowDrop(stack, Tally(70, 1), 70),) == last


def test_request_whose_holder_is_not_known_yet_waits(process: _Process) -> None:
    """
    It may come to have one; at the end it is nobody's.
    """
    blame = process.blame()
    raw = RawProcess(unanswered=[Unanswered(_NOBODY, 100), Unanswered(_NOBODY, 110)])

    assert () == blame.slow_drops(raw, 130, is_final=False)
    assert (SlowDrop(UNKNOWN_STACK, Tally(50, 2), 30, in_flight_ns=30),) == blame.slow_drops(
        raw, 130, is_final=True
    )
