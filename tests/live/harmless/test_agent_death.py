"""What an agent leaves behind that dies, or that is not alone."""

import contextlib
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.target import inspect
from gilscope.gil.tracing.account import GilAccount
from gilscope.process import procfs
from gilscope.process.view import view_of
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually, gilscope_started
from support.interpreters.builds import build
from support.tracing.observations import thread_of
from support.tracing.target_text import BREAKPOINT, byte_in_file, text_of
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"
_TRACING = "Tracing the GIL of"


def test_two_agents_on_one_process_are_both_right(
    tracer: GilAccount, site_cache: SiteCache, tmp_path: Path
) -> None:
    """
    Probes of a second agent at the same places change nothing for the first.
    """
    with GilProbe() as other_probe, started([_PYTHON], "exact_count.py") as workload:
        other = GilAccount(other_probe, SiteCache(tmp_path / "other"))
        tracer.attach(workload.pid)
        other.attach(workload.pid)
        with looked_after(tracer), looked_after(other):
            truth = exact_counts(workload.run())
        observations = [observation_of(each, workload.pid) for each in (tracer, other)]
        other.close()
        # The second one's end does not take the first one's probes.
        assert BREAKPOINT == text_of(inspect(view_of(workload.pid), site_cache))

    assert [23, 23] == [thread_of(seen, truth.waiter.tid).waits for seen in observations]
    assert [{}, {}] == [missed_events(seen) for seen in observations]


# Not beside others: an agent that traces all of a service has its probes in this process as well.
@pytest.mark.parametrize("name", ["debian-3.11", "pyenv-3.12"])
def test_probes_are_gone_after_the_agent_was_killed(name: str, site_cache: SiteCache) -> None:
    """
    After SIGKILL of the agent the target's code is as in the file, and it works on.
    """
    with started(command_of(build(name)), "exact_count.py") as workload:
        target = inspect(view_of(workload.pid), site_cache)
        with gilscope_started("record", "-p", str(workload.pid)) as command:
            command.says(_TRACING)
            assert BREAKPOINT == text_of(target)
            command.process.kill()
            command.process.wait()
        eventually(lambda: text_of(target) != BREAKPOINT, within_s=10)

        assert b"\xe8" == byte_in_file(target) == text_of(target)
        workload.run()
        assert 0 == workload.finish()


def test_throughput_is_back_after_the_agent_was_killed() -> None:
    """
    A round of contended work costs no more CPU after the agent's death than before it came.
    """
    with started([_PYTHON], "bench_fight.py", "--units", "20000") as workload:
        before_ns = min(workload.run()["cpu_ns"] for _ in range(3))
        with gilscope_started("record", "-p", str(workload.pid)) as command:
            command.says(_TRACING)
            workload.run()
            command.process.kill()
        after_ns = min(workload.run()["cpu_ns"] for _ in range(3))

    assert after_ns < 1.25 * before_ns


@pytest.mark.beside_others
def test_command_runs_on_when_the_agent_is_killed_while_it_holds_it(tmp_path: Path) -> None:
    """
    A command that is held for its probes is let go by the death of the agent.
    """
    for number in range(6):
        proof = tmp_path / f"proof-{number}"
        code = f"open({str(proof)!r}, 'x').close()"
        with gilscope_started("record", "--", _PYTHON, "-c", code) as command:
            # The compiler of the probes is a child as well, but nobody holds that.
            eventually(lambda: any(map(_is_held, _children(command.pid))))
            command.process.kill()
            command.process.wait()
            eventually(proof.exists, within_s=10)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def _is_held(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return procfs.read_status(pid).state == "t"
    return False
