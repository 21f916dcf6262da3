"""The ELF reader against what the binutils say, and against damaged files."""

import lzma
import re
import subprocess
from pathlib import Path

import pytest

from gilscope.elf.image import ElfError, ElfImage
from support.gil.lock_program import BUILDS, build_program, require_tools, stripped

_SHARED, _FIXED = BUILDS[0], next(build for build in BUILDS if build.name.startswith("fixed"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a shared library with a name, a search path and a build-id."""
    folder = tmp_path_factory.mktemp("library")
    linker = "-Wl,-soname,libname.so.1,-rpath,$ORIGIN/lib:/opt/lib,--build-id=sha1"
    return build_program(_SHARED, folder, linker)


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an executable for a fixed address."""
    return build_program(_FIXED, tmp_path_factory.mktemp("executable"))


@pytest.fixture(scope="module")
def versioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a library that keeps an old version of a function under the same name."""
    require_tools()
    folder = tmp_path_factory.mktemp("versioned")
    source, script, library = folder / "v.c", folder / "v.map", folder / "libv.so"
    source.write_text(
        "int old(void) { return 1; }\nint recent(void) { return 2; }\n"
        '__asm__(".symver old, answer@V_1");\n__asm__(".symver recent, answer@@V_2");\n'
    )
    script.write_text("V_1 { global: answer; local: *; };\nV_2 { global: answer; } V_1;\n")
    _run("gcc", "-shared", "-fPIC", f"-Wl,--version-script={script}", "-o", library, source)
    return library


def _run(*command: object) -> str:
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def _image(path: Path) -> ElfImage:
    return ElfImage(path.read_bytes())


def _symbols(*command: object) -> dict[str, int]:
    """Return the defined functions that nm lists: name -> address."""
    lines = (line.split() for line in _run("nm", *command).splitlines())
    return {line[2]: int(line[0], 16) for line in lines if len(line) == 3 and line[1] in "tT"}


def test_build_id_is_the_one_of_the_note(library: Path) -> None:
    """
    The build-id is the hexadecimal one that readelf prints.
    """
    printed = re.search(r"Build ID: ([0-9a-f]+)", _run("readelf", "-n", library))

    assert printed is not None
    assert printed[1] == _image(library).build_id


def test_a_file_without_build_id_is_known_by_its_digest(tmp_path: Path) -> None:
    """
    Without the note the whole file's SHA-256 takes the place of the build-id.
    """
    library = build_program(_SHARED, tmp_path, "-Wl,--build-id=none")
    digest = _run("sha256sum", library).split()[0]

    assert f"sha256:{digest}" == _image(library).build_id


def test_dependencies_are_read(library: Path) -> None:
    """
    The needed libraries are those given to the linker.
    """
    image = _image(library)

    assert ("libc.so.6",) == image.needed
    assert image.interpreter is None


def test_an_executable_names_its_loader(executable: Path) -> None:
    """
    PT_INTERP of an executable is the path that readelf prints.
    """
    printed = re.search(r"program interpreter: (\S+)\]", _run("readelf", "-l", executable))

    assert printed is not None
    assert printed[1] == _image(executable).interpreter


def test_fixed_and_movable_files_are_told_apart(library: Path, executable: Path) -> None:
    """
    A shared object may be loaded anywhere from 0 on; a non-PIE executable has its address.
    """
    shared, fixed = _image(library), _image(executable)

    assert (True, 0) == (shared.is_pie, shared.segments[0].vaddr)
    assert (False, 0x400000) == (fixed.is_pie, fixed.segments[0].vaddr)


def test_dynamic_functions_are_those_of_nm(library: Path) -> None:
    """
    The defined dynamic functions and their addresses are those that nm lists.
    """
    found = {
        symbol.name: symbol.vaddr
        for symbol in _image(library).dynamic_symbols.values()
        if symbol.is_function
    }

    assert _symbols("--dynamic", "--defined-only", library) == found


def test_functions_come_from_the_symbol_table(library: Path) -> None:
    """
    With a .symtab, static functions are known by name and address; strip takes them away.
    """
    expected = _symbols("--defined-only", library)
    found = {symbol.name: symbol.vaddr for symbol in _image(library).functions}

    assert expected == {name: found.get(name) for name in expected}
    assert "take_gil" in found
    assert () == _image(stripped(library)).functions


def test_functions_come_from_the_mini_debug_file(library: Path, tmp_path: Path) -> None:
    """
    Without a .symtab the functions are those of the compressed ELF file in .gnu_debugdata.
    """
    packed, debuggable = tmp_path / "packed.xz", tmp_path / "debuggable.so"
    packed.write_bytes(lzma.compress(library.read_bytes()))
    section = f".gnu_debugdata={packed}"
    _run("objcopy", "--add-section", section, stripped(library), debuggable)

    assert _image(library).functions == _image(debuggable).functions


def test_a_damaged_mini_debug_file_is_refused(library: Path, tmp_path: Path) -> None:
    """
    A .gnu_debugdata that ends too early is reported, not taken for one without functions.
    """
    packed, debuggable = tmp_path / "packed.xz", tmp_path / "debuggable.so"
    packed.write_bytes(lzma.compress(library.read_bytes())[:-40])
    section = f".gnu_debugdata={packed}"
    _run("objcopy", "--add-section", section, stripped(library), debuggable)

    with pytest.raises(ElfError, match="gnu_debugdata"):
        _ = _image(debuggable).functions


def test_the_default_version_of_a_symbol_is_found(versioned: Path) -> None:
    """
    Of two versions under one name the one that new programs link to is returned.
    """
    recent = _symbols("--defined-only", versioned)["recent"]

    assert recent == _image(versioned).default_version_symbol("answer")
    assert recent == _image(versioned).dynamic_symbols["answer"].vaddr


def test_an_undefined_symbol_has_no_default_version(library: Path) -> None:
    """
    A function that the file only calls is not one that it defines.
    """
    assert _image(library).default_version_symbol("pthread_cond_wait") is None


def test_a_name_that_no_symbol_has_costs_no_symbol(tmp_path: Path) -> None:
    """
    A large program that is no Python is asked for a handful of names, and has none of them.
    """
    require_tools()
    number, source, library = 2000, tmp_path / "many.c", tmp_path / "many.so"
    source.write_text("".join(f"int symbol_{at};\n" for at in range(number)))
    _run("gcc", "-shared", "-o", library, source)
    image = _image(library)
    begin = image.budget.steps

    # The end of a name is in the table of strings, but is none.
    assert image.default_version_symbol("PyEval_RestoreThread") is None
    assert image.budget.steps - begin < number / 10
    assert image.default_version_symbol("bol_7") is None
    assert image.budget.steps - begin > number
    assert image.default_version_symbol("symbol_7") is not None


def test_bytes_are_read_where_they_are_loaded(executable: Path) -> None:
    """
    What is read at a function's address is what objcopy extracts from there.
    """
    image = _image(executable)
    text = image.section(".text")
    assert text is not None

    assert image.section_bytes(text)[:64] == image.read(text.vaddr, 64)
    assert text.offset == image.file_offset(text.vaddr)


def test_an_address_outside_the_file_is_refused(library: Path) -> None:
    """
    An address that no segment brings from the file raises ElfError.
    """
    image = _image(library)
    bss = image.section(".bss")
    assert bss is not None

    with pytest.raises(ElfError, match="no PT_LOAD segment holds the address"):
        image.file_offset(bss.vaddr + bss.size - 1)


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({0: 0}, "not an ELF file"),
        ({4: 1}, "a 32-bit ELF file"),
        ({5: 2}, "a big-endian ELF file"),
        ({16: 1}, "neither an executable nor a shared object"),
        ({54: 32}, "program headers of 32 bytes"),
        ({58: 40}, "section headers of 40 bytes"),
    ],
)
def test_other_files_are_refused_with_the_reason(
    library: Path, patch: dict[int, int], reason: str
) -> None:
    """
    A file of another kind is refused with the fact that was checked.
    """
    damaged = bytearray(library.read_bytes())
    for offset, value in patch.items():
        damaged[offset] = value

    with pytest.raises(ElfError, match=reason):
        ElfImage(bytes(damaged))


@pytest.mark.parametrize("size", [0, 3, 16, 63])
def test_a_truncated_header_is_refused(library: Path, size: int) -> None:
    """
    A file that ends within its first header raises ElfError.
    """
    with pytest.raises(ElfError, match="truncated or corrupt"):
        ElfImage(library.read_bytes()[:size])


def test_every_kind_of_buffer_is_read_alike(library: Path) -> None:
    """
    A memoryview gives the same facts as bytes.
    """
    content = library.read_bytes()

    assert ElfImage(content).dynamic_symbols == ElfImage(memoryview(content)).dynamic_symbols
    assert ElfImage(content).build_id == ElfImage(memoryview(content)).build_id
