"""The time for which a CPU limit has kept a process from running."""

import time
from pathlib import Path

import pytest

from gilscope.process.threads.throttling import Throttling, cgroup_folders, parse_throttled_ns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("usage_usec 5\nnr_throttled 2\nthrottled_usec 1500\n", 1_500_000),
        ("nr_periods 9\nnr_throttled 2\nthrottled_time 1500\n", 1500),
        ("usage_usec 5\nuser_usec 5\n", None),
    ],
    ids=["version 2", "version 1", "no limit"],
)
def test_both_versions_of_cgroups(text: str, expected: int | None) -> None:
    """
    Microseconds in one, nanoseconds in the other.
    """
    assert expected == parse_throttled_ns(text)


def test_all_that_may_limit_it_is_looked_at() -> None:
    """
    Its own folder and those above it, of the hierarchy that limits CPUs; not outside of the view.
    """
    text = "3:memory:/m\n2:cpu,cpuacct:/a/b\n1:cpuset:/c\n0::/../d\n"

    assert ["cpu,cpuacct/a/b", "cpu,cpuacct/a", "cpu,cpuacct"] == [
        str(folder.relative_to("/root")) for folder in cgroup_folders(text, Path("/root"))
    ]


def test_the_one_that_was_throttled_most_is_told(tmp_path: Path) -> None:
    """
    None where there is no such file.
    """
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text("0::/pod/box\n")
    (tmp_path / "root/pod/box").mkdir(parents=True)

    def throttled_ns(pid: int) -> int | None:
        return Throttling(proc=tmp_path / "proc", root=tmp_path / "root").of(pid)

    found = [throttled_ns(7)]
    (tmp_path / "root/pod/box/cpu.stat").write_text("throttled_usec 3\n")
    (tmp_path / "root/pod/cpu.stat").write_text("throttled_usec 4\n")
    found += [throttled_ns(pid) for pid in (7, 8)]

    assert [None, 4000, None] == found


def test_workers_share_a_reading_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Who is in another cgroup has another one, and a second later all are read anew.
    """
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    for pid, group in ((7, "box"), (8, "box"), (9, "crate")):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cgroup").write_text(f"0::/{group}\n")
        (tmp_path / f"root/{group}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"root/{group}/cpu.stat").write_text(f"throttled_usec {len(group)}\n")
    throttling = Throttling(proc=tmp_path / "proc", root=tmp_path / "root")
    first = [throttling.of(7)]
    (tmp_path / "root/box/cpu.stat").write_text("throttled_usec 4\n")
    first += [throttling.of(pid) for pid in (8, 9)]
    now_s += 1.1

    assert [3000, 3000, 5000] == first
    assert [4000, 4000, 5000] == [throttling.of(pid) for pid in (7, 8, 9)]
