"""Programs that are loaded in a thread while their user is still being imported."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.bpf import loader
from gilscope.bpf.compile.ahead import find_ahead, write_ahead
from gilscope.bpf.info import program_statistics
from gilscope.bpf.loader import Loading, compile_ahead
from gilscope.bpf.request import Request
from gilscope.discovery import agent_stats
from gilscope.discovery.agent_stats import AgentReader
from gilscope.errors import KernelOrBccMissing
from gilscope.gil.probes import program as gil
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.runtimes.site_cache import SiteCache
from gilscope.tracing.tracer import Tracer

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_EXIT = bytes((0x95, 0, 0, 0, 0, 0, 0, 0))
_OF_PYPY = {"on_turn_given", "on_turn_taken", "on_turn_wait", "walk_turn", "walk_turn_holder"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make programs` makes."""
    made = tmp_path_factory.mktemp("ahead")
    compile_ahead(gil.whole_request(), made)
    return made


@pytest.fixture(autouse=True)
def _no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 == len(list(folder.glob("*.json")))
    monkeypatch.setattr(loader, "_PYTHONS", ("/bin/false",))
    monkeypatch.delenv(loader.ENVIRONMENT, raising=False)


@pytest.fixture
def begin(folder: Path) -> Callable[[Request], Loading]:
    """Begin to load in a thread."""
    return lambda request: Loading(request, None, folder).load_meanwhile()


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = _descriptors(), sys.getswitchinterval()
    yield
    assert before == (_descriptors(), sys.getswitchinterval())


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_they_are_there_when_they_are_wanted(begin: Callable[[Request], Loading]) -> None:
    """
    They are loaded once, and nothing that is done afterwards takes them away.
    """
    request = gil.whole_request()
    loading = begin(request)

    loaded = loading.finish()
    loading.cancel()

    assert loaded.is_ahead
    assert set(request.programs) - request.later == set(loaded.programs)
    assert all(table.fileno() >= 0 for table in loaded.tables.values())
    loaded.close()


def test_who_does_not_want_them_any_more_gives_them_up(
    begin: Callable[[Request], Loading],
) -> None:
    """
    As where the port is taken, which is seen later.
    """
    loading = begin(gil.whole_request())

    loading.cancel()
    loading.cancel()


def test_what_the_kernel_refuses_is_told_to_who_wants_them(folder: Path, tmp_path: Path) -> None:
    """
    Not to who has only begun; the compiler, which is not there, is asked first.
    """
    request = gil.whole_request()
    path = next(folder.glob("*.json"))
    text = loader._text(request)  # noqa: SLF001 - the one that the file was made from
    found = find_ahead(request, text, path.parent)
    assert found is not None
    refused = replace(found, programs={**found.programs, "on_exec": _EXIT})
    write_ahead(refused, request, text, tmp_path)

    loading = Loading(request, None, tmp_path).load_meanwhile()

    with pytest.raises(KernelOrBccMissing, match="exit status 1"):
        loading.finish()
    other = Loading(request, None, tmp_path).load_meanwhile()
    other.cancel()


def test_what_is_for_few_processes_is_loaded_for_the_first_of_them(
    begin: Callable[[Request], Loading],
) -> None:
    """
    PyPy's are a third of all that the kernel would have to check at each start.
    """
    with GilProbe(begin(gil.whole_request())) as probe:
        assert _OF_PYPY.isdisjoint(probe.programs)
        assert {"on_wait", "read_stack", "on_fork"} <= set(probe.programs)

        fd = probe.programs["on_turn_wait"]

        assert {"on_turn_wait"} == _OF_PYPY & set(probe.programs)
        assert fd == probe.programs["on_turn_wait"]


def test_one_may_be_loaded_while_the_agent_tells_of_itself(
    begin: Callable[[Request], Loading], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The first PyPy may be attached to in another thread, during a scrape.
    """
    with GilProbe(begin(gil.whole_request())) as probe:

        def slow_statistics(fd: int) -> object:
            probe.programs["on_turn_wait"]
            return program_statistics(fd)

        monkeypatch.setattr(agent_stats, "program_statistics", slow_statistics)
        account = GilAccount(probe, SiteCache(tmp_path))
        state = AgentReader(Tracer(account), 0).read()
        account.close()

    assert state.bpf_misses is not None
