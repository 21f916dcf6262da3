"""Bytes that only read like calls are no sites: a breakpoint there would change the program."""

import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.elf.eh_frame import read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.plt import read_linkage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.branches import scan_branches
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.sites import Sites
from support.gil.lock_program import BUILDS, Build, build_program, require_tools
from support.interpreters.known import ONE_PER_MINOR, Interpreter

_SIGNAL = "pthread_cond_signal"
_PLAIN = next(build for build in BUILDS if build.name == "shared-O2-separate_yield")
_MOVABS = b"\x48\xb8"
_CALL = b"\xe8"


def _image(program: Path) -> ElfImage:
    return ElfImage(program.read_bytes())


def _all_places(sites: Sites) -> set[int]:
    calls = (*sites.acquires, *sites.releases, *sites.forced_drops, *sites.forced_takes)
    pauses = (*sites.waits, *sites.yields)
    return {site.vaddr for site in calls} | {
        site.vaddr for pause in pauses for site in (pause.call, pause.after)
    }


def _same(first: Sites, second: Sites) -> bool:
    return replace(first, build_id="", checks=()) == replace(second, build_id="", checks=())


def _placement(sites: Sites) -> str:
    (found,) = (check for check in sites.checks if "start of an instruction" in check)
    return found


def _calls_of_signal(image: ElfImage) -> set[int]:
    table = read_frame_table(image)
    found = scan_branches(image, table, read_linkage(image), frozenset({_SIGNAL}))
    return {call.site for call in found.library_calls}


def _constant_that_reads_like_a_call(image: ElfImage, vaddr: int) -> bytes:
    """Return a movabs for *vaddr* whose constant reads like a call of pthread_cond_signal."""
    stubs = read_linkage(image).stubs
    stub = min(address for address, name in stubs.items() if name == _SIGNAL)
    behind = vaddr + len(_MOVABS) + len(_CALL) + 4
    return _MOVABS + _CALL + struct.pack("<i", stub - behind) + b"\xff\x00\x00"


def _patched(image: ElfImage, content: bytes, vaddr: int, code: bytes) -> ElfImage:
    offset = image.file_offset(vaddr)
    return ElfImage(content[:offset] + code + content[offset + len(code) :])


@pytest.mark.parametrize("interpreter", ONE_PER_MINOR)
def test_a_constant_in_a_real_interpreter_is_no_release(interpreter: Interpreter) -> None:
    """
    A function that loads the constant has no site, and all other sites stay what they were.
    """
    content = interpreter.elf.read_bytes()
    image = ElfImage(content)
    before = resolve_sites(image)
    # A function that both locks and unlocks, so that a signal in it would be a possible release.
    vaddr = image.dynamic_symbols["PyList_New"].vaddr
    constant = _constant_that_reads_like_a_call(image, vaddr)
    patched = _patched(image, content, vaddr, constant)

    after = resolve_sites(patched)

    assert {vaddr + len(_MOVABS)} == _calls_of_signal(patched) - _calls_of_signal(image)
    assert _same(before, after)
    number = len(_all_places(before))
    assert f"{number} of {number} decoded" in _placement(before)
    assert f"{number} of {number + 1} decoded" in _placement(after)
    assert _placement(after).endswith("; 1 left out")


_CONSTANT = """
.text
.type constant, @function
constant:
{begin}
{before}
.byte 0x48, 0xb8, 0xe8
.reloc ., R_X86_64_PLT32, {function} - 4
.long 0
.byte 0xff, 0, 0
call pthread_mutex_lock@PLT
call pthread_mutex_unlock@PLT
ret
{end}
.size constant, . - constant
.section .note.GNU-stack, "", @progbits
"""
_DESCRIBED = {"begin": ".cfi_startproc", "end": ".cfi_endproc"}
_UNDESCRIBED = {"begin": "", "end": ""}


@pytest.mark.parametrize(
    "where",
    [
        {**_DESCRIBED, "before": ""},
        {**_DESCRIBED, "before": ".byte 0x06"},
        {**_UNDESCRIBED, "before": ""},
    ],
    ids=["in-a-constant", "behind-unknown-bytes", "in-no-function"],
)
def test_what_is_not_shown_to_be_a_call_is_left_out(tmp_path: Path, where: dict[str, str]) -> None:
    """
    In a constant, behind bytes that cannot be decoded and in no function nothing is probed.
    """
    bare = resolve_sites(_image(build_program(_PLAIN, tmp_path)))
    source = tmp_path / "constant.s"
    source.write_text(_CONSTANT.format(**where, function=_SIGNAL))
    build = Build("with-constant", (*_PLAIN.flags, str(source)))
    image = _image(build_program(build, tmp_path))

    found = resolve_sites(image)

    assert 1 + len(bare.releases) + len(bare.acquires) == len(_calls_of_signal(image))
    assert len(_all_places(bare)) == len(_all_places(found))
    assert _placement(found).endswith("; 1 left out")


def test_a_signal_without_a_mutex_is_no_release(tmp_path: Path) -> None:
    """
    A function that signals and takes no lock cannot hold a drop of the GIL.
    """
    source = tmp_path / "signal.c"
    source.write_text(
        "#include <pthread.h>\n"
        "void wake(pthread_cond_t *c) { pthread_cond_signal(c); *(volatile char *)c; }\n"
    )
    build = Build("with-signal", (*_PLAIN.flags, str(source)))
    bare = resolve_sites(_image(build_program(_PLAIN, tmp_path)))
    image = _image(build_program(build, tmp_path))

    found = resolve_sites(image)

    assert 1 + len(bare.releases) + len(bare.acquires) == len(_calls_of_signal(image))
    assert len(bare.releases) == len(found.releases)


@pytest.mark.parametrize("name", ["take_gil", "drop_gil"])
def test_a_lock_that_cannot_be_decoded_is_refused(tmp_path: Path, name: str) -> None:
    """
    Where the code of the GIL begins with bytes of no known instruction, nothing is probed.
    """
    program = build_program(_PLAIN, tmp_path)
    image = _image(program)
    (function,) = (symbol for symbol in image.functions if symbol.name == name)
    patched = _patched(image, program.read_bytes(), function.vaddr, b"\x06")

    with pytest.raises(GilCodeNotFound, match=r"belongs to the GIL, but decoding its function"):
        resolve_sites(patched)


def test_a_refusal_counts_what_only_reads_like_calls(tmp_path: Path) -> None:
    """
    A file whose only timed wait is inside a constant has none.
    """
    require_tools()
    source, library = tmp_path / "constant.s", tmp_path / "library.so"
    text = _CONSTANT.format(**_DESCRIBED, before="", function="pthread_cond_timedwait")
    source.write_text(text)
    subprocess.run(["gcc", "-shared", "-o", str(library), str(source)], check=True)

    with pytest.raises(GilCodeNotFound, match=r"nothing .* \(1 places only read like calls\)"):
        resolve_sites(_image(library))


def test_a_yield_that_cannot_be_decoded_is_not_used(tmp_path: Path) -> None:
    """
    Neither forced drops nor takes are probed where one of them is not certain.
    """
    program = build_program(_PLAIN, tmp_path)
    image = _image(program)
    (loop,) = (
        symbol.vaddr for symbol in image.functions if symbol.name == "eval_frame_handle_pending"
    )

    found = resolve_sites(_patched(image, program.read_bytes(), loop, b"\x06"))

    assert ((), (), ()) == (found.callers, found.forced_drops, found.forced_takes)
    assert found.waits == resolve_sites(image).waits
    assert any("yield was not identified" in check for check in found.checks)
