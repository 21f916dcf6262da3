"""The resolver on small programs with a lock of the GIL's shape, whole and damaged."""

import random
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.sites import Site, Sites
from support.gil.lock_program import BUILDS, Build, build_program, call_sites, stripped

_PLAIN = BUILDS[0]
_FIXED = next(build for build in BUILDS if build.name.startswith("fixed"))
_RISCV = b"\xf3\x00"


@pytest.fixture(scope="module", params=BUILDS, ids=[build.name for build in BUILDS])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program in one of the ways."""
    return build_program(request.param, tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module", params=[_PLAIN, _FIXED], ids=[_PLAIN.name, _FIXED.name])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Build the program as a library and as an executable, without symbols."""
    program = build_program(request.param, tmp_path_factory.mktemp("image"))
    return stripped(program).read_bytes()


def _sites(program: Path) -> Sites:
    return resolve_sites(ElfImage(program.read_bytes()))


def _calls(program: Path, callee: str, *callers: str) -> list[int]:
    return sorted(
        site for site, name in call_sites(program, callee)[callee].items() if name in callers
    )


def _vaddrs(sites: Iterable[Site]) -> list[int]:
    return [site.vaddr for site in sites]


def _mnemonics(program: Path) -> dict[int, str]:
    listing = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", str(program)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.finditer(r"^ *([0-9a-f]+):\s+(\w+)", listing, re.MULTILINE)
    return {int(line[1], 16): line[2] for line in found}


def test_waits_are_the_timed_waits_of_take_gil(program: Path) -> None:
    """
    The disassembler's calls of pthread_cond_timedwait in take_gil are found, no others.
    """
    found = _sites(program).waits

    assert _calls(program, "pthread_cond_timedwait", "take_gil") == _vaddrs(
        pause.call for pause in found
    )


def test_yields_are_the_waits_of_drop_gil(program: Path) -> None:
    """
    The calls of pthread_cond_wait in drop_gil are found; a queue's are not.
    """
    found = _sites(program).yields

    assert _calls(program, "pthread_cond_wait", "drop_gil") == _vaddrs(
        pause.call for pause in found
    )


def test_acquires_are_the_signals_of_take_gil(program: Path) -> None:
    """
    The calls of pthread_cond_signal in take_gil are where the lock has been taken.
    """
    expected = _calls(program, "pthread_cond_signal", "take_gil")

    assert expected == _vaddrs(_sites(program).acquires)


def test_releases_are_all_other_signals(program: Path) -> None:
    """
    Every signal outside take_gil may be a release: its argument tells at run time.
    """
    expected = _calls(program, "pthread_cond_signal", "drop_gil", "queue_get", "queue_put")

    assert expected == _vaddrs(_sites(program).releases)


def test_the_probe_behind_a_wait_is_on_a_conditional_jump(program: Path) -> None:
    """
    Behind a call whose result is compared at once, the jump is the place for the second probe.
    """
    found = _sites(program)
    mnemonics = _mnemonics(program)

    jumps = {mnemonics[pause.after.vaddr] for pause in (*found.waits, *found.yields)}

    assert jumps <= {"je", "jne"}


def test_offsets_are_those_of_the_bytes_in_the_file(program: Path) -> None:
    """
    At each site's file offset stands the call instruction.
    """
    found = _sites(program)
    content = program.read_bytes()
    calls = [*found.acquires, *found.releases]
    calls += [pause.call for pause in (*found.waits, *found.yields)]

    opcodes = {content[site.offset : site.offset + 2] for site in calls}

    assert all(opcode == b"\xff\x15" or opcode.startswith(b"\xe8") for opcode in opcodes)


def test_symbols_make_no_difference(program: Path) -> None:
    """
    Without symbols the same sites are found; only the comparison with symbols is left out.
    """
    whole, bare = _sites(program), _sites(stripped(program))

    assert "the file's symbols agree: drop_gil, take_gil" in whole.checks
    assert "the file has no symbols of take_gil and drop_gil to compare with" in bare.checks
    assert (whole.waits, whole.yields, whole.acquires, whole.releases, whole.callers) == (
        bare.waits,
        bare.yields,
        bare.acquires,
        bare.releases,
        bare.callers,
    )


def test_calls_through_the_got_are_reported(program: Path) -> None:
    """
    A build without PLT says that its probes are dear, and no other build does.
    """
    warnings = [check for check in _sites(program).checks if "-fno-plt" in check]

    assert int(program.name.startswith("no-plt")) == len(warnings)


@pytest.mark.parametrize("symbol", ["take_gil", "drop_gil"])
def test_symbols_that_disagree_are_refused(tmp_path: Path, symbol: str) -> None:
    """
    Where a symbol of the lock names other code than what was found, both are named.
    """
    program = build_program(_PLAIN, tmp_path)
    renamed = tmp_path / "renamed"
    swap = [f"--redefine-sym={symbol}=other", f"--redefine-sym=queue_wait={symbol}"]
    subprocess.run(["objcopy", *swap, str(program), str(renamed)], check=True)
    entry = next(
        function.vaddr
        for function in ElfImage(program.read_bytes()).functions
        if function.name == symbol
    )

    with pytest.raises(GilCodeNotFound, match=rf"symbol.*{symbol}|{entry:#x}"):
        _sites(renamed)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([("PyCOND_", "XyCOND_"), ("PyMUTEX_", "XyMUTEX_"), ("_gil", "_gix")], "messages"),
        ([("PyEval_RestoreThread", "XyEval_RestoreThread"),
          ("PyEval_AcquireThread", "XyEval_AcquireThread")], "does not lead to it"),
        ([("pthread_cond_timedwait", "pthread_cond_timedweit")], "nothing in the file calls"),
        ([("pthread_cond_signal", "pthread_cond_signel")], "no function waits with a time-out"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(
    image: bytes, changes: list[tuple[str, str]], reason: str
) -> None:
    """
    Without messages, an entry from the C API or the library calls, the reason says which.
    """
    changed = image
    for old, new in changes:
        assert old.encode() in changed
        changed = changed.replace(old.encode(), new.encode())

    with pytest.raises(GilCodeNotFound, match=reason):
        resolve_sites(ElfImage(changed))


def test_other_processors_are_refused(image: bytes) -> None:
    """
    A RISC-V file is refused by name.
    """
    changed = image[:18] + _RISCV + image[20:]

    with pytest.raises(GilCodeNotFound, match="built for riscv; only x86-64 and aarch64"):
        resolve_sites(ElfImage(changed))


def test_a_file_without_unwind_table_is_refused(tmp_path: Path) -> None:
    """
    Where nothing tells the bounds of functions, no site is guessed.
    """
    program = build_program(_PLAIN, tmp_path)
    bare = tmp_path / "bare"
    remove = ["objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr"]
    subprocess.run([*remove, str(program), str(bare)], check=True)

    with pytest.raises(GilCodeNotFound, match=r"no unwind table"):
        _sites(bare)


def test_a_file_without_section_headers_is_refused(image: bytes) -> None:
    """
    A file whose section headers were removed is refused with that reason.
    """
    changed = bytearray(image)
    changed[40:48] = bytes(8)
    changed[60:64] = bytes(4)

    with pytest.raises(GilCodeNotFound, match="no section headers"):
        resolve_sites(ElfImage(bytes(changed)))


def test_an_unrelated_program_is_refused() -> None:
    """
    A program that has no such lock is refused, not searched for something similar.
    """
    program = shutil.which("true")
    assert program is not None

    with pytest.raises(GilCodeNotFound):
        _sites(Path(program))


def _everything(content: bytes) -> None:
    image = ElfImage(content)
    resolve_sites(image)
    _ = image.needed, image.interpreter


def _error(content: bytes) -> str:
    """Return the name of what reading the image raises, empty for nothing."""
    try:
        _everything(content)
    except (ElfError, GilCodeNotFound) as error:
        return type(error).__name__
    return ""


def test_a_truncated_file_is_refused(image: bytes) -> None:
    """
    Wherever the file is cut off, ElfError says so; nothing else is raised.
    """
    found = {_error(image[:size]) for size in range(0, len(image), 37)}

    assert {"ElfError"} == found


@pytest.mark.parametrize("seed", range(4))
def test_a_corrupt_file_raises_nothing_unexpected(image: bytes, seed: int) -> None:
    """
    Whatever bytes are changed, the outcome is sites, ElfError or GilCodeNotFound.
    """
    rng = random.Random(seed)  # noqa: S311 (repeatable, not secret)
    for _ in range(300):
        changed = bytearray(image)
        for _ in range(rng.choice((1, 1, 4, 30))):
            position = rng.choice((rng.randrange(len(changed)), rng.randrange(0x400)))
            changed[position] = rng.choice((0, 0xFF, 0x7F, rng.randrange(256)))

        assert _error(bytes(changed)) in {"", "ElfError", "GilCodeNotFound"}


def test_take_gil_may_have_copies(tmp_path: Path) -> None:
    """
    A compiler's second copy of take_gil, as in CPython 3.8, is found as well.
    """
    build = Build("copied", (*_PLAIN.flags, "-DCOPIED_TAKE"))
    program = build_program(build, tmp_path)
    found = _sites(program)

    assert 2 == len(found.waits)
    assert _calls(program, "pthread_cond_timedwait", "take_gil") == _vaddrs(
        pause.call for pause in found.waits
    )
