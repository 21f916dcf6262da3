"""Programs that were compiled once are loaded for every machine and every request."""

import struct
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.assets.files import asset
from gilscope.bpf import loader
from gilscope.bpf.compile.ahead import find_ahead, write_ahead
from gilscope.bpf.compile.object import Compiled
from gilscope.bpf.compile.source import flatten
from gilscope.bpf.features import Features
from gilscope.bpf.info import map_definition
from gilscope.bpf.loader import ENVIRONMENT, Loading, compile_ahead
from gilscope.bpf.map import Table
from gilscope.bpf.request import Request
from gilscope.bpf.ringbuf import Ring
from gilscope.errors import KernelOrBccMissing
from gilscope.gil.probes import program as gil
from gilscope.locks import program as locks
from gilscope.transactions import program as transactions

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PROGRAMS = (gil, locks, transactions)
_OLD = Features(uprobe_links=False, tables_may_grow=False)
_PAGE_BYTES = 4096
_EXIT = struct.pack("<BBhi", 0x95, 0, 0, 0)
# A call of bpf_get_attach_cookie, and of nothing.
_GET_COOKIE = struct.pack("<BBhi", 0x85, 0, 0, 174)
_NO_HELPER = struct.pack("<BBhi", 0x85, 0, 0, 0x7FFF)
# As in test_verifier.py.
_MOST_LOOKED_AT = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make programs` makes."""
    made = tmp_path_factory.mktemp("ahead")
    for of in _PROGRAMS:
        compile_ahead(of.whole_request(), made)
    return made


@pytest.fixture(autouse=True)
def _no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_PROGRAMS) == len(list(folder.glob("*.json")))
    monkeypatch.setattr(loader, "_PYTHONS", ("/bin/false",))
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def _request(begin: Callable[[], Loading], monkeypatch: pytest.MonkeyPatch) -> Request:
    asked: list[Request] = []
    for module in _PROGRAMS:
        monkeypatch.setattr(module, "Loading", asked.append)
    begin()
    return asked[0]


def _looked_at(fd: int) -> int:
    lines = Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
    (count,) = [line.split()[1] for line in lines if line.startswith("verified_insns")]
    return int(count)


@pytest.mark.parametrize(
    "begin",
    [
        gil.begin_loading,
        lambda: gil.begin_loading(discover=True, timeline=True),
        lambda: gil.begin_loading(moments=True),
        lambda: gil.begin_loading(features=_OLD),
        locks.begin_loading,
        lambda: locks.begin_loading(moments=True),
        lambda: locks.begin_loading(features=_OLD),
        transactions.begin_loading,
    ],
    ids=[
        "gil",
        "gil-timeline",
        "gil-moments",
        "gil-old-kernel",
        "locks",
        "locks-moments",
        "locks-old-kernel",
        "stm",
    ],
)
def test_one_compilation_is_for_all(
    folder: Path, begin: Callable[[], Loading], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The kernel takes the programs as quickly as others, and tables are as large as was asked.
    """
    request = _request(begin, monkeypatch)
    loaded = Loading(request, None, folder).finish()
    try:
        loaded.programs.load_all()
        maps: dict[str, Table | Ring] = {**loaded.tables, **loaded.rings}
        made = {name: map_definition(found.fileno()) for name, found in maps.items()}
        looked_at = {name: _looked_at(fd) for name, fd in loaded.programs.items()}
    finally:
        loaded.close()

    assert loaded.is_ahead
    assert (set(request.programs), list(request.tables), list(request.rings)) == (
        set(looked_at),
        [name for name in request.tables if name in loaded.tables],
        list(loaded.rings),
    )
    sizes = {
        name: count * (_PAGE_BYTES if name in request.rings else 1)
        for name, count in request.entries.items()
        if name in made
    }
    assert sizes == {name: made[name].max_entries for name in sizes}
    assert {request.table_flags} == {each.flags for each in made.values() if each.type == 1}
    assert {} == {name: count for name, count in looked_at.items() if count > _MOST_LOOKED_AT}


def test_bcc_compiles_where_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Programs that came with gilscope are then passed over.
    """
    request = gil.whole_request()
    assert Loading(request, None, folder).is_ahead
    monkeypatch.setenv(ENVIRONMENT, "bcc")
    loading = Loading(request, None, folder)
    loading.cancel()

    assert not loading.is_ahead


def test_what_an_old_kernel_does_not_have_is_not_looked_at(folder: Path) -> None:
    """
    A helper that does not exist may stand where a parameter says that it is not called.

    Here the one that tells the number of a link is another one, which no kernel has.
    """
    request = gil.whole_request()
    text, found = _found(request, folder)
    calls = sum(code.count(_GET_COOKIE) for code in found.programs.values())
    unknown = {name: _with_unknown_helper(code) for name, code in found.programs.items()}
    path = write_ahead(replace(found, programs=unknown), request, text, folder / "unknown")
    without = {**request.parameters, "HAS_COOKIES": 0}

    loaded = Loading(replace(request, parameters=without), None, path.parent).finish()
    loaded.programs.load_all()
    loaded.close()

    assert calls > 0
    with pytest.raises(KernelOrBccMissing):
        Loading(request, None, path.parent).finish()


def test_a_refusal_is_told_where_nothing_can_compile(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    That BCC is missing is not the whole story then.
    """
    request = gil.whole_request()
    text, found = _found(request, folder)
    refused = replace(found, programs={**found.programs, "on_exec": _EXIT})
    write_ahead(refused, request, text, tmp_path)
    monkeypatch.setattr(loader, "_PYTHONS", (str(_python_without_bcc(tmp_path)),))
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(KernelOrBccMissing, match="did not take the programs that came with"):
        Loading(request, None, tmp_path).finish()
    assert before == len(list(Path("/proc/self/fd").iterdir()))


def _found(request: Request, folder: Path) -> tuple[str, Compiled]:
    probes = asset("probes")
    text = flatten(request.probe, lambda name: (probes / name).read_text("utf-8"))
    found = find_ahead(request, text, folder)
    assert found is not None
    return text, found


def _with_unknown_helper(instructions: bytes) -> bytes:
    return instructions.replace(_GET_COOKIE, _NO_HELPER)


def _python_without_bcc(folder: Path) -> Path:
    venv.create(folder / "venv")
    return folder / "venv" / "bin" / "python"
