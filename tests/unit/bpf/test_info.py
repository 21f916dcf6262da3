"""What an old kernel leaves out, and what /proc does not say."""

import os
import struct
from pathlib import Path

import pytest

from gilscope.bpf import info
from gilscope.bpf.info import ProgramStatistics, map_statistics, program_statistics

# struct bpf_prog_info of <linux/bpf.h> by its members, up to recursion_misses.
_PROGRAM_INFO = struct.pack(
    "=II8xII16xQIIQ16sII8x8xII16xII8xII16xIIII8xQQQ",
    1,  # type
    2,  # id
    345,  # jited_prog_len
    6,  # xlated_prog_len
    7,  # load_time
    8,  # created_by_uid
    9,  # nr_map_ids
    10,  # map_ids
    b"on_wait",  # name
    11,  # ifindex
    1,  # gpl_compatible
    12,  # nr_jited_ksyms
    13,  # nr_jited_func_lens
    14,  # btf_id
    15,  # func_info_rec_size
    16,  # nr_func_info
    17,  # nr_line_info
    18,  # nr_jited_line_info
    19,  # line_info_rec_size
    20,  # jited_line_info_rec_size
    21,  # nr_prog_tags
    1_000_000_007,  # run_time_ns
    (1 << 40) + 1,  # run_cnt
    3,  # recursion_misses
)


def _told(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let a kernel that knows as much as *content* answer."""
    monkeypatch.setattr(info, "_information", lambda _, size: content[:size])


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (216, ProgramStatistics("on_wait", 1_000_000_007, (1 << 40) + 1, 3)),
        (208, ProgramStatistics("on_wait", 1_000_000_007, (1 << 40) + 1, None)),
        (192, ProgramStatistics("on_wait", None, None, None)),
    ],
)
def test_kernel_tells_what_it_knows(
    monkeypatch: pytest.MonkeyPatch, known: int, expected: ProgramStatistics
) -> None:
    """
    Linux 5.12 tells everything, 5.1 no misses, 4.15 no counts: these are None, never 0.
    """
    assert 216 == len(_PROGRAM_INFO)
    _told(monkeypatch, _PROGRAM_INFO[:known])

    assert expected == program_statistics(7)


@pytest.mark.parametrize(
    ("fdinfo", "expected"),
    [
        ("pos:\t0\nmap_type:\t27\nmemlock:\t8192\nmap_id:\t5\n", 8192),
        ("pos:\t0\nflags:\t02\n", None),
        (None, None),
    ],
)
def test_memory_is_in_fdinfo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fdinfo: str | None, expected: int | None
) -> None:
    """
    Where the line or the file is missing, the rest is still told.
    """
    _told(monkeypatch, struct.pack("=IIIII", 27, 5, 0, 0, 4096))
    monkeypatch.setattr(info, "_FDINFO", tmp_path)
    if fdinfo is not None:
        (tmp_path / "7").write_text(fdinfo)

    told = map_statistics(7)

    assert (27, 4096, expected) == (told.type, told.max_entries, told.memlock_bytes)


def test_descriptor_of_something_else() -> None:
    """
    What is no program and no map, or not open, is an OSError.
    """
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(OSError, match="bpf"):
        program_statistics(reading)
    os.close(reading)

    with pytest.raises(OSError, match="bpf"):
        map_statistics(reading)
