"""Where probes belong in a library that deals with its lock as PyPy does."""

from pathlib import Path

import pytest

from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.pypy.sites.lock_functions import find_lock_functions
from gilscope.runtimes.pypy.sites.resolve import resolve_sites
from support.elf.disassembly import instructions
from support.gil.pypy_library import GIVES, SLOW, Library, compiled


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Return one that tells nothing of frames."""
    return compiled(tmp_path_factory.mktemp("pypy"))


def _entry(library: Library) -> tuple[int, int]:
    """Return the first instruction of the slow path that the kernel emulates.

    And how many words have been pushed by then.
    """
    start = library.symbols["slow"]
    for pushed, each in enumerate(instructions(library.image, start, start + 32)):
        if library.image.architecture.is_emulated(each.code):
            return each.address, pushed
        assert "push" == each.mnemonic
    raise AssertionError("nothing but pushes")


def test_a_wait_begins_and_ends_on_the_contended_path(library: Library) -> None:
    """
    On an instruction at its beginning, and behind having got the lock; a yield by its call.
    """
    functions = find_lock_functions(library.image)
    sites = resolve_sites(library.image)

    (wait,) = sites.waits
    (given,) = sites.forced_drops
    assert (_entry(library)[0], functions.taken, functions.given) == (
        wait.call.vaddr,
        wait.after.vaddr,
        given.vaddr,
    )
    assert all(
        library.image.file_offset(site.vaddr) == site.offset
        for site in (wait.call, wait.after, given)
    )
    assert ((), (), (), (), ()) == (
        sites.yields,
        sites.acquires,
        sites.releases,
        sites.forced_takes,
        sites.sleeps,
    )


def test_every_probe_is_cheap(library: Library) -> None:
    """
    The kernel emulates its instruction.
    """
    sites = resolve_sites(library.image)
    image = library.image

    assert all(
        image.architecture.is_emulated(image.bytes_at(site.offset, 15))
        for site in (sites.waits[0].call, sites.waits[0].after, *sites.forced_drops)
    )


def test_who_waits_is_told_by_where_it_returns_to(library: Library) -> None:
    """
    The return address lies above all that has been pushed.
    """
    functions = find_lock_functions(library.image)
    entry, *yields = resolve_sites(library.image).callers
    address, pushed = _entry(library)

    assert (address, False, 8 + 8 * pushed) == (entry.pc, entry.made_to_yield, entry.cfa_offset)
    assert list(functions.returns) == [rule.pc for rule in yields]
    assert all(rule.made_to_yield for rule in yields)


def test_an_entry_behind_a_landing_pad(tmp_path: Path) -> None:
    """
    Builds with control-flow protection begin with an instruction that is dear to probe.
    """
    exported = '__attribute__((noipa, optimize("no-omit-frame-pointer"))) void'
    source = SLOW.replace("__attribute__((noipa)) static void", exported) + GIVES
    library = compiled(tmp_path, source, option="-fcf-protection=full")
    (wait,) = resolve_sites(library.image).waits
    start = library.symbols["slow"]
    first, *following = instructions(library.image, start, start + 32)

    assert "endbr64" == first.mnemonic
    assert wait.call.vaddr == following[0].address


def test_facts_are_what_was_found(library: Library) -> None:
    """
    Without a table of types there are no frames, and that is said; no version is guessed.
    """
    sites = resolve_sites(library.image)

    assert {name: library.symbols[name] for name in ("lock", "waiting")} == sites.facts
    stacks, work = sites.checks[-2:]
    assert stacks.startswith("stacks are not read: this PyPy has no table of its types")
    assert work == "garbage collection and compilation are not told without them"


def test_the_version_is_a_string(tmp_path: Path) -> None:
    """
    That of the language, and PyPy's own behind it.
    """
    text = 'const char version[] = "\\0003.9.16 (7.3.11+dfsg-2, Feb 06 2023)";'
    facts = resolve_sites(compiled(tmp_path, more=text).image).facts

    assert (3 << 16 | 9 << 8 | 16, 7 << 16 | 3 << 8 | 11) == (facts["python"], facts["pypy"])


def test_two_versions_are_none(tmp_path: Path) -> None:
    """
    None of them is chosen.
    """
    text = "".join(
        f'const char v{at}[] = "\\000{version} (7.3.11)";'
        for at, version in enumerate(("3.9.16", "3.9.17"))
    )

    assert "python" not in resolve_sites(compiled(tmp_path, more=text).image).facts


def test_what_is_damaged_is_refused(library: Library) -> None:
    """
    With the reason: another processor, no section headers, no program headers.
    """
    whole = library.image.bytes_at(0, 1 << 12).ljust(1 << 13, b"\0")
    for damaged, words in (
        (whole[:18] + b"\xb7\0" + whole[20:], "built for aarch64"),
        (whole[:40] + bytes(8) + whole[48:58] + bytes(6) + whole[64:], "no section headers"),
    ):
        with pytest.raises(GilCodeNotFound, match=words):
            resolve_sites(ElfImage(damaged))
    with pytest.raises(ElfError):
        resolve_sites(ElfImage(whole[:64]))
