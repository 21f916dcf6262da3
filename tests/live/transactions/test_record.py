"""``gilscope record`` on processes with transactions: exact counts, and programs that live on."""

import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.bpf.features import Features
from gilscope.process.view import view_of
from gilscope.transactions.account import TransactionAccount
from gilscope.transactions.probe import StmProbe
from gilscope.transactions.program import StmLimits, begin_loading
from support.commands.gilscope import gilscope, gilscope_started
from support.tracing.counted_transactions import TRACING, recorded
from support.tracing.transactions import ITM, RPYTHON, StmProgram, built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_THREADS, _ROUNDS = 3, 200
_COMMITS, _CANCELS = 3 * _THREADS * _ROUNDS, _THREADS * _ROUNDS
_VISIBLE = [name for name in ITM if name != "static-stripped"]
_SIZES = (str(_THREADS), str(_ROUNDS))


@pytest.mark.parametrize("name", _VISIBLE)
def test_commits_of_libitm_are_counted_exactly(name: str, tmp_path: Path) -> None:
    """
    Writing, reading and nesting transactions are one commit each, and cancelled ones are none.
    """
    with running(built(tmp_path, "itm", ITM[name]), *_SIZES) as program:
        report, _ = recorded(program, rounds=2)
        assert 0 == program.finish()
    totals = report["totals"]

    assert (2 * _COMMITS, 2 * _CANCELS) == (totals["commits"], totals["cancels"])
    assert 2 * _COMMITS == sum(count for _, count in report["histograms"]["transaction"])
    assert [2 * _COMMITS // _THREADS] * _THREADS == [
        thread["commits"] for thread in report["threads"]
    ]
    assert {} == totals["lost_events"]
    assert "libitm" == report["process"]["library"]


def test_transactions_without_names_are_not_guessed(tmp_path: Path) -> None:
    """
    A static program without symbols gives exit code 3, and what was looked for.
    """
    with running(built(tmp_path, "itm", ITM["static-stripped"]), *_SIZES) as program:
        outcome = gilscope("record", "-p", str(program.pid))
        assert 0 == program.finish()

    assert (3, "") == (outcome.exit_code, outcome.output)
    assert "_ITM_beginTransaction (GCC's libitm)" in outcome.messages.splitlines()[0]


@pytest.mark.parametrize("name", RPYTHON)
def test_program_without_a_log_is_seen_by_its_calls(name: str, tmp_path: Path) -> None:
    """
    With the log off commits and aborts are exact, and what cannot be known is null.
    """
    with running(built(tmp_path, "rpython", RPYTHON[name]), "2", "50") as program:
        report, _ = recorded(program)
        assert 0 == program.finish()
    totals = report["totals"]

    assert "entries" == report["process"]["method"]
    # The last one of each thread was left open: whether it is committed nobody says.
    assert (100, 100) == (totals["commits"], totals["aborts"])
    assert (None, None, None) == (totals["committed_s"], totals["conflicts"], report["waits"])
    assert (None, None) == (totals["abort_cost_s"], totals["abort_cost_includes_waits"])
    assert {} == totals["lost_events"]


@pytest.mark.parametrize("log", [(), ("log",)], ids=["entries", "events"])
def test_inevitable_transactions_are_counted_by_reason(
    log: tuple[str, ...], tmp_path: Path
) -> None:
    """
    The reason is the text that the program gives; where that is a flag, what has called.
    """
    with running(built(tmp_path, "rpython", RPYTHON["pie"]), "2", "50", *log) as program:
        report, _ = recorded(program)

    assert {
        "leave_noninevitable_transactional_zone atomic": 100,
        "time:gettimeofday()": 50,
        "at a_round": 50,
    } == report["inevitable"]


def test_reasons_are_bounded(tmp_path: Path) -> None:
    """
    With room for one reason the first keeps its name, and all later ones are under other.
    """
    limits = StmLimits(reasons_of_process=1)
    tracer = TransactionAccount(lambda: StmProbe(begin_loading(limits)))
    with running(built(tmp_path, "rpython", RPYTHON["pie"]), "1", "5") as program:
        target = tracer.find(view_of(program.pid))
        assert target is not None
        tracer.attach(target, view_of(program.pid))
        program.tell()
        (observation,) = tracer.observe()
        tracer.close()

    assert {"time:gettimeofday()": 3, "other": 7} == observation.totals.inevitable
    assert {} == observation.totals.lost_events


def test_program_of_unknown_version_is_counted_by_its_sure_events(tmp_path: Path) -> None:
    """
    Begin, commit and abort have had the same numbers in all versions; the others are left alone.
    """
    renamed = ("-Dstm_hashtable_iter=unknown",)
    program_file = built(tmp_path, "rpython", (*RPYTHON["pie"], *renamed))
    with running(program_file, "2", "20", "log") as program:
        report, _ = recorded(program)
    totals = report["totals"]

    assert "events_basic" == report["process"]["method"]
    assert (42, 40) == (totals["commits"], totals["aborts"])
    assert (None, None) == (totals["conflicts"], report["waits"])
    assert (None, None) == (totals["abort_cost_s"], totals["abort_cost_includes_waits"])
    assert 42 == sum(count for _, count in report["histograms"]["transaction"])


def test_end_of_the_log_is_noticed(tmp_path: Path) -> None:
    """
    A program that stops to log would look idle: the recording ends and says so.
    """
    with running(built(tmp_path, "rpython", RPYTHON["pie-stripped"]), "1", "5", "log") as program:
        with gilscope_started("record", "-p", str(program.pid), "--format", "json") as command:
            command.says(TRACING)
            program.tell()
            program.tell("close")
            outcome = command.outcome()
        report = json.loads(outcome.output)

    assert (0, 6) == (outcome.exit_code, report["totals"]["commits"])
    assert "has ended its log" in report["process"]["invalid_reason"]


@pytest.mark.parametrize("log", [(), ("log",)], ids=["entries", "events"])
def test_threads_that_come_and_go_leave_nothing_behind(
    log: tuple[str, ...], tmp_path: Path
) -> None:
    """
    With room for eight, twenty threads one after the other are all counted and listed.
    """
    program_file = built(tmp_path, "rpython", RPYTHON["pie"])
    tracer = TransactionAccount(lambda: StmProbe(begin_loading(StmLimits(threads=8))))
    with running(program_file, "1", "5", *log) as program:
        target = tracer.find(view_of(program.pid))
        assert target is not None
        tracer.attach(target, view_of(program.pid))
        for _ in range(4):
            program.tell("churn")
            (observation,) = tracer.observe()
        tracer.close()

    assert {} == observation.totals.lost_events
    assert (20, 20) == (observation.totals.commits, observation.totals.aborts)
    assert [1] * 20 == [thread.committed.count for thread in observation.totals.threads]


def test_program_that_begins_again_is_another_one(tmp_path: Path) -> None:
    """
    What the same file does after an exec, through the same probes, is not counted.
    """
    with running(built(tmp_path, "rpython", RPYTHON["pie"]), "1", "5", "log") as program:
        tracer = TransactionAccount()
        target = tracer.find(view_of(program.pid))
        assert target is not None
        tracer.attach(target, view_of(program.pid))
        program.tell()
        assert "ready" == program.tell("again")
        program.tell()
        (before,) = tracer.observe()
        tracer.tick()
        (after,) = tracer.observe()
        tracer.close()

    assert [(6, False), (6, True)] == [
        (seen.totals.commits, seen.ended) for seen in (before, after)
    ]


def test_kernel_without_links_counts_the_same(tmp_path: Path) -> None:
    """
    With a perf event for each probe, and tables that take their memory at once, nothing differs.
    """
    features = Features(uprobe_links=False, tables_may_grow=False)
    tracer = TransactionAccount(lambda: StmProbe(features=features))
    with running(built(tmp_path, "itm", ITM["static"]), *_SIZES) as program:
        target = tracer.find(view_of(program.pid))
        assert target is not None
        tracer.attach(target, view_of(program.pid))
        program.tell()
        (observation,) = tracer.observe()
        tracer.close()
        assert 0 == program.finish()

    assert (_COMMITS, _CANCELS) == (observation.totals.commits, observation.totals.cancels)


def test_agent_that_is_killed_leaves_the_program_alone(tmp_path: Path) -> None:
    """
    The kernel takes all probes out, and the program does the rest of its work.
    """
    program_file = built(tmp_path, "itm", ITM["shared"])
    with running(program_file, *_SIZES, "fight", ITM_DEFAULT_METHOD="ml_wt") as program:
        with gilscope_started("record", "-p", str(program.pid)) as command, _kept_busy(program):
            command.says(TRACING)
            command.send(signal.SIGKILL)
            command.process.wait()
        program.tell()

        assert 0 == program.finish()


@pytest.mark.parametrize(
    ("source", "flags", "arguments"),
    [
        ("itm", ITM["shared"], ("3", "500", "fight")),
        ("itm", ITM["static"], ("3", "500", "fight")),
        ("rpython", RPYTHON["pie"], ("2", "50", "log")),
        ("rpython", RPYTHON["pie"], ("2", "50")),
    ],
    ids=["itm-shared", "itm-static", "rpython-events", "rpython-entries"],
)
def test_program_survives_attaching_in_the_middle(
    source: str, flags: tuple[str, ...], arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """
    Probes that come and go while transactions run, return twice and never leave it unharmed.
    """
    program_file = built(tmp_path, source, flags)
    with running(program_file, *arguments, ITM_DEFAULT_METHOD="ml_wt") as program:
        with _kept_busy(program):
            for _ in range(3):
                line = ("record", "-p", str(program.pid), "-d", "0.2", "--format", "json")
                outcome = gilscope(*line)
                assert 0 == outcome.exit_code
                assert 0 < json.loads(outcome.output)["totals"]["commits"]

        assert 0 == program.finish()


@contextmanager
def _kept_busy(program: StmProgram) -> Iterator[None]:
    """Have *program* run one round after the other."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            program.tell()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_text_report(tmp_path: Path) -> None:
    """
    The report for people has the same figures, the places, and what is not seen.
    """
    with (
        running(built(tmp_path, "itm", ITM["shared"]), *_SIZES) as program,
        gilscope_started("record", "-p", str(program.pid), "--mode", "full") as command,
    ):
        command.says(TRACING)
        program.tell()
        program.finish()
        outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert f"{_COMMITS} transactions were committed" in outcome.output
    assert "until the process ended" in outcome.output
    assert re.search(r"in /\S*libitm\.so\.1\S* \(build [0-9a-f]{12}\)", outcome.output)
    assert "Hardware transactions cannot pass a probe" in outcome.output


def test_other_forms_are_refused(tmp_path: Path) -> None:
    """
    What only a GIL has a report for is a mistake of usage, said before anything is traced.
    """
    with running(built(tmp_path, "itm", ITM["shared"]), *_SIZES) as program:
        outcome = gilscope("record", "-p", str(program.pid), "--format", "perfetto")

    assert (2, "") == (outcome.exit_code, outcome.output)
    assert (
        "error: transactions are reported as text, json, html, markdown, collapsed, speedscope "
        "or pprof, not as perfetto\n" == outcome.messages
    )
