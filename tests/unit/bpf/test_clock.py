"""By how much the clock of the agent is ahead of the kernel's."""

from pathlib import Path

import pytest

from gilscope.bpf.clock import clock_offset_ns, clock_parameters, require_own_clock
from gilscope.errors import KernelOrBccMissing
from gilscope.system import syscall

_OFFSETS = "monotonic      {}         {}\nboottime       7         0\n"


def _process(folder: Path, offsets: str, *, is_one: bool = True) -> Path:
    """Return a folder in /proc of a process in a time namespace that is not the host's."""
    (folder / "ns").mkdir()
    (folder / "ns" / "time").write_text("")
    children = folder / "ns" / "time_for_children"
    if is_one:
        children.hardlink_to(folder / "ns" / "time")
    else:
        children.write_text("")
    (folder / "timens_offsets").write_text(offsets)
    return folder


@pytest.mark.parametrize(
    ("seconds", "ns", "offset_ns"), [(100_000, 7, 100_000_000_000_007), (-3, 5, -2_999_999_995)]
)
def test_offset_is_that_of_the_namespace(
    tmp_path: Path, seconds: int, ns: int, offset_ns: int
) -> None:
    """
    Seconds may be negative, nanoseconds are added to them.
    """
    assert offset_ns == clock_offset_ns(_process(tmp_path, _OFFSETS.format(seconds, ns)))


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    """
    The file is about children, and these may get another namespace than the process itself.
    """
    with pytest.raises(KernelOrBccMissing, match="cannot be told"):
        clock_offset_ns(_process(tmp_path, _OFFSETS.format(1, 0), is_one=False))


def test_kernel_without_time_namespaces_shifts_nothing(tmp_path: Path) -> None:
    """
    It has no such files.
    """
    assert 0 == clock_offset_ns(tmp_path)


@pytest.mark.parametrize("shift_ns", [-1_000_000_000, 1_000_000_000])
def test_clock_that_is_not_the_kernels_is_refused(
    shift_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    In either direction; one that is, is not.
    """
    require_own_clock()
    kernel_ns = syscall.monotonic_ns
    monkeypatch.setattr(syscall, "monotonic_ns", lambda: kernel_ns() + shift_ns)

    with pytest.raises(KernelOrBccMissing, match="libfaketime"):
        clock_parameters()
