"""Figures of regions while agents and processes come and go: None where something is missing."""

from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import Workload, started
from gilscope.gil.tracing.account import GilAccount
from support.commands.serve import serving
from support.tracing.regions import regions_given, with_client

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"


def _told(workload: Workload, command: str) -> Any:
    workload.command(command)
    (figure,) = workload.answer().values()
    return figure


def _commands(workload: Workload, *commands: str) -> list[Any]:
    return [_told(workload, command) for command in commands]


def test_agent_is_killed_and_another_one_comes(tmp_path: Path) -> None:
    """
    A region in which the first one died has no figures; with the next one they are there again.
    """
    path = tmp_path / "regions.sock"
    with started(with_client([_PYTHON], path), "region_steps.py") as workload:
        options = ("--regions", str(path), "-p", str(workload.pid))
        with serving(*options) as service:
            assert [True, True, 0] == _commands(workload, "connect", "begin", "end")
            _told(workload, "begin")
            service.command.process.kill()
            service.command.process.wait()
            assert [None, True, None] == _commands(workload, "end", "begin", "end")
        with serving(*options) as service:
            assert [True, True, 0] == _commands(workload, "connect", "begin", "end")
            _told(workload, "begin")
            assert 0 == service.end().exit_code
        assert _told(workload, "end") is None
    assert not path.exists()


def test_process_is_dropped_and_attached_again(region_tracer: GilAccount, tmp_path: Path) -> None:
    """
    What it waits between the two is not counted.
    """
    path = tmp_path / "regions.sock"
    with (
        started(with_client([_PYTHON], path), "region_steps.py") as workload,
        regions_given(region_tracer, path),
    ):
        region_tracer.attach(workload.pid)
        assert [True, True] == _commands(workload, "connect", "begin")
        region_tracer.attach(workload.pid)
        assert _told(workload, "end") is None
        assert [True, True, 0] == _commands(workload, "connect", "begin", "end")


def test_child_is_told_nothing_of_its_parent(region_tracer: GilAccount, tmp_path: Path) -> None:
    """
    Nor of itself, as long as it is not traced; what the parent has goes on.
    """
    path = tmp_path / "regions.sock"
    with (
        started(with_client([_PYTHON], path), "region_steps.py") as workload,
        regions_given(region_tracer, path),
    ):
        region_tracer.attach(workload.pid)
        assert [True, True] == _commands(workload, "connect", "begin")
        assert "[None, False]" == _told(workload, "child")
        assert 0 == _told(workload, "end")
