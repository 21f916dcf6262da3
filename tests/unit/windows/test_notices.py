"""What probes tell at once, as a C compiler and Python have it."""

from pathlib import Path

import pytest

from gilscope.windows.notices import NOTICE
from support.c_header import CMember, compiled_struct


@pytest.mark.parametrize("probes", ["locks", "transactions"])
def test_a_notice_lies_in_memory_as_python_reads_it(probes: str, tmp_path: Path) -> None:
    """
    Two numbers of four bytes.
    """
    layout = NOTICE.layout()

    assert (8, {"tgid": CMember(0, 4), "is_fork": CMember(4, 4)}) == compiled_struct(
        f"{probes}/abi.bpf.h", "notice", ["tgid", "is_fork"], tmp_path
    )
    assert (8, (0, "I"), (4, "I")) == (layout.size, layout.place("tgid"), layout.place("is_fork"))
