"""Targets that end, fork, execute something else, and make threads without end."""

import json
import random
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

from accuracy.truth import started
from faults.bench import Bench, wait_s_of
from faults.native import found
from faults.registry import Verdict, fault
from faults.targets import SYSTEM_PYTHON, await_exit
from support.commands.gilscope import eventually
from support.commands.json_reports import only_process
from support.commands.serve import Service

_VALID = "gilscope_probe_valid"
_WAITS = "gilscope_gil_thread_waits_total"


@fault("target_exits_while_attaching", "target killed at 30 instants of attaching: 0 or 3, words")
def _target_exits_while_attaching(bench: Bench) -> None:
    chance = random.Random(5)
    for turn in bench.times(4, 30):
        target = bench.target(may_end=True)
        mode = ("contention", "full")[turn % 2]
        command = bench.agent("record", "-p", str(target.pid), "--mode", mode)
        time.sleep(chance.uniform(0, 1))
        target.workload._process.kill()
        target.workload._process.wait()
        outcome = command.outcome()
        is_fine = outcome.exit_code in (0, 3) and (outcome.output or "error: " in outcome.messages)
        bench.expect(Verdict.AGENT_DIED, is_fine, f"{outcome.exit_code}: {outcome.messages[-200:]}")


_EXEC_PYTHON = """
import os, sys
os.execv({python!r}, [{python!r}, *sys.orig_argv[1:]])
"""


@fault("exec_other_python", "exec of another Python: no figure of the old one is shown for it")
def _exec_other_python(bench: Bench) -> None:
    other = found("pyenv-3.12")
    target = bench.target(keeps_speed=False)
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    environment = "".join(f"os.environ[{key!r}] = {value!r}\n" for key, value in other.env.items())
    code = f"import os\n{environment}" + _EXEC_PYTHON.format(python=other.argv[0])
    target.workload.command(json.dumps(code))
    assert target.workload.answer()["ready"]

    def is_new() -> bool:
        scrape = bench.lives(service)
        samples = scrape.samples(_VALID, pid=str(target.pid))
        return any(sample.value == 1 for sample in samples) and scrape.total(_WAITS) > 0

    eventually(is_new)
    bench.counts_rightly(service, target)


@fault(
    "exec_not_python",
    "exec of what is no Python: record ends with its report, serve goes on",
    half=True,
)
def _exec_not_python(bench: Bench) -> None:
    target = bench.target(may_end=True)
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    command = bench.recording(target, "--format", "json")
    target.advances(200)
    target.workload.command(json.dumps("import os; os.execv('/bin/sleep', ['sleep', '60'])"))
    outcome = command.outcome()
    bench.equal(Verdict.AGENT_DIED, 0, outcome.exit_code, outcome.messages[-200:])
    bench.expect(Verdict.WRONG_NUMBER, wait_s_of(only_process(outcome.output)) > 0, "no waits")
    eventually(lambda: not bench.lives(service).samples(_VALID, pid=str(target.pid)))


@fault(
    "exec_storm",
    "100 execs in a row of a traced process: each runs, no descriptor leaks",
    half=True,
)
def _exec_storm(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    with bench.steady(service):
        for _ in bench.times(8, 100):
            target.workload.command(json.dumps(_EXEC_PYTHON.format(python=SYSTEM_PYTHON)))
            assert target.workload.answer()["ready"]
            target.advances(10)
        bench.lives(service)
    bench.counts_rightly(service, target)


_CHILDREN = """
import subprocess, sys
result = 0
code = "import threading; t = [threading.Thread(target=sum, args=(range(300000),)) for _ in 'ab']"
code += "; [x.start() for x in t]; [x.join() for x in t]; raise SystemExit(7)"
for _ in range({times}):
    result += subprocess.run([sys.executable, "-SEc", code]).returncode == 7
"""


@fault("fork_bomb", "200 short-lived Pythons under serve: none harmed, no leak, agent bounded")
def _fork_bomb(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    with bench.steady(service):
        for _ in bench.times(1, 10):
            ran = target.do(_CHILDREN.format(times=20))
            bench.equal(Verdict.TARGET_HARMED, 20, ran, "children that ended well")
            bench.lives(service)
    _forgets_all_but(service, target.pid)
    bench.counts_rightly(service, target)


def _forgets_all_but(service: Service, pid: int) -> None:
    eventually(lambda: service.scrape().pids() <= {pid})


@fault("prefork_recycling", "a prefork server recycles 60 workers: all run, counters never fall")
def _prefork_recycling(bench: Bench) -> None:
    with started([SYSTEM_PYTHON], "prefork.py", "--workers", "2") as workload:
        service = bench.serve("-p", str(workload.pid))
        workload.command("begin")
        workload.answer()
        eventually(lambda: len(service.scrape().pids()) == 3)
        before: dict[str, float] = {}
        with bench.steady(service):
            for _ in bench.times(5, 60):
                workload.command("restart")
                workload.answer()
                counters = bench.lives(service).counters()
                fell = [name for name, value in before.items() if counters.get(name, value) < value]
                bench.equal(Verdict.WRONG_NUMBER, [], fell[:3], "counters that ran back")
                before = counters
        workload.command("stop")
        workers = workload.answer()["workers"]
        assert 0 == workload.finish()
    statuses = {worker["status"] for worker in workers}
    bench.equal(Verdict.TARGET_HARMED, {0}, statuses, "wait statuses of workers")


_SPAWNING = """
import os, threading
def spawn(times, seen):
    for _ in range(times):
        child = os.posix_spawn("/bin/true", ["true"], {{}})
        seen.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
seen = []
threads = [threading.Thread(target=spawn, args=({times}, seen)) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
result = seen.count(0)
"""


@fault(
    "vfork_exec", "vfork and exec 400 times by two threads of a traced process: all children run"
)
def _vfork_exec(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid), "--mode", "full")
    bench.sees(service, target)
    for _ in bench.times(1, 10):
        ran = target.do(_SPAWNING.format(times=20))
        bench.equal(Verdict.TARGET_HARMED, 40, ran, "children that ended well")
        bench.lives(service)
    bench.counts_rightly(service, target)


_THREADS = """
import threading
def short():
    global ran
    sum(range(500))
    with guard:
        ran += 1
guard, ran = threading.Lock(), 0
for _ in range({times}):
    threads = [threading.Thread(target=short) for _ in range(10)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
result = ran
"""


@fault("thread_churn", "10,000 short threads under record: all run, waits add up")
def _thread_churn(bench: Bench) -> None:
    target = bench.target()
    command = bench.recording(target, "--format", "json")
    for _ in bench.times(1, 20):
        bench.equal(Verdict.TARGET_HARMED, 500, target.do(_THREADS.format(times=50)), "threads")
    command.interrupt()
    report = only_process(command.outcome().output)
    words = "waits of the threads, and in all"
    total = report["totals"]["waits"]
    bench.equal(Verdict.WRONG_NUMBER, total, sum(t["waits"] for t in report["threads"]), words)
    bench.expect(Verdict.WRONG_NUMBER, report["process"]["valid"], "the report is not valid")


@fault("thread_churn_serve", "the same under serve: memory and descriptors stay, series bounded")
def _thread_churn_serve(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    target.do(_THREADS.format(times=50))
    before = len(service.get("/metrics").text)
    with bench.steady(service, grown_kib=16_000):
        for _ in bench.times(2, 20):
            bench.equal(Verdict.TARGET_HARMED, 500, target.do(_THREADS.format(times=50)), "threads")
            bench.lives(service)
    after = len(service.get("/metrics").text)
    bench.expect(Verdict.LEAK, after < 2 * before, f"/metrics: {after} bytes, {before} before")
    bench.counts_rightly(service, target)


_IDLE = """
import threading
threading.stack_size(65536)
never = threading.Event()
for _ in range({times}):
    threading.Thread(target=never.wait, daemon=True).start()
"""


@fault("threads_alive_2000", "2,000 threads, two of which compute: attached soon, sane figures")
def _threads_alive_2000(bench: Bench) -> None:
    target = bench.target()
    target.do(_IDLE.format(times=200 if bench.is_half else 2000))
    bench.reports_rightly(target)
    service = bench.serve("-p", str(target.pid))
    bench.counts_rightly(service, target)


@fault(
    "threads_waiting_500", "500 threads that all want the GIL: 499 are seen to wait", limit_s=600
)
def _threads_waiting_500(bench: Bench) -> None:
    threads = 50 if bench.is_half else 500
    target = bench.target(threads=threads)
    # A moment after the attachment every one of them has been seen to begin its wait.
    report = bench.report(target.pid, "-d", "20")
    duration_s, waits_s = report["duration_s"], wait_s_of(report)
    words = f"{waits_s:.0f} s of waits in {duration_s:.0f} s, {threads} threads"
    is_right = 0.3 * threads * duration_s < waits_s < 1.02 * threads * duration_s
    is_told = not report["process"]["valid"] or report["totals"]["lost_events"]
    bench.expect(Verdict.WRONG_NUMBER, is_right or is_told, words)


_ONE_ID = """
import threading
def short():
    sum(range(300000))
for _ in range({times}):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write("20000")
    thread = threading.Thread(target=short)
    thread.start()
    thread.join()
"""
_OWN_PIDS = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@fault("tid_reuse", "300 threads with the same id: time of each stays within its life")
def _tid_reuse(bench: Bench) -> None:
    target = bench.target(prefix=_OWN_PIDS)
    command = bench.recording(target, "--format", "json")
    began_s = time.monotonic()
    target.do(_ONE_ID.format(times=20 if bench.is_half else 300))
    command.interrupt()
    report = only_process(command.outcome().output)
    wall_s = time.monotonic() - began_s + 2
    longest_s = max(thread["wait_s"] for thread in report["threads"])
    words = f"a thread waited {longest_s} s in {wall_s} s"
    bench.expect(Verdict.WRONG_NUMBER, 0 < longest_s <= wall_s, words)


_GENERATION = """
import os, sys
os.environ["GENERATION"] = str(int(os.environ.get("GENERATION", 0)) + 1)
os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
"""


@fault("pid_reuse_exec", "12 Pythons with one pid: no figure of one is shown for another")
def _pid_reuse_exec(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    name = "gilscope_gil_longest_wait_seconds"
    for _ in bench.times(2, 12):
        began_s = time.monotonic()
        bench.counts_rightly(service, target)
        scrape = bench.lives(service)
        longest_s = max(s.value for s in scrape.samples(name, pid=str(target.pid)))
        words = f"longest wait {longest_s} s"
        bench.expect(Verdict.WRONG_NUMBER, longest_s <= time.monotonic() - began_s + 60, words)
        waits = scrape.total(_WAITS, pid=str(target.pid))
        target.workload.command(json.dumps(_GENERATION))
        assert target.workload.answer()["ready"]
        _begins_anew(service, target.pid, waits)


def _has_waits(service: Service, pid: int) -> bool:
    return service.scrape().total(_WAITS, pid=str(pid)) > 0


def _content(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _begins_anew(service: Service, pid: int, waits: float) -> None:
    eventually(lambda: service.scrape().total(_WAITS, pid=str(pid)) < waits)


@fault("pid_reuse_fork", "forks that execute nothing and contend: each has its own figures")
def _pid_reuse_fork(bench: Bench) -> None:
    for _ in bench.times(1, 3):
        with started([SYSTEM_PYTHON], "forker.py", "--seconds", "2") as workload:
            service = bench.serve("-p", str(workload.pid))
            workload.command()
            child = workload.answer()["forked"]
            eventually(partial(_has_waits, service, child))
            result = workload.answer()
            scrape = bench.lives(service)
            bench.equal(Verdict.TARGET_HARMED, 0, workload.finish(), "exit code")
        for pid, threads in (
            (child, result["child"]["threads"]),
            (workload.pid, result["threads"]),
        ):
            counted_s = scrape.total("gilscope_gil_thread_wait_seconds_total", pid=str(pid))
            most_s = 2 * 2.2 * len(threads)
            words = f"{counted_s} s of waits, {most_s} at the most"
            bench.expect(Verdict.WRONG_NUMBER, counted_s <= most_s, words)


_SIGNALS = """
import signal, os, time
hits = 0
def handler(number, frame):
    global hits
    hits += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
"""


@fault("signal_storm", "2,000 signals a second, handlers in Python, full mode: lives, computes")
def _signal_storm(bench: Bench) -> None:
    target = bench.target()
    target.do(_SIGNALS)
    service = bench.serve("-p", str(target.pid), "--mode", "full")
    bench.counts_rightly(service, target)
    hits = target.do("result = hits")
    target.advances(2000)
    more = target.do("result = hits")
    bench.expect(Verdict.TARGET_HARMED, more > hits > 0, f"{hits}, then {more} signals handled")
    target.do("signal.setitimer(signal.ITIMER_REAL, 0)")


@fault("command_killed_while_held", "a command killed at 25 instants of holding it: no traceback")
def _command_killed_while_held(bench: Bench) -> None:
    chance = random.Random(7)
    for turn in bench.times(4, 25):
        file = bench.folder / f"pid-{turn}"
        script = f"echo $$ >{file}; exec {SYSTEM_PYTHON} -SEc 'import time; time.sleep(60)'"
        command = bench.agent("record", "--", "sh", "-c", script)
        eventually(partial(_content, file))
        time.sleep(chance.uniform(0, 0.6))
        pid = int(file.read_text())
        subprocess.run(["kill", f"-{signal.SIGKILL:d}", str(pid)], check=True)
        outcome = command.outcome()
        words = f"exit code {outcome.exit_code}: {outcome.messages[-200:]}"
        expected = (0, 3, 128 + signal.SIGKILL, -signal.SIGKILL)
        bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in expected, words)
        bench.expect(Verdict.LEAK, await_exit(pid), "the command is left")


@fault(
    "leader_ends",
    "the main thread ends, others contend; a neighbour is detached: figures right",
    half=True,
)
def _leader_ends(bench: Bench) -> None:
    # To those who look at it from outside it is dead later on.
    target, neighbour = bench.target(may_end=True), bench.target(may_end=True)
    service = bench.serve("--match", str(bench.folder), "--mode", "contention")
    bench.sees(service, target)
    bench.sees(service, neighbour)
    target.workload.command(json.dumps("import ctypes; ctypes.CDLL(None).pthread_exit(None)"))
    neighbour.workload.finish()
    eventually(lambda: str(neighbour.pid) not in map(str, service.scrape().pids()))
    before = bench.lives(service)
    target.advances(3000)
    eventually(lambda: bench.lives(service).after_s > before.after_s + 6)
    after = bench.lives(service)
    pid = str(target.pid)
    valid = after.total(_VALID, pid=pid)
    gained = after.total(_WAITS, pid=pid) - before.total(_WAITS, pid=pid)
    words = f"probe_valid {valid}, {gained} more waits"
    bench.expect(Verdict.WRONG_NUMBER, not valid or gained > 20, words)
