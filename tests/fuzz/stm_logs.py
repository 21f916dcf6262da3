"""Searches with libFuzzer for bytes that the reader of STM logs does not survive."""

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from support.paths import ROOT
from support.stm_log.searcher import CLANG, SMALL_LIMITS, build, search

_RUNS = {"small limits": SMALL_LIMITS, "the limits of the product": ()}
_KEPT = ROOT / ".cache" / "fuzz"


def main() -> None:
    """Search with small limits and with those of the product."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="of each search (default: 60)")
    seconds = parser.parse_args().seconds
    if CLANG is None:
        sys.exit("error: there is no clang (apt install clang-14 libclang-rt-14-dev)")
    with tempfile.TemporaryDirectory() as folder:
        for number, (words, limits) in enumerate(_RUNS.items()):
            program = Path(folder) / f"fuzz_log_{number}"
            build(program, limits)
            began_s = time.monotonic()
            _KEPT.mkdir(parents=True, exist_ok=True)
            found = search(program, seconds, f"-artifact_prefix={_KEPT}/")
            took_s = time.monotonic() - began_s
            if found.returncode:
                sys.exit(f"{found.stderr[-6000:]}error: STM logs, {words}: the input is in {_KEPT}")
            runs = re.search(r"number_of_executed_units: (\d+)", found.stderr)
            told = f"{runs and runs[1]} inputs in {took_s:.0f} s, none broke it"
            sys.stdout.write(f"STM logs, {words}: {told}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
