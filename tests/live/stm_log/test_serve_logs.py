"""``gilscope serve --stm-log``: what it exposes of logs that grow."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands.doctor import AS_NOBODY
from support.commands.gilscope import eventually, gilscope_started
from support.commands.serve import Scrape, Service, serving
from support.stm_log.program import played_log
from support.stm_log.reading import log_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_FIRST, _SECOND = (played_log("E16", 3000, seed).content for seed in (1, 2))


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that everybody may read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _read_bytes(service: Service, size: int) -> Scrape:
    """Return the first scrape that has read *size* bytes."""

    def look() -> Scrape | None:
        scrape = service.scrape()
        return scrape if scrape.total("gilscope_stm_log_bytes_total") == size else None

    found = eventually(look)
    assert found is not None
    return found


def test_logs_are_served_without_rights(folder: Path) -> None:
    """
    A user who may do nothing but read them gets their figures, which never fall.
    """
    log = folder / "app.log"
    with serving("--stm-log", f"{folder}/*.log", wrapper=AS_NOBODY) as service:
        assert [] == service.scrape().samples("gilscope_stm_log_bytes_total")
        log.write_bytes(_FIRST[:20_000])
        before = _read_bytes(service, 20_000)
        log.write_bytes(_SECOND)
        now = _read_bytes(service, 20_000 + len(_SECOND))

        known = before.counters()
        assert all(now.counters()[name] >= value for name, value in known.items())
        commits = sum(log_of(each).totals.commits for each in (_FIRST[:20_000], _SECOND))
        assert commits == now.total(
            "gilscope_stm_transactions_total", log=str(log), outcome="commit"
        )
        assert 0 == now.total("gilscope_stm_log_lag_bytes")
        errors = now.samples("gilscope_stm_log_errors_total")
        assert {"cut_record": 1.0} == {
            sample.labels["reason"]: sample.value for sample in errors if sample.value
        }
        assert 1 == now.total("gilscope_scrape_success")
        assert "ok\n" == service.get("/healthz").text
        page = service.get("/").text
        assert "<h2>STM logs</h2>" in page
        assert f">{log}<" in page
        assert "cost of a trap" not in page

        outcome = service.end()
    assert 0 == outcome.exit_code
    assert [f"Serving {service.url}metrics. Ctrl-C to end."] == outcome.messages.splitlines()


def test_logs_are_served_beside_processes(folder: Path) -> None:
    """
    One scrape has both.
    """
    (folder / "app.log").write_bytes(_FIRST)
    with serving("-p", str(os.getpid()), "--stm-log", f"{folder}/app.log") as service:
        scrape = _read_bytes(service, len(_FIRST))

        assert os.getpid() in scrape.pids()
        assert "<h2>STM logs</h2>" in service.get("/").text
        assert 0 == service.end().exit_code


def test_serve_needs_something_to_serve() -> None:
    """
    Processes, logs or both.
    """
    with gilscope_started("serve") as command:
        outcome = command.outcome()

    assert 2 == outcome.exit_code
    assert "one of the arguments -p/--pid --match --all --stm-log is required" in outcome.messages
