"""Interpreters with a GIL of their own: each lock has its own numbers."""

import signal
import subprocess

import pytest

from accuracy.truth import Answer, started
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilTotals
from gilscope.model.histogram import total
from gilscope.model.kinds import Cause, Kind
from support.commands.gilscope import gilscope_started
from support.commands.json_reports import only_process
from support.commands.serve import serving
from support.interpreters.builds import build
from support.paths import WORKLOADS
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_WORKLOAD = "subinterpreters.py"
_WITH_OWN_GILS = ("pyenv-3.12", "pyenv-3.13", "debian-3.14", "debian-3.15")
_LEAST_SHARE = 0.5
_HARDLY_ANY = 3
_SLACK_NS = 30_000_000


def _fighters(answer: Answer) -> dict[int, list[int]]:
    """Return the threads of each interpreter by its id."""
    return {
        each["interpreter"]: [thread["tid"] for thread in each["threads"]]
        for each in answer["interpreters"]
    }


@pytest.mark.parametrize("name", _WITH_OWN_GILS)
def test_each_interpreter_has_the_waits_of_its_own_threads(name: str, tracer: GilAccount) -> None:
    """
    Three locks in one process: each fight is counted on its own, nothing crosses over.
    """
    with started(command_of(build(name)), _WORKLOAD) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            answer = workload.run()
        observation = observation_of(tracer, workload.pid)
        workload.finish()
    gils = {gil.gil.interpreter_id: gil for gil in observation.totals.gils}
    threads = {thread.tid: thread for thread in observation.totals.threads}
    fighters = _fighters(answer)

    assert "" == observation.invalid
    # With several locks a thread's first yield may come before anything shows which one is its.
    assert {"lock_unknown"} >= set(missed_events(observation))
    assert {0, *fighters} == set(gils)
    assert 3 == len({gil.gil.cond for gil in gils.values()})
    for each in answer["interpreters"]:
        gil = gils[each["interpreter"]]
        own = [threads[thread["tid"]] for thread in each["threads"]]
        forced = [thread.lost[Kind.PREEMPTION] for thread in own]
        for thread, tally in zip(each["threads"], forced, strict=True):
            assert tally.count == pytest.approx(thread["waits"], rel=0.05, abs=3)
            # Jumps of its clock that it does not take for waits may be parts of some.
            most_ns = thread["wait_ns"] + thread["other_jump_ns"] + _SLACK_NS
            # And what it takes for waits includes the time that it had the GIL and no CPU: two
            # fights and this test share two. How exact times are is tested where threads have
            # real-time priority.
            assert thread["wait_ns"] * _LEAST_SHARE <= tally.ns <= most_ns
        # All that these two were made to yield is on their own lock, and nothing else is there.
        assert sum(tally.count for tally in forced) == gil.waits[Cause.PREEMPTION].count
        assert sum(tally.ns for tally in forced) == gil.waits[Cause.PREEMPTION].sum_ns
        assert sum(tally.count for tally in forced) == gil.forced_switches
    # The main interpreter's threads only start and join the others.
    assert gils[0].forced_switches <= _HARDLY_ANY


@pytest.mark.parametrize("name", _WITH_OWN_GILS)
def test_served_figures_bear_the_interpreters_id(name: str) -> None:
    """
    The label `interpreter` tells the locks of one process apart.
    """
    with (
        started(command_of(build(name)), _WORKLOAD) as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        answer = workload.run()
        scrape = service.scrape()
        workload.finish()
    forced = "gilscope_gil_forced_switches_total"
    ids = {sample.labels["interpreter"] for sample in scrape.samples(forced)}

    assert {"0", *map(str, _fighters(answer))} == ids
    assert scrape.total(forced, interpreter="0") <= _HARDLY_ANY
    for each in answer["interpreters"]:
        number = each["interpreter"]
        waits = sum(thread["waits"] for thread in each["threads"])
        assert 2 == len(each["threads"])
        assert scrape.total(forced, interpreter=str(number)) == pytest.approx(waits, rel=0.1, abs=6)
        assert scrape.total(
            "gilscope_gil_wait_seconds_count", interpreter=str(number), after="preemption"
        ) == scrape.total(forced, interpreter=str(number))


@pytest.mark.beside_others
def test_report_lists_the_interpreters() -> None:
    """
    The JSON report has one entry for each lock, and the text a line.
    """
    for form in ("json", "text"):
        with (
            started(command_of(build("pyenv-3.13")), _WORKLOAD) as workload,
            gilscope_started(
                "record", "--full", "-p", str(workload.pid), "--format", form
            ) as command,
        ):
            command.says("Tracing the GIL of")
            answer = workload.run()
            command.send(signal.SIGINT)
            output = command.outcome().output
        ids = [0, *sorted(_fighters(answer))]

        if form == "json":
            assert ids == [each["id"] for each in only_process(output)["interpreters"]]
        else:
            assert "Interpreters with a GIL of their own" in output
            for number in ids:
                assert f"  interpreter {number}: " in output


_SHORT_LIVED = """\
import sys
sys.path.insert(0, {folder!r})
import subinterpreters
print(1, flush=True)
sys.stdin.readline()
arena = subinterpreters.Arena(0.5)
arena.thread.start()
arena.thread.join()
threads = arena.truth()["threads"]
subinterpreters._xxsubinterpreters.destroy(arena.interpreter)
print(sum(thread["waits"] for thread in threads), flush=True)
sys.stdin.readline()
"""


def _waits(gils: tuple[GilTotals, ...]) -> int:
    return sum(total(gil.waits.values()).count for gil in gils)


def test_interpreter_that_comes_and_goes_unseen_does_no_harm(tracer: GilAccount) -> None:
    """
    A lock that is gone before the agent could ask whose it was is no reason to distrust the rest.
    """
    command = [*command_of(build("pyenv-3.12")), "-c"]
    with subprocess.Popen(
        [*command, _SHORT_LIVED.format(folder=str(WORKLOADS))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        tracer.attach(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        assert int(process.stdout.readline()) > 5
        observation = observation_of(tracer, process.pid)
        process.kill()

    assert "" == observation.invalid
    assert _waits(observation.totals.gils) == sum(
        thread.waits for thread in observation.totals.threads
    )
