"""Programs that were compiled once are loaded for every machine and every request."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gilscope.bpf import loader
from gilscope.bpf.features import Features
from gilscope.bpf.info import map_definition
from gilscope.bpf.loader import ENVIRONMENT, Loading, compile_ahead
from gilscope.bpf.map import Table
from gilscope.bpf.request import Request
from gilscope.bpf.ringbuf import Ring
from gilscope.gil.probes import program as gil
from gilscope.transactions import program as transactions

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_OLD = Features(uprobe_links=False, tables_may_grow=False)
_PAGE_BYTES = 4096
# As in test_verifier.py.
_MOST_LOOKED_AT = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make programs` makes."""
    made = tmp_path_factory.mktemp("ahead")
    for request in (gil.whole_request(), transactions.whole_request()):
        compile_ahead(request, made)
    return made


@pytest.fixture(autouse=True)
def _no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 == len(list(folder.iterdir()))
    monkeypatch.setattr(loader, "_PYTHONS", ("/bin/false",))
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def _request(begin: Callable[[], Loading], monkeypatch: pytest.MonkeyPatch) -> Request:
    asked: list[Request] = []
    for module in (gil, transactions):
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
        transactions.begin_loading,
    ],
    ids=["gil", "gil-timeline", "gil-moments", "gil-old-kernel", "stm"],
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
        maps: dict[str, Table | Ring] = {**loaded.tables, **loaded.rings}
        made = {name: map_definition(found.fileno()) for name, found in maps.items()}
        looked_at = {name: _looked_at(fd) for name, fd in loaded.programs.items()}
    finally:
        loaded.close()

    assert loaded.is_ahead
    assert (list(request.programs), list(request.tables), list(request.rings)) == (
        list(loaded.programs),
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
