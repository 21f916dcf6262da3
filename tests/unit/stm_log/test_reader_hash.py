"""How long the reader searches in its tables for keys that somebody has chosen."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.paths import AGENT, TESTS

_COMPILER = shutil.which("cc") or shutil.which("clang-14")
_LONGEST = 40
"""Tables are half full at most: with numbers drawn at random it is half of that."""


@pytest.mark.parametrize(("program", "count"), [("thread_probes", 4000), ("entry_probes", 1024)])
def test_chosen_keys_make_no_long_searches(program: str, count: int, tmp_path: Path) -> None:
    """
    However alike they are.
    """
    assert _COMPILER is not None, "there is no C compiler, and the package was compiled by one"
    command = [
        *(_COMPILER, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"),
        f"-I{AGENT / 'native' / 'stm_log'}",
        str(TESTS / "support" / "stm_log" / f"{program}.c"),
        *("-o", str(tmp_path / program)),
    ]
    subprocess.run(command, check=True)
    told = subprocess.run([tmp_path / program], check=True, capture_output=True, text=True).stdout
    found = re.fullmatch(r"(\d+) \w+, longest search (\d+)\n", told)

    assert found is not None, told
    assert count == int(found[1])
    assert int(found[2]) <= _LONGEST
