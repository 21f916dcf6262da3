"""Several agents at once, on one target or on each other."""

import signal
import subprocess
import time
from pathlib import Path

from accuracy.truth import exact_counts, started
from faults.bench import TRACING, Bench
from faults.registry import NotHere, Verdict, fault
from faults.targets import SYSTEM_PYTHON
from support.commands.gilscope import Gilscope, eventually
from support.commands.json_reports import only_process
from support.commands.serve import Service


@fault("two_agents_one_killed", "two agents, one is killed: the other counts 23 of 23", half=True)
def _two_agents_one_killed(bench: Bench) -> None:
    for _ in bench.times(1, 3):
        with started([SYSTEM_PYTHON], "exact_count.py") as workload:
            line = ("record", "-p", str(workload.pid), "--format", "json")
            first, second = bench.agent(*line), bench.agent(*line)
            first.says(TRACING)
            second.says(TRACING)
            first.process.kill()
            first.process.wait()
            truth = exact_counts(workload.run())
            second.interrupt()
            report = only_process(second.outcome().output)
            assert 0 == workload.finish()
        waits = {thread["tid"]: thread["waits"] for thread in report["threads"]}
        words = "waits of the thread that waits 23 times"
        bench.equal(Verdict.WRONG_NUMBER, 23, waits.get(truth.waiter.tid, 0), words)


@fault("five_agents", "five agents in three modes on one target, killed one after the other")
def _five_agents(bench: Bench) -> None:
    target = bench.target()
    pid = str(target.pid)
    agents: list[Gilscope] = [bench.recording(target), bench.recording(target, "--mode", "full")]
    services = [bench.serve("-p", pid, "--mode", mode) for mode in ("auto", "full", "contention")]
    for service in services:
        bench.counts_rightly(service, target)
    agents += [service.command for service in services]
    last = services.pop()
    for agent in agents[:-1]:
        agent.process.kill()
        agent.process.wait()
        target.advances()
    bench.counts_rightly(last, target)


@fault("oom_killed", "the OOM killer of a cgroup (48 MB) kills the agent: target unharmed")
def _oom_killed(bench: Bench) -> None:
    group = Path("/sys/fs/cgroup/memory") / bench.folder.name
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text("48000000")
    except OSError as error:
        raise NotHere(f"no memory cgroup can be made here: {error}") from error
    bench.finally_do(group.rmdir)
    target = bench.target()
    wrapper = ("sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh")
    for turn in bench.times(1, 4):
        # A cache of its own, so that it compiles.
        extra = {"XDG_CACHE_HOME": str(bench.folder / f"cache-{turn}")}
        line = ("record", "-p", str(target.pid), "-d", "1")
        outcome = bench.run(*line, wrapper=wrapper, extra=extra)
        is_documented = outcome.exit_code in (0, 1, 6, -signal.SIGKILL, 128 + signal.SIGKILL)
        bench.expect(Verdict.AGENT_DIED, is_documented, str(outcome)[-200:])
    eventually(lambda: not (group / "cgroup.procs").read_text())


@fault("cache_race", "8 agents that start at once with one empty cache: all work, the cache too")
def _cache_race(bench: Bench) -> None:
    target = bench.target()
    extra = {"XDG_CACHE_HOME": str(bench.folder / "cache")}
    line = ("record", "-p", str(target.pid), "-d", "1", "--format", "json")
    agents = [bench.agent(*line, extra=extra) for _ in bench.times(3, 8)]
    outcomes = [agent.outcome() for agent in agents]
    bench.equal(Verdict.AGENT_DIED, {0}, {each.exit_code for each in outcomes}, "exit codes")
    _is_whole(bench)
    bench.reports_rightly(target, extra=extra)


@fault("cache_killed", "agents killed while they write the cache, 20 times: nothing half is left")
def _cache_killed(bench: Bench) -> None:
    target = bench.target()
    extra = {"XDG_CACHE_HOME": str(bench.folder / "cache")}
    for turn in bench.times(3, 20):
        command = bench.agent("record", "-p", str(target.pid), extra=extra)
        time.sleep(0.1 * turn)
        command.process.kill()
        command.process.wait()
    bench.reports_rightly(target, extra=extra)
    bench.reports_rightly(target, extra=extra)


def _is_whole(bench: Bench) -> None:
    files = [path for path in (bench.folder / "cache").rglob("*") if path.is_file()]
    odd = [str(path) for path in files if path.name.startswith("tmp") or not path.stat().st_size]
    bench.equal(Verdict.LEAK, [], odd, "half-written files in the cache")
    bench.expect(Verdict.LEAK, files, "nothing was cached")


@fault("agents_trace_each_other", "agents that trace earlier ones and a target come to rest")
def _agents_trace_each_other(bench: Bench) -> None:
    target = bench.target()
    services: list[Service] = []
    for _ in range(3):
        traced = [target.pid, *(service.command.pid for service in services)]
        services.append(bench.serve(*(word for pid in traced for word in ("-p", str(pid)))))
    for service in services:
        bench.counts_rightly(service, target)
        page = bench.lives(service)
        own = page.samples("gilscope_probe_valid", pid=str(service.command.pid))
        bench.equal(Verdict.WRONG_NUMBER, [], own, "figures of an agent about itself")


@fault("agent_traces_agent", "record traces a serve that traces the same target, and is killed")
def _agent_traces_agent(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    line = ("record", "-p", str(service.command.pid), "--format", "json")
    command = bench.agent(*line)
    command.says(TRACING)
    bench.counts_rightly(service, target)
    service.command.process.kill()
    service.command.process.wait()
    outcome = command.outcome()
    bench.equal(Verdict.AGENT_DIED, 0, outcome.exit_code, "exit code of record")
    only_process(outcome.output)


@fault("gdb_meanwhile", "gdb stops, steps and leaves the traced process: target and figures go on")
def _gdb_meanwhile(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    # The main thread waits for standard input, and would not take a step before that comes.
    steps = ["-ex", "thread 2", "-ex", "stepi 20", "-ex", "info registers rip", "-ex", "detach"]
    for _ in bench.times(1, 5):
        _run_tool("gdb", "-nx", "-batch", "-p", str(target.pid), *steps)
        target.advances()
    bench.counts_rightly(service, target)


@fault("strace_meanwhile", "strace -f on the target while it is attached and traced: it goes on")
def _strace_meanwhile(bench: Bench) -> None:
    target = bench.target()
    log = bench.folder / "strace.log"
    try:
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", str(log), "-p", str(target.pid)])
    except FileNotFoundError as error:
        raise NotHere("strace is not installed") from error
    with tracer:
        eventually(lambda: log.exists() and log.stat().st_size)
        service = bench.serve("-p", str(target.pid))
        bench.sees(service, target)
        tracer.send_signal(signal.SIGINT)
        tracer.wait(30)
    bench.counts_rightly(service, target)


def _run_tool(*line: str) -> None:
    try:
        subprocess.run(line, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    except FileNotFoundError as error:
        raise NotHere(f"{line[0]} is not installed") from error
