"""The upper table: processes and their roles."""

from dataclasses import replace

import pytest

from gilscope.model.gil import Tally
from gilscope.top.columns import COLUMNS, Order
from gilscope.top.layout import Tone
from gilscope.top.process_table import RowKey, heading, matches, rows
from gilscope.top.rates import ProcessRates, RoleRates, rates
from support.recordings.gil import MS, PROCESS
from support.top.views import BUSY, IDLE, INVALID, REFUSED, text, texts


def _process(name: str, pid: int, lost_ms: int, **fields: object) -> ProcessRates:
    role = RoleRates("run (a.py:1)", 1, lost_ms * MS, 0, 0, 0, None)
    made = ProcessRates(replace(PROCESS, name=name, pid=pid), 0, 1000 * MS, (role,))
    return replace(made, **fields)  # type: ignore[arg-type]


def _all(_: object) -> bool:
    return True


def test_table_at_80_columns() -> None:
    """
    Names, figures and reasons stand below their heads, in 79 cells beside the scroll bar.
    """
    head = heading(79, Order())
    table = rows(rates([], [BUSY, IDLE, INVALID]), [REFUSED], 79, _all)

    assert [
        "process                    pid    lost convoy threads held longest longest cost",
        "  thread role                     ms/s      % waiting    % wait ms hold ms    %",
        "app.py                    4711   970.0     77       1   90     3.0     3.0 0.13",
        "  serve (app.py:8)               765.0     98       0    2",
        "  2x crunch (app.py:2)           205.0      0       1   88     3.0",
        "idle.py                1234567     0.0              0",
        "bad.py                      77  not reported: what the probes saw is not a GIL…",
        "old.py                      99  refused: CPython 3.5 is too old",
    ] == [*map(text, head), *texts(table)]


def test_estimate_of_held_time_is_marked() -> None:
    """
    Where windows of full mode do not cover the time, and not of roles, which are seen in these.
    """
    totals = replace(BUSY.totals, observed_ns=100 * MS)
    table = rows(rates([], [replace(BUSY, totals=totals)]), [], 79, _all)
    process, *roles = texts(table)

    assert process.endswith("≈90     3.0     3.0 0.13")
    assert not [role for role in roles if "≈" in role]


def test_rows_are_told_apart_by_what_stays() -> None:
    """
    A process is its pid and its attachment, a role its name; figures do not matter.
    """
    table = rows(rates([], [BUSY]), [REFUSED], 79, _all)

    assert [
        RowKey(4711, 0),
        RowKey(4711, 0, "serve (app.py:8)"),
        RowKey(4711, 0, "crunch (app.py:2)"),
        RowKey(99, None),
    ] == [row.key for row in table]


def test_convoy_stands_out() -> None:
    """
    The figures are red where a tenth of a thread is lost, and convoys are most of it.
    """
    process, serve, crunch = rows(rates([], [BUSY]), [], 79, _all)

    assert [True, True, False] == [
        Tone.BAD in {span.tone for span in row.lines[0]} for row in (process, serve, crunch)
    ]


def test_roles_can_be_left_out() -> None:
    """
    Without roles there is a line for each process.
    """
    assert 2 == len(rows(rates([], [BUSY, IDLE]), [], 79, lambda _: False))


def test_only_the_costliest_roles_are_listed() -> None:
    """
    A process with many roles shows eight of them, and how many more there are.
    """
    roles = tuple(RoleRates(f"r{n}", 1, (99 - n) * MS, 0, 0, 0, None) for n in range(10))
    table = texts(rows([replace(_process("a", 1, 0), roles=roles)], [], 79, _all))

    assert 10 == len(table)
    assert "  and 2 more roles that lost less" == table[-1]


def test_process_that_has_ended_says_so() -> None:
    """
    There are no figures where no time has passed.
    """
    ended = _process("a.py", 1, 0, elapsed_ns=0, ended=True)

    assert ["a.py                         1  ended"] == texts(
        rows([ended], [], 79, lambda _: False)
    )


def test_large_figures_keep_their_columns() -> None:
    """
    A hundred waiting threads and a wait of an hour fit.
    """
    role = RoleRates("r", 200, 200_000 * MS, 0, 200, 3_600_000 * MS, None)
    (line,) = texts(rows([_process("a.py", 1, 0, roles=(role,))], [], 79, lambda _: False))

    assert "a.py                         1  200000      0     200      3600000" == line


def test_every_column_of_an_unknown_process_is_empty() -> None:
    """
    What the libc method cannot tell is no number.
    """
    process = replace(PROCESS, knows_causes=False)
    unknown = _process("a.py", 1, 10, process=process)

    assert [0.01, None, 0, None, None, None, None] == [
        column.figure(unknown, unknown) for column in COLUMNS
    ]


def test_order_goes_round() -> None:
    """
    Each column has its turn, then the name and the pid, and then the first again.
    """
    order, names = Order(), []
    for _ in range(len(COLUMNS) + 3):
        names.append(order.name)
        order = order.next()

    assert [*(column.name for column in COLUMNS), "name", "pid", "time lost"] == names


@pytest.mark.parametrize(
    ("place", "is_reversed", "expected"),
    [
        (0, False, "cabd"),
        (0, True, "abcd"),
        (len(COLUMNS), False, "abcd"),
        (len(COLUMNS), True, "dcba"),
        (len(COLUMNS) + 1, False, "dcba"),
        (len(COLUMNS) + 1, True, "abcd"),
    ],
)
def test_orders(place: int, is_reversed: bool, expected: str) -> None:  # noqa: FBT001 - a parameter of the case
    """
    Most comes first, or the first name or pid; equal ones by name; what is not known always last.
    """
    processes = [
        _process("d", 1, 0, elapsed_ns=0),
        _process("b", 3, 50),
        _process("c", 2, 70),
        _process("a", 4, 50),
    ]

    found = Order(place, is_reversed).sorted(processes)

    assert expected == "".join(seen.process.name for seen in found)


def test_sorted_column_is_marked() -> None:
    """
    Its head stands out, and no other.
    """
    first, _ = heading(79, Order(4))

    assert ["longest"] == [span.text for span in first if span.tone is Tone.SORTED]


def test_words_are_looked_for_in_name_pid_and_roles() -> None:
    """
    Capitals do not matter.
    """
    (busy,) = rates([], [BUSY])

    assert all(matches(busy, words) for words in ("APP", "471", "crunch", ""))
    assert not matches(busy, "idle")
    assert matches(REFUSED, "OLD")
    assert not matches(REFUSED, "new")


def test_overhead_has_three_digits_at_the_most() -> None:
    """
    It is told to a hundredth of a percent, as long as there is room.
    """
    cost = COLUMNS[-1]

    assert ["0.00", "0.13", "1.5", "15.0", "150"] == [
        cost.show(share) for share in (0, 0.0013, 0.015, 0.15, 1.5)
    ]


def test_tally_of_a_role_is_of_its_threads() -> None:
    """
    A process without threads has lost nothing.
    """
    (idle,) = rates([], [IDLE])

    assert (0, 0, 0, 0) == (idle.lost_ns, idle.convoy_ns, idle.waiting, idle.longest_wait_ns)
    assert Tally() == sum((pair.lost for pair in idle.pairs), start=Tally())
