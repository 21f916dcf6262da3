"""Damages ELF files in ways that a format invites, and holds the readers to their promises.

``python tests/fuzz/elf.py --seconds 3600`` goes on for an hour. Whatever a file says, its readers
raise nothing but what they document, count their work within the budget, find the same twice, and
need little processor time. An input that breaks this is written to the folder of ``--failures``,
together with its seed, and the run ends with status 1.
"""

import argparse
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    _ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_ROOT / "agent"), str(_ROOT / "tests")]

from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import GilscopeError
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.stm.sites import find_sites
from support.gil.lock_program import BUILDS, build_program, stripped
from support.paths import WORKLOADS
from support.tracing.transactions import ITM, RPYTHON, built

__all__ = ["Failure", "Fuzzer", "seed_files"]

_MOST_CPU_S = 5.0
_SECTION_HEADER = 64
_PROGRAM_HEADER = 56
_INTERESTING = (
    *(0, 1, 2, 7, 8, 16, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF),
    *(0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)
_BUILDS = ("shared-O2-separate_yield", "fixed-O2-inlined_yield", "no-plt-O3-exported_yield")


@dataclass(frozen=True)
class Failure:
    """An input that breaks a promise."""

    seed: int
    content: bytes
    reason: str


@dataclass
class Fuzzer:
    """Makes one damaged file for each seed; equal seeds make equal files."""

    files: tuple[bytes, ...]
    outcomes: Counter[str] = field(default_factory=Counter)
    executions: int = 0

    def run(self, seeds: Iterable[int], go_on: Callable[[], bool] = lambda: True) -> list[Failure]:
        """Try *seeds* for as long as *go_on* says; return what failed."""
        failures = []
        for seed in seeds:
            if not go_on():
                break
            content = self.damaged(seed)
            outcome, reason = judge(content)
            self.executions += 1
            self.outcomes[outcome] += 1
            if reason:
                failures.append(Failure(seed, content, reason))
        return failures

    def damaged(self, seed: int) -> bytes:
        """Return the file of one seed."""
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        content = bytearray(rng.choice(self.files))
        for _ in range(rng.choice((1, 1, 1, 2, 4, 12))):
            rng.choice(_MUTATIONS)(rng, content)
        return bytes(content)


def judge(content: bytes) -> tuple[str, str]:
    """Return the outcome of reading a file in words, and which promise was broken, if any."""
    before = time.process_time()
    try:
        first = _everything(content)
        second = _everything(content)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return type(error).__name__, f"raised {error!r}"
    spent_s = (time.process_time() - before) / 2
    if first != second:
        return "differs", f"first {first}, then {second}"
    if spent_s > _MOST_CPU_S:
        return "slow", f"{spent_s:.1f} s of processor time"
    return "; ".join(kind for kind, _ in first), ""


def _everything(content: bytes) -> list[tuple[str, str]]:
    readers: tuple[Callable[[ElfImage], object], ...] = (
        identify,
        resolve_sites,
        lambda image: find_sites(image, lambda vaddr: vaddr ^ 0x40),
        lambda image: (image.needed, image.interpreter),
        lambda image: (image.build_id, image.functions),
    )
    return [_outcome(content, reader) for reader in readers]


def _outcome(content: bytes, reader: Callable[[ElfImage], object]) -> tuple[str, str]:
    """Return the kind of a reader's result, and all of it."""
    try:
        found = reader(ElfImage(content))
    except (ElfError, GilscopeError) as error:
        words = str(error).split()
        return f"{type(error).__name__} {words[0] if words else ''}", str(error)
    return type(found).__name__, repr(found)


def _number(rng: random.Random, content: bytearray, position: int, size: int) -> None:
    """Change an integer: to a telling one, by a little, or to the place of something else."""
    if not 0 <= position <= len(content) - size:
        return
    old = int.from_bytes(content[position : position + size], "little")
    new = rng.choice(
        (
            rng.choice(_INTERESTING),
            old + rng.choice((-16, -8, -1, 1, 8, 16)),
            old ^ 1 << rng.randrange(8 * size),
            rng.randrange(len(content)),
            len(content) - rng.randrange(64),
        )
    )
    content[position : position + size] = (new & (1 << 8 * size) - 1).to_bytes(size, "little")


def _some_bytes(rng: random.Random, content: bytearray, start: int = 0, size: int = 0) -> None:
    size = min(size or len(content), len(content) - start)
    if size > 0:
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = start + rng.randrange(size)
            content[place] = rng.choice((0, 0xFF, 0x7F, 0x80, rng.randrange(256)))


def _header(rng: random.Random, content: bytearray) -> None:
    position, size = rng.choice(
        ((16, 2), (18, 2), (32, 8), (40, 8), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2))
    )
    _number(rng, content, position, size)


def _tables(content: bytearray) -> tuple[list[int], list[int]]:
    """Return where the program headers and the section headers are."""
    programs, sections = struct.unpack_from("<QQ", content, 32)
    program_count, section_count = (
        struct.unpack_from("<H", content, place)[0] for place in (56, 60)
    )
    return (
        [programs + _PROGRAM_HEADER * index for index in range(min(program_count, 100))],
        [sections + _SECTION_HEADER * index for index in range(min(section_count, 100))],
    )


def _program_header(rng: random.Random, content: bytearray) -> None:
    headers, _ = _tables(content)
    if headers:
        field_at = rng.choice(((0, 4), (4, 4), (8, 8), (16, 8), (32, 8), (40, 8), (48, 8)))
        _number(rng, content, rng.choice(headers) + field_at[0], field_at[1])


def _section_header(rng: random.Random, content: bytearray) -> None:
    _, headers = _tables(content)
    if headers:
        field_at = rng.choice(((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4)))
        _number(rng, content, rng.choice(headers) + field_at[0], field_at[1])


def _copied_section_header(rng: random.Random, content: bytearray) -> None:
    """Let two sections be the same: overlapping tables are read as often as they are named."""
    _, headers = _tables(content)
    if headers:
        source, target = rng.choice(headers), rng.choice(headers)
        if max(source, target) + _SECTION_HEADER <= len(content):
            content[target : target + _SECTION_HEADER] = content[source : source + _SECTION_HEADER]


def _section_content(rng: random.Random, content: bytearray) -> tuple[int, int]:
    """Return offset and size of a section that is read, as far as the file has it."""
    try:
        sections = ElfImage(bytes(content)).sections
    except ElfError:
        return 0, 0
    wanted = [section for section in sections if section.name in _READ and section.size]
    if not wanted:
        return 0, 0
    section = rng.choice(wanted)
    return min(section.offset, len(content)), section.size


_READ = (
    *(".eh_frame", ".eh_frame", ".dynsym", ".symtab", ".dynstr", ".rela.plt", ".rela.dyn", ".plt"),
    *(".plt.got", ".plt.sec", ".text", ".rodata", ".dynamic", ".gnu.version", ".note.gnu.build-id"),
)


def _bytes_of_section(rng: random.Random, content: bytearray) -> None:
    start, size = _section_content(rng, content)
    _some_bytes(rng, content, start, size)


def _number_in_section(rng: random.Random, content: bytearray) -> None:
    start, size = _section_content(rng, content)
    if size >= 8:
        width = rng.choice((1, 2, 4, 4, 8))
        _number(rng, content, start + rng.randrange(0, size - 7, rng.choice((1, 4))), width)


def _moved_in_section(rng: random.Random, content: bytearray) -> None:
    """Copy a part of a section over another part: entries twice, and references that are off."""
    start, size = _section_content(rng, content)
    size = min(size, len(content) - start)
    if size >= 2:
        length = min(rng.choice((4, 16, 24, 64, 400)), size // 2)
        source = start + rng.randrange(size - length + 1)
        target = start + rng.randrange(size - length + 1)
        content[target : target + length] = content[source : source + length]


def _filled_section(rng: random.Random, content: bytearray) -> None:
    """Fill a part of a section with one pattern, as a file does that is made to be slow."""
    start, size = _section_content(rng, content)
    size = min(size, len(content) - start)
    if size > 0:
        pattern = rng.choice(
            (b"\0", b"\xff", b"\xe8", b"\x0a", b"\x80", b"\xe8\0\0\0\0", b"\x0f\x84\0\0\0\0", b"S")
        )
        length = rng.randrange(size) + 1
        place = start + rng.randrange(size - length + 1)
        filling = pattern * (length // len(pattern) + 1)
        content[place : place + length] = filling[:length]


def _cut(rng: random.Random, content: bytearray) -> None:
    del content[rng.randrange(1, len(content) + 1) :]


def _anywhere(rng: random.Random, content: bytearray) -> None:
    _some_bytes(rng, content)


_Mutation = Callable[[random.Random, bytearray], None]


def _guarded(mutation: _Mutation) -> _Mutation:
    """Leave a file alone that has lost its header."""

    def mutate(rng: random.Random, content: bytearray) -> None:
        if len(content) >= _SECTION_HEADER:
            mutation(rng, content)

    return mutate


_MUTATIONS = tuple(
    _guarded(mutation)
    for mutation in (
        *(_header, _program_header, _section_header, _section_header, _copied_section_header),
        *(_bytes_of_section, _bytes_of_section, _number_in_section, _number_in_section),
        *(_number_in_section, _moved_in_section, _moved_in_section, _filled_section),
        *(_cut, _anywhere),
    )
)


def seed_files(folder: Path) -> tuple[bytes, ...]:
    """Return small sound files, compiled in *folder*: locks of the GIL's shape, transactions."""
    programs: list[Path] = []
    for build in BUILDS:
        if build.name in _BUILDS:
            program = build_program(build, folder)
            programs += [program, stripped(program)]
    programs.append(built(folder, "rpython", RPYTHON["pie"]))
    programs.append(built(folder, "itm", ITM["static"]))
    return (*(program.read_bytes() for program in programs), _like_python(folder))


def _like_python(folder: Path) -> bytes:
    """Return a library that `identify` takes for a CPython, with the lock of one."""
    source = folder / "python.c"
    source.write_text(
        "const unsigned long Py_Version = 0x030b02f0;\n"
        "long _PyRuntime[64], PyCode_Type[8];\n"
        'const char text[] = "3.11.2";\n'
    )
    build = next(build for build in BUILDS if build.name == _BUILDS[0])
    library = folder / "libpython.so"
    lock = WORKLOADS / "gil" / "lock.c"
    visible = "-fvisibility=default"
    command = ["gcc", "-pthread", *build.flags, visible, "-o", str(library), str(lock), str(source)]
    subprocess.run(command, check=True)
    return library.read_bytes()


def main() -> int:
    """Run for as long as the command line says; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="the first one (default: 0)")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="a folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(seed_files(Path(folder)))
    end = time.monotonic() + arguments.seconds
    seeds = range(arguments.seed, sys.maxsize)
    failures = fuzzer.run(seeds, lambda: time.monotonic() < end)
    for failure in failures:
        arguments.failures.mkdir(parents=True, exist_ok=True)
        path = arguments.failures / f"elf-{failure.seed}"
        path.write_bytes(failure.content)
        sys.stdout.write(f"seed {failure.seed}: {failure.reason}: {path}\n")
    sys.stdout.write(
        f"elf: {fuzzer.executions} executions, {len(fuzzer.outcomes)} distinct outcomes, "
        f"{len(failures)} failures\n"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
