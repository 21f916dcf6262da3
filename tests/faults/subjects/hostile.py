"""What an unprivileged process makes for an agent that runs as root: files, maps and memory."""

import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.agent_watch import AgentWatch
from faults.bench import Bench
from faults.native import found
from faults.registry import Failed, Verdict, fault
from faults.targets import AS_NOBODY, SYSTEM_PYTHON
from support.commands.gilscope import eventually
from support.commands.serve import Service
from support.ports import free_port

_MOST_KIB = 400_000
_PATIENCE_S = 30
_MAP = """
import ctypes, mmap, os, sys, time
name = os.fsencode(sys.argv[1])
with open(name, "rb") as file:
    size = os.fstat(file.fileno()).st_size
    length = min(size, 1 << 24) if size else 4096
    kept = mmap.mmap(file.fileno(), length, prot=mmap.PROT_READ | mmap.PROT_EXEC)
exec(sys.argv[2])
print("ready", flush=True)
exec(sys.argv[3])
time.sleep(600)
"""


@contextmanager
def _mapping(
    bench: Bench, name: str, content: bytes, before: str = "", after: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    """Start somebody who maps the file *name* and is called like a Python; yields the process."""
    path = bench.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o777)
    path.write_bytes(content)
    path.chmod(0o777)
    # The program's own name says nothing, so that the file is what is looked at.
    shell = bench.folder / "sleeper"
    if not shell.exists():
        shell.write_bytes(Path(SYSTEM_PYTHON).read_bytes())
        shell.chmod(0o755)
    line = [*AS_NOBODY, str(shell), "-SEc", _MAP, str(path), before, after]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def _is_not_held_up(bench: Bench, name: str, pid: int, *codes: int) -> None:
    """Expect that record and doctor end, and that serve answers, traces others, and ends."""
    for line in (["record", "-p", str(pid), "-d", "0.3"], ["doctor", "-p", str(pid)]):
        command = bench.agent(*line)
        try:
            code: int | None = command.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            command.process.kill()
            command.process.wait()
            words = f"{name}: {line[0]} does not end within {_PATIENCE_S} s"
            bench.failures.append(Failed(Verdict.HANGS, words))
            continue
        words = f"{name}: {line[0]}: exit code {code}: {command.messages[-200:]!r}"
        assert code is not None
        if code not in (0, 3, 4, 5, 8, *codes):
            verdict = Verdict.AGENT_DIED if code < 0 else Verdict.UNCLEAR_MESSAGE
            bench.failures.append(Failed(verdict, words))
    port = free_port()
    each = ("--per-process", "--match", str(bench.folder))
    command = bench.agent("serve", "--listen", f"127.0.0.1:{port}", *each)
    service = Service(command, "127.0.0.1", port, f"http://127.0.0.1:{port}/")
    try:
        eventually(lambda: _answers(service), within_s=_PATIENCE_S)
        victim = bench.target()
        _sees(bench, service, victim.pid)
        kib = AgentWatch().figures(command.pid).private_kib
        bench.expect(Verdict.LEAK, kib < _MOST_KIB, f"{name}: {kib} KiB private")
    except AssertionError as error:
        code = command.process.poll()
        verdict = Verdict.HANGS if code is None else Verdict.AGENT_DIED
        words = f"{name}: serve (exit code {code}) does not trace others: {str(error)[:200]}"
        bench.failures.append(Failed(verdict, words))
    command.process.terminate()
    try:
        command.process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        command.process.kill()
        command.process.wait()
        bench.failures.append(Failed(Verdict.HANGS, f"{name}: serve does not end on SIGTERM"))


def _sees(bench: Bench, service: Service, pid: int) -> None:
    name = "gilscope_gil_thread_waits_total"
    eventually(lambda: bench.lives(service).total(name, pid=str(pid)) > 0, within_s=_PATIENCE_S)


def _answers(service: Service) -> bool:
    assert service.command.process.poll() is None, service.command.messages[-200:]
    try:
        return service.get("/metrics").status == 200
    except OSError:
        return False


@fault(
    "path_leads_to_fifo",
    "the path of a mapped file reads like that of a FIFO: it is not opened",
    half=True,
)
def _path_leads_to_fifo(bench: Bench) -> None:
    # The kernel writes both a line break and the four characters themselves as \012.
    decoy = bench.folder / "a\nb" / "python3"
    decoy.parent.mkdir()
    os.mkfifo(decoy)
    elf = Path(SYSTEM_PYTHON).read_bytes()
    with _mapping(bench, "a\\012b/python3", elf) as process:
        _is_not_held_up(bench, "FIFO", process.pid)


@fault("path_becomes_fifo", "the file of a mapping is replaced by a FIFO: it is not opened")
def _path_becomes_fifo(bench: Bench) -> None:
    elf = Path(SYSTEM_PYTHON).read_bytes()
    with _mapping(bench, "libpython3.11.so.1.0", elf) as process:
        path = bench.folder / "libpython3.11.so.1.0"
        path.unlink()
        os.mkfifo(path)
        _is_not_held_up(bench, "FIFO", process.pid)


@fault("path_leads_to_secret", "the path of a mapping leads to a file of root: it is not read")
def _path_leads_to_secret(bench: Bench) -> None:
    secret = bench.folder / "secret"
    secret.write_bytes(b"root's" * 1000)
    os.utime(secret, ns=(0, 0))
    secret.chmod(0o600)
    decoy = bench.folder / "a\nb" / "python3"
    decoy.parent.mkdir()
    decoy.symlink_to(secret)
    before = secret.stat().st_atime_ns
    elf = Path(SYSTEM_PYTHON).read_bytes()
    with _mapping(bench, "a\\012b/python3", elf) as process:
        bench.run("record", "-p", str(process.pid), "-d", "0.2")
        bench.run("doctor", "-p", str(process.pid))
    bench.equal(Verdict.WRONG_NUMBER, before, secret.stat().st_atime_ns, "last read of the secret")


@fault("path_forges_a_line", "CR and U+0085 in the path of a mapping forge no line of maps")
def _path_forges_a_line(bench: Bench) -> None:
    name = "x\r7f0000000000-7f0000001000 r-xp 00000000 00:00 1 \x85\x0b\x0cpython3"
    with _mapping(bench, name, Path(SYSTEM_PYTHON).read_bytes()) as process:
        _is_not_held_up(bench, "CR", process.pid)


_CUT = """
import threading
def cut():
    while True:
        for size in (0, 4096, 100000, len(content)):
            os.truncate(name, size)
            if size == len(content):
                with open(name, "r+b") as file:
                    file.write(content)
content = open(name, "rb").read()
del kept
with open(name, "rb") as file:
    kept = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
"""


@fault(
    "file_truncated_while_read",
    "a file like libpython is cut again and again: agent survives",
    half=True,
)
def _file_truncated_while_read(bench: Bench) -> None:
    elf = found("pyenv-3.12").elf.read_bytes()
    after = "cut()"
    with _mapping(bench, "libpython3.12.so.1.0", elf, before=_CUT, after=after) as process:
        for _ in bench.times(2, 10):
            _is_not_held_up(bench, "truncated", process.pid, 1)


def _elf(sections: list[tuple[int, int, int, int]], body: bytes, *, count: int = 0) -> bytes:
    """Return an ELF file with headers of *sections* (name, type, offset, size) behind *body*."""
    head = 64
    table = head + len(body)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table, 0, 64, 56, 0, 64, count or len(sections), 1
    )
    headers = b"".join(
        struct.pack("<IIQQQQIIQQ", name, kind, 2, 0x1000, offset, size, 0, 0, 1, 24)
        for name, kind, offset, size in sections
    )
    return header + body + headers


def _bombs() -> dict[str, bytes]:
    """Return files that are small, and ask for much."""
    name = b"\0" + b"n" * 8_000_000 + b"\0"
    long_name = [(1, 1, 64, 1)] * 65_000
    long_name[1] = (1, 3, 64, len(name))
    huge = [(0, 0, 0, 0), (0, 3, 64, 16), *[(1, 11, 64, 2**62)] * 8, (1, 2, 0, 2**63)]
    cut = Path(SYSTEM_PYTHON).read_bytes()
    return {
        "section_names": _elf(long_name, name),
        "section_sizes": _elf(huge, bytes(64)),
        "sections_65535": _elf([(0, 3, 64, 16)] * 65_535, bytes(64)),
        "program_headers": cut[:56] + struct.pack("<H", 65_535) + cut[58:200_000],
        "cut_in_text": cut[: len(cut) // 3],
        "cut_in_header": cut[:100],
        "garbage": cut[:4096] + os.urandom(500_000),
        "empty_note": cut[:64] + bytes(4_000_000),
    }


def _bomb(kind: str) -> None:
    @fault(
        f"elf_{kind}",
        f"a file like libpython that is no good ELF ({kind}): bounded time and memory",
        half=kind == "section_sizes",
    )
    def check(bench: Bench) -> None:
        with _mapping(bench, "libpython3.11.so.1.0", _bombs()[kind]) as process:
            _is_not_held_up(bench, kind, process.pid)


for _kind in (
    *("section_names", "section_sizes", "sections_65535", "program_headers"),
    *("cut_in_text", "cut_in_header", "garbage", "empty_note"),
):
    _bomb(_kind)


@fault("sparse_terabyte", "a sparse file of a terabyte that looks like libpython: bounded time")
def _sparse_terabyte(bench: Bench) -> None:
    elf = Path(SYSTEM_PYTHON).read_bytes()
    with _mapping(bench, "libpython3.11.so.1.0", elf) as process:
        os.truncate(bench.folder / "libpython3.11.so.1.0", 1 << 40)
        _is_not_held_up(bench, "sparse", process.pid)


_TABLES = """
import threading, types
table = bytes((0xf8 | 1, 0)) * ({size} // 2)
field = "co_linetable"
source = "def f_%d(counts, number):\\n    sum(range(1500))\\n    counts[number] += 1\\n"
functions = []
for index in range({functions}):
    scope = {{}}
    exec(source % index, scope)
    function = scope["f_%d" % index]
    function.__code__ = function.__code__.replace(**{{field: table}})
    functions.append(function)
def run(number):
    while True:
        for function in functions:
            function(counts, number)
for number in (2, 3):
    threading.Thread(target=run, args=(number,), daemon=True).start()
"""


@fault("line_tables", "250 functions with line tables of 4 MB: the agent's memory is bounded")
def _line_tables(bench: Bench) -> None:
    target = bench.target()
    target.do(_TABLES.format(size=4_000_000, functions=40 if bench.is_half else 250))
    service = bench.serve("-p", str(target.pid), "--mode", "full")
    bench.sees(service, target)
    watch = AgentWatch()
    for _ in bench.times(5, 30):
        target.advances(2000)
        bench.lives(service)
        kib = watch.figures(service.command.pid).private_kib
        bench.expect(Verdict.LEAK, kib < _MOST_KIB // 2, f"{kib} KiB private")


_UNANSWERED = """
import ctypes, mmap, os, struct, fcntl
libc = ctypes.CDLL(None, use_errno=True)
descriptor = libc.syscall(323, os.O_CLOEXEC)
result = descriptor
if descriptor >= 0:
    fcntl.ioctl(descriptor, 0xC018AA3F, bytearray(struct.pack("=QQQ", 0xAA, 0, 0)))
    libc.mmap.restype = ctypes.c_void_p
    address = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0))
    fcntl.ioctl(descriptor, 0xC020AA00, bytearray(struct.pack("=QQQQ", address, 4096, 1, 0)))
    # The name and the file of the thread's code are where nobody answers.
    code = work.__code__
    raw = (ctypes.c_uint64 * 40).from_address(id(code))
    # Whoever reads the name from here on waits: it is not to be asked for again.
    kept = code.co_name
    for index in range(2, 24):
        if raw[index] == id(kept):
            raw[index] = address
"""


@fault("memory_never_answers", "names lie in memory whose reading is never answered: agent answers")
def _memory_never_answers(bench: Bench) -> None:
    target = bench.target(may_end=True)
    descriptor = target.do(_UNANSWERED)
    bench.expect(Verdict.BROKEN, descriptor >= 0, "this kernel gives no userfaultfd")
    try:
        _is_not_held_up(bench, "userfaultfd", target.pid)
    finally:
        os.kill(target.pid, signal.SIGKILL)
