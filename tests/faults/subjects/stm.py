"""Logs of PyPy-STM that are damaged, replaced, enormous, or no logs at all."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from faults.agent_watch import AgentWatch
from faults.bench import Bench
from faults.registry import Failed, Verdict, fault
from support.commands.gilscope import eventually
from support.stm_log.program import played_log
from support.stm_log.writer import LogWriter, marker

_REPORT = ("stm", "report")
_RSS_KIB = 100_000
_TOLD = (0, 10)
"""A report, or words that it is no log."""


def _log(records: int = 3000, seed: int = 1) -> LogWriter:
    return played_log("E16", records, seed)


def _reads(bench: Bench, path: Path | str, within_s: float = 60) -> None:
    """Expect a report or words about *path* in bounded time."""
    for extra in ((), ("--compat",)):
        command = bench.agent(*_REPORT, str(path), *extra)
        assert command.process.stdin is not None
        command.process.stdin.close()
        try:
            code = command.process.wait(within_s)
        except subprocess.TimeoutExpired:
            command.process.kill()
            command.process.wait()
            words = f"stm report {str(path)[-40:]!r} runs for {within_s:.0f} s"
            bench.failures.append(Failed(Verdict.HANGS, words))
            continue
        words = f"stm report {str(path)[-40:]!r}: exit code {code}: {command.messages[-200:]}"
        bench.expect(Verdict.AGENT_DIED, code >= 0, words)
        bench.expect(Verdict.UNCLEAR_MESSAGE, code in (*_TOLD, 1), words)
        is_told = code == 0 or command.messages.startswith("error: ")
        bench.expect(Verdict.UNCLEAR_MESSAGE, is_told, words)


@fault(
    "stm_damaged",
    "a log cut at 60 places, 60 with flipped bytes: a report or exit code 10",
    half=True,
)
def _stm_damaged(bench: Bench) -> None:
    content = _log().content
    chance = random.Random(11)
    damaged = bench.folder / "damaged.log"
    for number in bench.times(6, 120):
        bytes_ = bytearray(content)
        if number % 2:
            del bytes_[chance.randrange(len(bytes_)) :]
        else:
            for _ in range(chance.randrange(1, 40)):
                bytes_[chance.randrange(len(bytes_))] = chance.randrange(256)
        damaged.write_bytes(bytes_)
        line = (*_REPORT, str(damaged), "--format", "json")
        outcome = bench.run(*line)
        words = f"{number}: {outcome.exit_code}: {outcome.messages[-200:]}"
        bench.expect(Verdict.AGENT_DIED, outcome.exit_code in _TOLD, words)
        if outcome.exit_code == 0:
            json.loads(outcome.output)


@fault(
    "stm_wait_without_end",
    "a START inside a pause, then its end, --compat: counts are right",
    half=True,
)
def _stm_wait_without_end(bench: Bench) -> None:
    path = bench.folder / "waits.log"
    log = LogWriter("L8", "E16")
    names = ("START", "INEVITABLE", "WAIT_OTHER_INEVITABLE", "START", "WAIT_DONE")
    for number, name in enumerate(names):
        log.add(1000 * (number + 1), 1, name, marker(number, "function"))
    path.write_bytes(log.content)
    for extra in ((), ("--compat",)):
        outcome = bench.run(*_REPORT, *extra, str(path))
        bench.equal(Verdict.UNCLEAR_MESSAGE, 0, outcome.exit_code, outcome.messages[-300:])


@fault("stm_many_threads", "a log of parts with 8,000 open threads each: memory stays bounded")
def _stm_many_threads(bench: Bench) -> None:
    path = bench.folder / "threads.log"
    log = LogWriter("L8", "E16")
    for thread in range(8000):
        log.add(1000 * (thread + 1), thread + 1, "START")
    path.write_bytes(log.content * (4 if bench.is_half else 16))
    service = bench.serve("--stm-log", str(path))
    size = path.stat().st_size
    eventually(lambda: service.scrape().total("gilscope_stm_log_bytes_total") == size)
    resident_kib = AgentWatch().figures(service.command.pid).resident_kib
    bench.expect(Verdict.LEAK, resident_kib < _RSS_KIB, f"{resident_kib} KiB resident")


@fault("stm_thread_numbers_collide", "thread numbers that fall into one slot: read at once")
def _stm_thread_numbers_collide(bench: Bench) -> None:
    path = bench.folder / "collide.log"
    log = LogWriter("L8", "E16")
    threads = 2000 if bench.is_half else 8000
    for turn in range(4):
        for thread in range(threads):
            log.add(1000 * (turn * threads + thread + 1), (thread << 14) + 1, "START")
    path.write_bytes(log.content)
    began_s = time.process_time()
    outcome = bench.run(*_REPORT, str(path))
    bench.expect(Verdict.HANGS, outcome.exit_code in _TOLD, str(outcome)[-200:])
    bench.expect(Verdict.HANGS, time.process_time() - began_s < 60, "a minute for a small log")


@fault(
    "stm_follow_changes",
    "a followed log is rotated, emptied, deleted, replaced by a folder, a FIFO, a loop: goes on",
)
def _stm_follow_changes(bench: Bench) -> None:
    path = bench.folder / "app.log"
    content = _log().content
    path.write_bytes(content)
    service = bench.serve("--stm-log", str(path))
    name = "gilscope_stm_log_bytes_total"
    eventually(lambda: service.scrape().total(name) == len(content))
    path.rename(path.with_name("app.1"))
    path.write_bytes(content[:5000])
    eventually(lambda: service.scrape().total(name) == len(content) + 5000)
    for replace in (
        lambda: path.write_bytes(b""),
        path.unlink,
        path.mkdir,
        path.rmdir,
        lambda: os.mkfifo(path),
        path.unlink,
        lambda: path.symlink_to(path),
        path.unlink,
    ):
        replace()
        for _ in range(3):
            bench.lives(service)
    before = service.scrape().total(name)
    path.write_bytes(content)
    eventually(lambda: service.scrape().total(name) == before + len(content))


@fault("stm_fast", "a log that grows as fast as the disk takes it: kept up with or told, bounded")
def _stm_fast(bench: Bench) -> None:
    path = bench.folder / "fast.log"
    block = _log(20_000).content
    path.write_bytes(block)
    service = bench.serve("--stm-log", str(path))
    with bench.steady(service, grown_kib=60_000), path.open("ab") as file:
        for _ in range(50 if bench.is_half else 800):
            file.write(block)
        file.flush()
        size = path.stat().st_size

        def is_told() -> bool:
            scrape = bench.lives(service)
            read = scrape.total("gilscope_stm_log_bytes_total")
            return read + scrape.total("gilscope_stm_log_lag_bytes") >= size

        eventually(is_told)


@fault("stm_many_logs", "3,000 logs for one pattern: bounded, said once, scrapes answer")
def _stm_many_logs(bench: Bench) -> None:
    content = _log(50).content
    for number in bench.times(400, 3000):
        (bench.folder / f"log-{number}.stm").write_bytes(content)
    service = bench.serve("--stm-log", f"{bench.folder}/*.stm")
    eventually(lambda: service.scrape().total("gilscope_stm_log_bytes_total") > 0)
    text = service.get("/metrics").text
    bench.expect(Verdict.LEAK, len(text) < 20_000_000, f"/metrics has {len(text)} bytes")
    for _ in bench.times(5, 30):
        bench.lives(service)
    said = service.command.messages.splitlines()
    words = "lines that are said once, of all lines"
    bench.equal(Verdict.UNCLEAR_MESSAGE, len(said), len(set(said)), words)


@fault(
    "stm_odd_names",
    "logs whose names hold line breaks, quotes, control, no UTF-8: all is plain",
    half=True,
)
def _stm_odd_names(bench: Bench) -> None:
    content = _log(200).content
    names = (b"a\nb.stm", b'a"}\n1.stm', b"\x1b[31m.stm", b"\xff\xfe.stm", "\u202e.stm".encode())
    for name in names:
        (bench.folder / os.fsdecode(name)).write_bytes(content)
    service = bench.serve("--stm-log", f"{bench.folder}/*.stm")
    size = len(content) * len(names)
    eventually(lambda: service.scrape().total("gilscope_stm_log_bytes_total") == size)
    bench.says_plainly(service.get("/metrics").text, "/metrics")
    for name in names:
        _reads(bench, bench.folder / os.fsdecode(name))


@fault("stm_full_disk", "stm report -o on a full disk: exit code 1 and words", mounts=True)
def _stm_full_disk(bench: Bench) -> None:
    log = bench.folder / "app.log"
    log.write_bytes(_log().content)
    small = bench.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(small)], check=True)
    bench.finally_do(lambda: subprocess.run(["umount", "-l", str(small)], check=True))
    (small / "rest").write_bytes(bytes(4096))
    outcome = bench.run(*_REPORT, str(log), "--format", "html", "-o", str(small / "report"))
    bench.equal(Verdict.UNCLEAR_MESSAGE, 1, outcome.exit_code, outcome.messages[-200:])
    is_told = "No space left" in outcome.messages
    bench.expect(Verdict.UNCLEAR_MESSAGE, is_told, outcome.messages[-200:])


@fault(
    "stm_odd_files",
    "report on a folder, FIFO, loop, device, /proc, sparse 10 GB: words, soon",
    half=True,
)
def _stm_odd_files(bench: Bench) -> None:
    fifo, loop, sparse = (bench.folder / name for name in ("fifo", "loop", "sparse"))
    os.mkfifo(fifo)
    loop.symlink_to(loop)
    with sparse.open("wb") as file:
        file.write(_log(50).content)
        file.truncate(10 << 30)
    odd: list[Path | str] = [bench.folder, fifo, loop, "/dev/null", "/nothing", "/proc/self/mem"]
    odd += ["/proc/kmsg", "/dev/zero"]
    for path in odd:
        _reads(bench, path, within_s=10 if bench.is_half else 30)
    if not bench.is_half:
        _reads(bench, sparse)


@fault(
    "stm_sparse", "follow and serve on a sparse 10 GB log: answers scrapes, ends soon on a signal"
)
def _stm_sparse(bench: Bench) -> None:
    sparse = bench.folder / "sparse.log"
    with sparse.open("wb") as file:
        file.write(_log(50).content)
        file.truncate(10 << 30)
    service = bench.serve("--stm-log", str(sparse))
    follow = bench.agent("stm", "follow", str(sparse), "--every", "0.1")
    bench.lives(service)
    eventually(lambda: follow.output or follow.process.poll() is not None)
    for command, number in ((follow, signal.SIGINT), (service.command, signal.SIGTERM)):
        command.send(number)
        try:
            command.process.wait(20)
        except subprocess.TimeoutExpired:
            command.process.kill()
            words = f"{command.process.args!r} does not end within 20 s of {number.name}"
            bench.failures.append(Failed(Verdict.HANGS, words))


@fault(
    "stm_two_writers", "two writers in one log, and a writer that is cut off: a report, no crash"
)
def _stm_two_writers(bench: Bench) -> None:
    path = bench.folder / "two.log"
    parts = [_log(2000, seed).content for seed in (1, 2)]
    service = bench.serve("--stm-log", str(path))

    def write(content: bytes) -> None:
        with path.open("ab", buffering=0) as file:
            for begin in range(0, len(content), 777):
                file.write(content[begin : begin + 777])

    writers = [threading.Thread(target=write, args=(part,)) for part in parts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    bench.lives(service)
    _reads(bench, path)
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(path, path.with_suffix(".copy"))
