"""Tests of the lock that traps are measured on: its code, its memory, and that it leaves both."""

import contextlib
import ctypes
import errno
import os
import platform
import resource
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gilscope.arch.x86_64.branches import LOOKAHEAD, distance_to_jump
from gilscope.gil.calibration.dummy_lock import DummyLock, Exercise
from support.paths import AGENT

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the dummy code is x86-64")

_CALL = 0xE8
_CALL_LENGTH = 5
_CALL_SLOT = b"\xff\x15"
_CALL_SLOT_LENGTH = 6
_PAGE = 4096
_SOURCES = AGENT


@pytest.fixture
def lock() -> Iterator[DummyLock]:
    """One that is closed in the end."""
    with DummyLock() as made:
        yield made


def _code(lock: DummyLock) -> bytes:
    return Path(lock.path).read_bytes()


def _word(address: int, form: str) -> int:
    return int(struct.unpack(form, ctypes.string_at(address, struct.calcsize(form)))[0])


def _traces() -> tuple[int, int]:
    """Return how many mappings and how many descriptors of dummy code this process has."""
    files = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            files.append(str(link.readlink()))
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped, opened = (sum("gilscope-dummy" in one for one in each) for each in (maps, files))
    return mapped, opened


@pytest.mark.parametrize("site", ["acquire_offset", "release_offset", "wait_offset"])
def test_direct_calls(lock: DummyLock, site: str) -> None:
    """
    A site that the kernel is to emulate is a direct call, of a stub that returns.
    """
    code, offset = _code(lock), getattr(lock, site)
    (distance,) = struct.unpack_from("<i", code, offset + 1)

    assert (_CALL, b"\xc3") == (
        code[offset],
        code[offset + _CALL_LENGTH + distance :][:1],
    )


@pytest.mark.parametrize("site", ["stepped_acquire_offset", "stepped_release_offset"])
def test_calls_through_the_slot(lock: DummyLock, site: str) -> None:
    """
    A site that the kernel is to single-step calls the stub through its address in memory.
    """
    code, offset = _code(lock), getattr(lock, site)
    (distance,) = struct.unpack_from("<i", code, offset + len(_CALL_SLOT))
    (target,) = struct.unpack_from("<Q", code, offset + _CALL_SLOT_LENGTH + distance)

    assert _CALL_SLOT == code[offset:][: len(_CALL_SLOT)]
    assert b"\xc3" == code[target - lock.load_bias :][:1]


def test_wait_return_is_a_jump_on_the_result(lock: DummyLock) -> None:
    """
    What follows the wait is probed where it is in a real take: on the jump behind the comparison.
    """
    code, offset = _code(lock), lock.wait_return_offset

    assert 3 == distance_to_jump(code[offset - 3 :][:LOOKAHEAD])


def test_the_plain_copy_is_the_same(lock: DummyLock) -> None:
    """
    Both copies have the same bytes at the same places, but for the address of their own stub.
    """
    probed, plain = _code(lock)[:_PAGE], _code(lock)[_PAGE:]
    slot = _PAGE + lock.stepped_acquire_offset + _CALL_SLOT_LENGTH
    (distance,) = struct.unpack_from("<i", plain, lock.stepped_acquire_offset + 2)
    start = slot + distance - _PAGE
    stubs = [struct.unpack_from("<Q", page, start)[0] for page in (probed, plain)]

    assert [lock.load_bias, lock.load_bias + _PAGE] == stubs
    assert probed[:start] + probed[start + 8 :] == plain[:start] + plain[start + 8 :]


def test_mapped_code_is_that_of_the_file(lock: DummyLock) -> None:
    """
    What runs is what the probes are placed in.
    """
    assert _code(lock) == ctypes.string_at(lock.load_bias, 2 * _PAGE)


def test_memory_is_that_of_a_gil(lock: DummyLock) -> None:
    """
    Seen from cond there are the switch interval, a holder whose memory is all 0, and an open lock.
    """
    holder = _word(lock.cond - 24, "<Q")

    assert (5000, 0, 0) == (
        _word(lock.cond - 32, "<Q"),
        _word(lock.cond - 16, "<i"),
        _word(lock.cond - 8, "<Q"),
    )
    assert bytes(512) == ctypes.string_at(holder, 512)


@pytest.mark.parametrize("is_probed", [True, False])
@pytest.mark.parametrize("exercise", Exercise)
def test_running(lock: DummyLock, exercise: Exercise, *, is_probed: bool) -> None:
    """
    Every exercise ends, leaves the lock open and everything else of it alone, and takes its time.
    """
    before = ctypes.string_at(lock.cond - 64, 512)
    short_ns = lock.run(exercise, 1, is_probed=is_probed)
    long_ns = lock.run(exercise, 1_000_000, is_probed=is_probed)

    assert before == ctypes.string_at(lock.cond - 64, 512)
    # A round takes a nanosecond or two; no machine does it in a tenth of one.
    assert short_ns > 0
    assert long_ns > 100_000


def test_what_cannot_be_run(lock: DummyLock) -> None:
    """
    No rounds at all, and any after the end, are refused: the code would not stop, or is not there.
    """
    with pytest.raises(ValueError, match="cannot do 0 rounds"):
        lock.run(Exercise.HOLDS, 0, is_probed=False)
    lock.close()
    with pytest.raises(ValueError, match="cannot do 1 rounds"):
        lock.run(Exercise.HOLDS, 1, is_probed=False)


def test_nothing_is_left() -> None:
    """
    After closing, once or twice, no code is mapped and no descriptor of it open.
    """
    lock = DummyLock()

    assert (1, 1) == _traces()

    lock.close()
    lock.close()

    assert (0, 0) == _traces()


@pytest.mark.parametrize(
    ("limit", "number"),
    [(resource.RLIMIT_NOFILE, errno.EMFILE), (resource.RLIMIT_FSIZE, errno.EFBIG)],
    ids=["no descriptors", "no files"],
)
def test_refused(limit: int, number: int) -> None:
    """
    Where the system refuses a step, OSError says why and nothing is left.
    """
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (0, hard))
    try:
        with pytest.raises(OSError) as refusal:  # noqa: PT011 - its number is compared
            DummyLock()
    finally:
        resource.setrlimit(limit, (soft, hard))

    assert number == refusal.value.errno
    assert (0, 0) == _traces()


def test_kernel_that_does_not_know_the_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A kernel before 6.3, which refuses an unknown flag, is asked without it.
    """
    monkeypatch.setattr("gilscope.gil.calibration.dummy_lock._MFD_NOEXEC_SEAL", 1 << 20)

    with DummyLock() as lock:
        lock.run(Exercise.WAITS, 1, is_probed=True)


def test_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where the code would be gibberish it is never mapped.
    """
    monkeypatch.setattr("os.uname", lambda: os.uname_result(["Linux", "h", "6.1", "1", "riscv64"]))

    with pytest.raises(OSError, match="there is no dummy code for "):
        DummyLock()
    assert (0, 0) == _traces()


# Forbids to map memory that can be executed, as SELinux does, and practises.
_WITHOUT_CODE = """
import ctypes, os, struct
from gilscope.gil.calibration.dummy_lock import DummyLock
filter = struct.pack(
    "<" + 6 * "HBBI",
    0x20, 0, 0, 0,            # load the number of the system call
    0x15, 0, 3, 9,            # mmap, or else allowed
    0x20, 0, 0, 32,           # load its third argument
    0x45, 0, 1, 4,            # PROT_EXEC, or else allowed
    0x06, 0, 0, 0x50000 + 13, # EACCES
    0x06, 0, 0, 0x7fff0000,   # allowed
)
held = ctypes.create_string_buffer(filter, len(filter))
program = struct.pack("<H6xQ", 6, ctypes.addressof(held))
libc = ctypes.CDLL(None)
assert 0 == libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
assert 0 == libc.prctl(22, 2, program)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
before = len(os.listdir("/proc/self/fd"))
try:
    DummyLock()
except OSError as error:
    print(error)
print(len(os.listdir("/proc/self/fd")) - before)
"""


def test_code_is_refused() -> None:
    """
    Where a policy forbids code in memory, OSError says so and the file is closed again.
    """
    printed = subprocess.run(
        [sys.executable, "-c", _WITHOUT_CODE],
        env={"PYTHONPATH": str(_SOURCES)},
        capture_output=True,
        check=True,
        text=True,
    ).stdout

    assert "[Errno 13] mmap of code: Permission denied\n0\n" == printed
