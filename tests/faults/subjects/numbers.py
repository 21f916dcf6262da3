"""Targets that do what makes probes blind: figures must be right, or be said to be none."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from accuracy.truth import spoken_to
from faults.bench import Bench
from faults.memory_text import changed_bytes
from faults.native import compiled, found
from faults.registry import Failed, Verdict, fault
from faults.targets import Target
from support.commands.gilscope import eventually
from support.commands.serve import Service

_VALID = "gilscope_probe_valid"
_WAITS = "gilscope_gil_thread_waits_total"
_SETTLED_S = 15.0
"""A serve that nobody asks looks after its processes every five seconds."""
_TEXT_TOUCHED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def own_text(wanted):
    for line in open("/proc/self/maps", errors="replace"):
        fields = line.split(None, 5)
        if len(fields) > 5 and "x" in fields[1] and wanted in fields[5]:
            start, end = (int(part, 16) for part in fields[0].split("-"))
            yield start, end, int(fields[2], 16), fields[5].strip()
"""
_REWRITE = (
    _TEXT_TOUCHED
    + """
for start, end, offset, path in own_text("python3"):
    with open(path, "rb") as file:
        file.seek(offset)
        content = file.read(end - start)
    libc.mprotect(ctypes.c_void_p(start), end - start, 7)
    for page in range(0, len(content), 4096):
        part = content[page:page + 4096]
        if ctypes.string_at(start + page, len(part)) != part:
            for index, byte in enumerate(part):
                if ctypes.string_at(start + page + index, 1)[0] != byte:
                    ctypes.memset(start + page + index, byte, 1)
    libc.mprotect(ctypes.c_void_p(start), end - start, 5)
"""
)
_FORGET = (
    _TEXT_TOUCHED
    + """
for start, end, offset, path in own_text("python3"):
    libc.madvise(ctypes.c_void_p(start), end - start, 4)
"""
)


def _tells_the_truth(bench: Bench, service: Service, target: Target) -> None:
    """Wait until gilscope can have noticed; expect right figures, or none."""
    pid = str(target.pid)
    until_s = time.monotonic() + _SETTLED_S
    before = bench.lives(service)

    def is_counted_or_refused() -> bool:
        target.advances(1000)
        scrape = bench.lives(service)
        if time.monotonic() < until_s:
            return False
        if scrape.total(_VALID, pid=pid) != 1:
            return True
        gained = scrape.total(_WAITS, pid=pid) - before.total(_WAITS, pid=pid)
        words = f"probe_valid 1, and {gained} waits in {_SETTLED_S} s of a fight"
        bench.expect(Verdict.WRONG_NUMBER, gained > 5 * _SETTLED_S, words)
        return True

    eventually(is_counted_or_refused)
    if bench.lives(service).total(_VALID, pid=pid) == 1:
        bench.counts_rightly(service, target)


def _text_touched(name: str, code: str, what: str) -> None:
    @fault(name, what)
    def check(bench: Bench) -> None:
        target = bench.target()
        service = bench.serve("-p", str(target.pid))
        bench.sees(service, target)
        bench.expect(Verdict.BROKEN, changed_bytes(target.pid), "no breakpoints to touch")
        target.do(code)
        _tells_the_truth(bench, service, target)


_text_touched(
    "mprotect_text",
    _REWRITE,
    "target writes the bytes of its file over the probes: no wrong number",
)
_text_touched(
    "dontneed_text",
    _FORGET,
    "target drops its text (MADV_DONTNEED), and the probes with it: likewise",
)


_LOADED = """
import ctypes
other = ctypes.CDLL({library!r}, mode=ctypes.RTLD_LOCAL)
"""


@fault(
    "static_with_libpython",
    "static Python that has loaded a libpython of its version: its waits are seen",
    half=True,
)
def _static_with_libpython(bench: Bench) -> None:
    library = found("debian-3.11-shared").elf
    target = bench.target()
    target.do(_LOADED.format(library=str(library)))
    bench.reports_rightly(target)


@fault("two_pythons", "static 3.11 contends, libpython3.12 is loaded beside it: its waits are seen")
def _two_pythons(bench: Bench) -> None:
    target = bench.target()
    target.do(_LOADED.format(library=str(found("pyenv-3.12").elf)))
    bench.reports_rightly(target)


_MAPPED = """
import mmap
file = open({library!r}, "rb")
kept = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for _ in range(2)]
"""


@fault(
    "library_mapped_twice",
    "target has mapped its own libpython to read it: figures, or no figure",
    half=True,
)
def _library_mapped_twice(bench: Bench) -> None:
    interpreter = found("pyenv-3.12")
    target = bench.target(*interpreter.command())
    target.do(_MAPPED.format(library=str(interpreter.elf)))
    report = bench.reports_rightly(target, "--mode", "full")
    roles = {thread["role"] for thread in report["threads"]}
    is_known = any((role or "").startswith("work (") for role in roles)
    bench.expect(Verdict.WRONG_NUMBER, is_known, f"roles: {sorted(map(str, roles))}")
    words = "method of a Python whose file is mapped twice"
    bench.equal(Verdict.WRONG_NUMBER, "sites", report["process"]["method"], words)
    service = bench.serve("-p", str(target.pid))
    bench.counts_rightly(service, target)


@fault(
    "held_above_duration",
    "ten recordings of 0.3 s while others compete: no held time above the time",
)
def _held_above_duration(bench: Bench) -> None:
    target = bench.target()
    rivals = [bench.target(may_end=True) for _ in range(3)]
    for _ in bench.times(3, 10):
        report = bench.report(target.pid, "-d", "0.3", "--mode", "full")
        held_s, duration_s = report["totals"]["hold_s"], report["duration_s"]
        words = f"held {held_s} s of {duration_s} s"
        bench.expect(Verdict.WRONG_NUMBER, held_s <= duration_s * 1.01, words)
        shown_s = report["process"].get("held_s")
        words = f"held_s {shown_s} of {duration_s} s"
        bench.expect(Verdict.WRONG_NUMBER, (shown_s or 0) <= duration_s * 1.01, words)
    assert all(rival.is_alive for rival in rivals)


@fault(
    "bytes_like_a_call",
    "a constant in the code reads like a call of pthread_cond_signal: untouched",
)
def _bytes_like_a_call(bench: Bench) -> None:
    """Write such a constant into padding of a copy of libpython: no breakpoint may be there."""
    interpreter = found("pyenv-3.11")
    folder = bench.folder / "patched"
    folder.mkdir()
    library = Path(shutil.copy(interpreter.elf, folder))
    places = _call_like_constants(library)
    python = [
        word.replace(str(interpreter.elf.parent), str(folder)) for word in interpreter.command()
    ]
    target = bench.target("env", f"LD_LIBRARY_PATH={folder}", *python)
    command = bench.recording(target, "--mode", "full")
    probed = changed_bytes(target.pid)
    bench.expect(Verdict.BROKEN, probed, "no breakpoint anywhere")
    hit = [place for place in probed if any(f"+{offset:#x} " in place for offset in places)]
    bench.equal(Verdict.TARGET_HARMED, [], hit, "breakpoints in the midst of an instruction")
    command.interrupt()


def _call_like_constants(library: Path) -> list[int]:
    """Put constants into runs of padding that read like calls of the PLT; return their offsets.

    The padding is between functions and is never run: a breakpoint there harms nobody, and shows
    that any bytes are taken for a call.
    """
    line = ["objdump", "-d", "-j", ".plt", "-j", ".plt.sec", "--no-show-raw-insn", str(library)]
    text = subprocess.run(line, capture_output=True, text=True, check=False).stdout
    stubs = [
        int(address, 16)
        for address in re.findall(r"^([0-9a-f]+) <pthread_cond_signal@\w*plt", text, re.MULTILINE)
    ]
    content = bytearray(library.read_bytes())
    headers = subprocess.run(
        ["readelf", "-SW", str(library)], capture_output=True, text=True, check=True
    ).stdout
    address, offset, size = (
        int(part, 16)
        for part in re.search(r" \.text +PROGBITS +(\w+) (\w+) (\w+)", headers).groups()  # type: ignore[union-attr]  # every library has it
    )
    places = []
    for stub in stubs:
        start = content.find(b"\x90" * 12, offset + size // 2)
        if start < 0:
            start = content.find(b"\xcc" * 12, offset + size // 2)
        at = (
            content.find(b"\x66\x66\x2e\x0f\x1f\x84\x00", offset + size // 2)
            if start < 0
            else start
        )
        relative = stub - (address + at - offset + 2 + 5)
        content[at : at + 10] = (
            b"\x48\xb8\xe8" + relative.to_bytes(4, "little", signed=True) + bytes(3)
        )
        places.append(at + 2)
    library.write_bytes(content)
    return places


@fault("table_is_filled", "one process fills a table of the kernel: others are told, or counted")
def _table_is_filled(bench: Bench) -> None:
    victim = bench.target()
    greedy = bench.target(*found("pyenv-3.12").command(), may_end=True)
    greedy.do(_GREEDY)
    service = bench.serve("--match", str(bench.folder))
    bench.counts_rightly(service, victim)
    late = bench.target()
    bench.counts_rightly(service, late)


_GREEDY = """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
kept = [interpreters.create() for _ in range(150)]
threading.stack_size(65536)
never = threading.Event()
for _ in range(1000):
    threading.Thread(target=never.wait, daemon=True).start()
"""

_FORKED = """
import os, time, resource
children = []
def spin(count):
    fd = os.open("/dev/zero", os.O_RDONLY)
    for _ in range(count):
        os.read(fd, 1)
child = os.fork()
if not child:
    while True:
        time.sleep(0.01)
result = child
"""


@fault("fork_of_recorded", "fork of a process in full mode: the child has none of its breakpoints")
def _fork_of_recorded(bench: Bench) -> None:
    target = bench.target()
    command = bench.recording(target, "--mode", "full")
    child = target.do(_FORKED)
    bench.finally_do(lambda: _kill(child))
    try:
        eventually(lambda: not changed_bytes(child), within_s=30)
    except AssertionError:
        words = f"{len(changed_bytes(child))} breakpoints in the child, which nobody traces"
        bench.failures.append(Failed(Verdict.TARGET_HARMED, words))
    command.interrupt()
    eventually(lambda: not changed_bytes(child))


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


@fault(
    "transactions_unasked",
    "a program of libitm that is no Python: serve --match leaves it alone",
    half=True,
)
def _transactions_unasked(bench: Bench) -> None:
    program = compiled("transactions.c", bench.folder / "transactions", "-fgnu-tm")
    service = bench.serve("--match", str(bench.folder))
    other = bench.target()
    with spoken_to([str(program)]) as workload:
        bench.sees(service, other)
        changed = changed_bytes(workload.pid)
        words = "breakpoints in a program that nobody asked to trace"
        bench.equal(Verdict.TARGET_HARMED, 0, len(changed), words)
        workload.finish()
