"""Programs that were compiled once are loaded again without the compiler."""

import errno
import importlib.util
import os
import resource
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from gilscope.bpf import loader, syscalls
from gilscope.bpf.compile.object import Compiled, MapDefinition
from gilscope.bpf.compile.object_cache import ProgramCache
from gilscope.bpf.info import map_definition
from gilscope.bpf.loader import Loaded, Loading
from gilscope.bpf.map import Table
from gilscope.bpf.request import Request
from gilscope.bpf.ringbuf import Ring
from gilscope.doctor.probe_trial import try_probes
from gilscope.errors import KernelOrBccMissing
from gilscope.gil.probes.program import begin_loading
from support.commands.gilscope import gilscope, gilscope_started

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_NO_COMPILER = ("/bin/false",)
_EXIT = struct.pack("<BBhi", 0x95, 0, 0, 0)


class _OneEntry(ProgramCache):
    """A cache in memory, so that a test can look at it and change it."""

    def __init__(self, entry: Compiled | None = None) -> None:
        super().__init__()
        self.entry = entry

    def load(self, key: str) -> Compiled | None:
        assert 64 == len(key)
        return self.entry

    def store(self, key: str, compiled: Compiled) -> None:
        assert 64 == len(key)
        self.entry = compiled


@pytest.fixture(scope="module")
def request_() -> Request:
    """What is asked for by default."""
    loading = begin_loading()
    loading.cancel()
    return loading.request


@pytest.fixture(scope="module")
def cold(request_: Request) -> Iterator[tuple[Loaded, Compiled]]:
    """The programs as the compiler loads them, and what is remembered of them."""
    cache = _OneEntry()
    with_compiler = Loading(request_, cache).finish()
    assert cache.entry is not None
    yield with_compiler, cache.entry
    with_compiler.close()


def _information(loaded: Loaded) -> dict[str, list[str]]:
    """Return what the kernel shows of each program in its own words, less what is its own."""
    shown = {}
    for name, fd in loaded.programs.items():
        lines = Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
        words = ("prog_type", "prog_jited", "prog_tag", "memlock", "verified_insns")
        shown[name] = [line for line in lines if line.startswith(words)]
    return shown


def _maps(loaded: Loaded) -> dict[str, Table | Ring]:
    return {**loaded.tables, **loaded.rings}


def _definitions(loaded: Loaded) -> dict[str, MapDefinition]:
    return {name: map_definition(found.fileno()) for name, found in _maps(loaded).items()}


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_loaded_again_they_are_the_same(
    cold: tuple[Loaded, Compiled], request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Type, instructions (by their hash), size, and all that a map is made from; without a compiler.
    """
    by_compiler, remembered = cold
    monkeypatch.setattr(loader, "_PYTHONS", _NO_COMPILER)
    warm = Loading(request_, _OneEntry(remembered)).finish()
    warm.programs.load_all()

    assert set(by_compiler.programs) == set(warm.programs)
    assert _information(by_compiler) == _information(warm)
    assert all(any("prog_tag" in line for line in lines) for lines in _information(warm).values())
    assert _definitions(by_compiler) == _definitions(warm)
    assert by_compiler.bcc_version == warm.bcc_version
    held = [*warm.programs.values(), *(found.fileno() for found in _maps(warm).values())]
    assert [] == [fd for fd in held if os.get_inheritable(fd)]
    warm.close()


def test_no_descriptor_is_left(
    cold: tuple[Loaded, Compiled], request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Closing gives all of them up, and so does a kernel that refuses one of the programs.
    """
    _, remembered = cold
    monkeypatch.setattr(loader, "_PYTHONS", _NO_COMPILER)
    refused = replace(remembered, programs={**remembered.programs, "on_exec": _EXIT})
    before = _descriptors()

    Loading(request_, _OneEntry(remembered)).finish().close()

    assert before == _descriptors()
    with pytest.raises(KernelOrBccMissing):
        Loading(request_, _OneEntry(refused)).finish()
    assert before == _descriptors()


def test_what_the_kernel_refuses_is_compiled_again(
    cold: tuple[Loaded, Compiled], request_: Request
) -> None:
    """
    And takes the place of what was remembered; this program returns without a value.
    """
    before = _descriptors()
    by_compiler, remembered = cold
    cache = _OneEntry(replace(remembered, programs={**remembered.programs, "on_exec": _EXIT}))

    again = Loading(request_, cache).finish()

    assert _information(by_compiler) == _information(again)
    assert remembered == cache.entry
    again.close()
    assert before == _descriptors()


def test_without_a_cache_it_is_compiled(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A test of the compiler must not be answered from memory.
    """
    monkeypatch.setattr(loader, "_PYTHONS", _NO_COMPILER)

    with pytest.raises(KernelOrBccMissing, match="exit status 1"):
        Loading(request_, cache=None).finish()


def test_doctor_has_the_compiler_work(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Although all that it asks for is remembered.
    """
    Loading(request_).finish().close()
    monkeypatch.setattr(loader, "_PYTHONS", _NO_COMPILER)
    Loading(request_).finish().close()

    assert isinstance(try_probes().failure, KernelOrBccMissing)


def test_record_without_bcc(tmp_path: Path) -> None:
    """
    A recording with remembered programs counts each wait; with nothing remembered BCC is missed.
    """
    bcc = importlib.util.find_spec("bcc")
    assert bcc is not None
    assert bcc.origin is not None
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "__init__.py").write_text("raise ImportError('gone')")
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    folder = str(Path(bcc.origin).parent)
    wrapper = ("unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path / "gone"), folder)
    nothing = {"XDG_CACHE_HOME": str(tmp_path)}
    with started([_PYTHON], "exact_count.py") as workload:
        record = ("record", "--full", "-p", str(workload.pid))
        missed = gilscope(*record, "-d", "0.1", wrapper=wrapper, extra=nothing)
        cold = gilscope(*record, "-d", "0.1")
        with gilscope_started(*record, wrapper=wrapper) as command:
            command.says("Tracing the GIL of")
            truth = exact_counts(workload.run())
            workload.finish()
            warm = command.outcome()

    assert (6, 0, 0) == (missed.exit_code, cold.exit_code, warm.exit_code)
    assert "no Python here can import BCC (gone)" in missed.messages
    assert f"({truth.waiter.convoy_waits}x GIL_CONVOY)" in warm.output


def test_remembered_programs_give_no_rights(tmp_path: Path) -> None:
    """
    Without capabilities the refusal is the one of the compiler: exit code 5.
    """
    nothing = {"XDG_CACHE_HOME": str(tmp_path)}
    wrapper = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    with started([_PYTHON], "exact_count.py") as workload:
        record = ("record", "-p", str(workload.pid), "-d", "0.1")
        unremembered = gilscope(*record, wrapper=wrapper, extra=nothing)
        cold = gilscope(*record)
        warm = gilscope(*record, wrapper=wrapper)

    assert (5, 0, 5) == (unremembered.exit_code, cold.exit_code, warm.exit_code)
    assert unremembered.messages == warm.messages


def test_locked_memory_of_an_old_kernel(
    cold: tuple[Loaded, Compiled], request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Before Linux 5.11 maps are refused for their size: the limit is raised, and comes back.
    """
    _, remembered = cold
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    little = (1 << 16, before[1])
    create = syscalls.create_map

    def create_as_in_5_10(definition: MapDefinition, inner_fd: int) -> int:
        if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == little[0]:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        return create(definition, inner_fd)

    monkeypatch.setattr(syscalls, "create_map", create_as_in_5_10)
    monkeypatch.setattr(loader, "_PYTHONS", _NO_COMPILER)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, little)
    try:
        Loading(request_, _OneEntry(remembered)).finish().close()

        assert little == resource.getrlimit(resource.RLIMIT_MEMLOCK)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)
