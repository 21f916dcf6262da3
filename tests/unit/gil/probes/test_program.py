"""What is asked of the kernel: with room for what the limits say, and in the way that it allows."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gilscope.assets.files import asset
from gilscope.bpf import features
from gilscope.bpf.features import TRACEPOINTS, Features
from gilscope.bpf.request import Request
from gilscope.gil.probes import program
from gilscope.gil.probes.program import Limits
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64

_GROWING = Features(uprobe_links=False, tables_may_grow=True)
_FULL = Features(uprobe_links=False, tables_may_grow=False)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What would have been loaded."""
    seen: list[Request] = []
    monkeypatch.setattr(program, "Loading", seen.append)
    return seen


def _defines(asked: list[Request], **options: Any) -> Mapping[str, int]:
    asked.clear()
    program.begin_loading(**{"features": Features(uprobe_links=True), **options})
    (made,) = asked
    return made.defines()


def test_the_sizes_are_the_limits(asked: list[Request]) -> None:
    """
    Each table or ring that the probes leave open has the size that a limit says, and no other has.
    """
    limits = Limits(targets=1, gils=2, threads=3, caller_rules=4, locks=5, notice_pages=8)
    expected = {
        "targets": 1,
        "gils": 2,
        "threads": 3,
        "callers": 4,
        "locks": 5,
        "notices": 8,
        "histograms": 8,
        "lost_events": 16,
    }
    asked_for = {f"ENTRIES_OF_{table}": size for table, size in expected.items()}
    files = sorted(asset("probes").glob("[cg]*/*.bpf.h"))
    left_open = re.findall(r",\s+ENTRIES\((\w+)\)", "".join(map(Path.read_text, files)))

    assert asked_for.items() <= _defines(asked, limits=limits).items()
    assert sorted(left_open) == sorted(asked[0].entries)


def test_every_parameter_has_a_value(asked: list[Request]) -> None:
    """
    Those that the probes ask for, whatever is asked of them, and no others.
    """
    folders = ("common", "gil", "python", "pypy")
    files = [file for folder in folders for file in asset(f"probes/{folder}").glob("*.bpf.h")]
    text = "".join(map(Path.read_text, files))
    named = set(re.findall(r"PARAMETER\(([A-Z_]+)\)", text))

    for options in ({}, {"timeline": True}, {"moments": True, "discover": True}):
        _defines(asked, **options)
        assert named == set(asked[0].parameters)


def test_the_place_of_a_gils_members_is_given(asked: list[Request]) -> None:
    """
    As user space reads them.
    """
    assert GLIBC_X86_64.macros().items() <= _defines(asked).items()


def test_every_exec_is_noticed_where_somebody_discovers(asked: list[Request]) -> None:
    """
    Otherwise only those of traced processes are.
    """
    assert 1 == _defines(asked, discover=True)["DISCOVER"]
    assert 0 == _defines(asked)["DISCOVER"]


def test_spans_are_sent_as_far_as_somebody_draws_them(asked: list[Request]) -> None:
    """
    None, those among which a moment is chosen, or all; who wants all has the moment too.
    """
    bounds = {"SPANS_A_SECOND": 7, "LEAST_HOLD_NS": 8}
    limits = Limits(spans_a_second=7, least_hold_ns=8, span_pages=2)

    assert 0 == _defines(asked, limits=limits)["TIMELINE"]
    assert ("spans" in asked[0].rings, asked[0].entries["spans"]) == (False, 1)
    assert {"TIMELINE": 1, **bounds}.items() <= _defines(asked, limits=limits, moments=True).items()
    assert ("spans" in asked[0].rings, asked[0].entries["spans"]) == (True, 2)
    whole = _defines(asked, limits=limits, moments=True, timeline=True)
    assert (1, 0) == (whole["TIMELINE"], whole["SPANS_A_SECOND"])
    # 64 bytes a span: 2 pages are 8192 bytes, a quarter of which is 2048.
    assert 2048 // 64 == whole["SPANS_A_NOTICE"]


@pytest.mark.parametrize(("has_links", "kind"), [(True, "uprobe_multi"), (False, "uprobe")])
def test_programs_are_loaded_for_the_way_they_are_placed(
    asked: list[Request], kind: str, *, has_links: bool
) -> None:
    """
    A program may be used as what it was loaded for only; a perf event brings it no number.
    """
    defines = _defines(asked, features=Features(uprobe_links=has_links))
    (made,) = asked
    kinds = {name: found for name, found in made.programs.items() if name not in TRACEPOINTS}

    assert has_links == bool(defines["HAS_COOKIES"])
    assert {kind} == set(kinds.values())
    assert {"on_acquire", "on_release", "on_wait", "on_wait_return"} <= set(kinds)
    assert {"raw_tracepoint"} == {made.programs[name] for name in TRACEPOINTS}


def test_tables_are_filled_beforehand_where_they_must_not_grow(asked: list[Request]) -> None:
    """
    1 is BPF_F_NO_PREALLOC, which every hash table of the probes takes.
    """
    assert 1 == _defines(asked, features=_GROWING)["TABLE_FLAGS"]
    assert 0 == _defines(asked, features=_FULL)["TABLE_FLAGS"]


def test_every_program_is_in_the_probes(asked: list[Request]) -> None:
    """
    None is asked for that does not exist, and none exists that is not asked for.
    """
    _defines(asked)
    (made,) = asked
    sources = "".join(
        asset(f"probes/gil/{part}.bpf.h").read_text()
        for part in (
            *("waits", "yields", "holder_trace", "semaphore", "turns", "walk"),
            *("holds", "semaphore_holds", "lifetime"),
        )
    )
    found = {
        line.removeprefix("int ").partition("(")[0]
        for line in sources.splitlines()
        if line.startswith("int ")
    }

    assert found == set(made.programs)


def test_inside_a_pid_namespace_the_kernels_ids_are_translated(
    asked: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The namespace is named by the inode and the device of its file.
    """
    own = os.stat("/proc/self/ns/pid")  # noqa: PTH116 - as good as any other way
    monkeypatch.setattr(features, "in_initial_pid_namespace", lambda: False)
    inside = _defines(asked)
    monkeypatch.setattr(features, "in_initial_pid_namespace", lambda: True)
    outside = _defines(asked)

    assert (own.st_ino, own.st_dev) == (
        inside["PID_NAMESPACE_INODE"],
        inside["PID_NAMESPACE_DEVICE"],
    )
    assert (0, 0) == (outside["PID_NAMESPACE_INODE"], outside["PID_NAMESPACE_DEVICE"])
