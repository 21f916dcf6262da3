"""Searches for calls that the extension module for STM logs does not survive.

The module is compiled with ASan and UBSan, and asked for its sums between pieces of all kinds. In
whatever pieces a log comes, and whenever it is asked, in the end the same must be found in it.
"""

import argparse
import importlib.util
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.paths import AGENT, ROOT
from support.stm_log.program import played_log
from support.stm_log.searcher import SMALL_LIMITS, seeds
from support.stm_log.writer import EVENTS

_NAME = "gilscope.stm_log._stm_log"
_FAULT = 70
_KEPT = ROOT / ".cache" / "fuzz"
_OPTION_BYTES = 3


def main() -> None:
    """Compile the module and search in a process of its own, which has ASan from the beginning."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="of the search (default: 60)")
    parser.add_argument("--module", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.module is not None:
        _search(arguments.module, arguments.seconds)
        return
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "_native.so"
        _compile(module)
        found = subprocess.run(
            [sys.executable, __file__, "--module", module, "--seconds", str(arguments.seconds)],
            env={
                **os.environ,
                "LD_PRELOAD": _library("libasan.so"),
                "PYTHONMALLOC": "malloc",
                # What the interpreter keeps for good is no leak.
                "ASAN_OPTIONS": f"detect_leaks=0:exitcode={_FAULT}",
            },
            check=False,
        )
    sys.exit(found.returncode)


def _library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _compile(module: Path) -> None:
    command = [
        *("gcc", "-std=c11", "-g", "-O1", "-shared", "-fPIC"),
        *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
        "-DPy_LIMITED_API=0x030b0000",
        *(f"-D{limit}" for limit in SMALL_LIMITS),
        f"-I{sysconfig.get_paths()['include']}",
        *map(str, sorted((AGENT / "native" / "stm_log").glob("*.c"))),
        *("-o", str(module)),
    ]
    subprocess.run(command, check=True)


def _search(module: Path, seconds: int) -> None:
    specification = importlib.util.spec_from_file_location(_NAME, module)
    assert specification is not None
    assert specification.loader is not None
    native = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(native)
    lot = random.Random()  # noqa: S311 - has to be foreseen by nobody
    contents = [seed[_OPTION_BYTES:] for seed in seeds()]
    contents += [played_log(table, 300, 3).content for table in EVENTS]
    _KEPT.mkdir(parents=True, exist_ok=True)
    last = _KEPT / "stm_module.last"
    number, ends_s = 0, time.monotonic() + seconds
    while time.monotonic() < ends_s:
        content = _changed(lot.choice(contents), lot)
        options = _options(lot)
        # Of what crashes the process nothing else is left.
        last.write_bytes(repr(options).encode() + b"\n" + content)
        _try(native, options, content, lot)
        number += 1
    last.unlink()
    sys.stdout.write(f"STM module: {number} inputs in {seconds} s, none broke it\n")


def _options(lot: random.Random) -> dict[str, Any]:
    scale = (lot.randrange(1 << 63), lot.choice((0, 1, lot.randrange(1 << 63))), lot.randint(1, 8))
    return {
        "table": lot.choice((None, *EVENTS)),
        "semantics": lot.choice((None, "S0", "S1", "S2")),
        "original": lot.random() < 0.5,
        "scales": (scale,) * lot.choice((0, 0, 1, 3)),
    }


def _changed(content: bytes, lot: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(lot.choice((0, 1, 3, 20))):
        at, end = sorted(lot.randrange(len(changed) + 1) for _ in range(2))
        match lot.randrange(5):
            case 0 if at < len(changed):
                changed[at] = lot.choice((0, 1, 2, 5, 16, 255, lot.randrange(256)))
            case 1:
                del changed[at : min(end, at + lot.choice((1, 14, 19, 500)))]
            case 2:
                changed[at:at] = bytes(lot.choice((1, 13, 14, 60, 5000)))
            case 3:
                changed[at:at] = changed[at : min(end, at + 500)]
            case _:
                changed[at:at] = lot.randbytes(lot.choice((1, 4, 14, 200)))
    return bytes(changed)


def _pieces(content: bytes, lot: random.Random) -> Iterator[bytes | bytearray | memoryview]:
    at = 0
    while at < len(content):
        piece = content[at : at + lot.choice((1, 13, 14, 100, 4096, 70_000))]
        at += len(piece)
        yield lot.choice((bytes, bytearray, memoryview))(piece)


def _try(native: Any, options: dict[str, Any], content: bytes, lot: random.Random) -> None:
    whole, divided = native.Log(**options), native.Log(**options)
    whole.feed(content)
    asks = lot.choice((0.0, 0.02, 0.3))
    for piece in _pieces(content, lot):
        divided.feed(piece)
        if lot.random() < asks:
            lot.choice((divided.snapshot, divided.sums))()
    whole.finish()
    divided.finish()
    assert whole.snapshot() == divided.snapshot(), "pieces make a difference"
    assert whole.sums() == divided.sums(), "pieces make a difference"


if __name__ == "__main__":
    main()
