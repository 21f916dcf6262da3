"""Mutates the memory of a Python process, and looks for what the readers of it do not survive.

``PYTHONPATH=agent:tests python -m fuzz.memory --seconds 600`` goes on for ten minutes and prints
how often it has read; the unit tests play a short piece of it with a fixed seed.

Whatever is in the memory, only TornRead, OSError and GilscopeError come out, each reading ends
after a bounded number of reads and bytes, and what is kept of code is bounded.
"""

import argparse
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from gilscope.errors import GilscopeError
from gilscope.process.memory import ProcessMemory
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.code.code_objects import CodeReader, is_code
from gilscope.runtimes.cpython.code.frames import outermost_frames, read_code
from gilscope.runtimes.cpython.code.modules import modules_that_need_gil
from gilscope.runtimes.cpython.debug_offsets import read_members
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.layout import layout_for
from gilscope.runtimes.cpython.runtime import kernel_thread_id, read_gils, read_threads
from gilscope.runtimes.cpython.stack_walk import StackWalk
from support.gil.python_in_memory import LAYOUTS, PythonInMemory
from support.gil.recorded_offsets import RECORDED_OFFSETS
from support.tracing.stacks import read_places

__all__ = ["Failed", "fuzz"]

_EXPECTED = (TornRead, OSError, GilscopeError)
_MOST_READS = 100_000
"""Of one reading, three attempts included: a few for each structure that there is."""
_MOST_BYTES = 64 << 20
_MOST_KEPT = 1 << 20
_PAGES = 8192
"""Behind what there is: some read whole pages."""
_ODD = (0, 1, 7, 8, 0xFF, 0x7FFF, 1 << 31, 1 << 32, 1 << 47, (1 << 63) - 8, 1 << 63, (1 << 64) - 1)


class Failed(Exception):
    """A reader did what it must not, with the seed that shows it."""


@dataclass
class _Bounded:
    """Memory that counts what is read of it."""

    python: PythonInMemory
    reads: int = 0
    read_bytes: int = 0
    places: list[int] = field(default_factory=list)
    """Addresses that were read: where a mutation has an effect."""

    def read(self, address: int, size: int) -> bytes:
        """Return what is there; raises as the memory does."""
        self.reads += 1
        self.read_bytes += max(0, size)
        if self.reads > _MOST_READS or self.read_bytes > _MOST_BYTES:
            raise Failed(f"{self.reads} reads of {self.read_bytes} bytes")
        found = PythonInMemory.read(self.python, address, size)
        self.places.append(address)
        return found


def fuzz(seed: int, rounds: int) -> int:
    """Return how many readings were made in *rounds* rounds from *seed*; raises Failed."""
    readings = 0
    for number in range(rounds):
        dice = random.Random(f"{seed}.{number}")  # noqa: S311 - of no secret
        version = dice.choice(list(LAYOUTS))
        try:
            readings += _round(version, dice)
            readings += _debug_offsets(dice)
        except _EXPECTED as error:
            raise Failed(f"seed {seed}.{number}, {version}: the harness: {error!r}") from error
        except Exception as error:
            raise Failed(f"seed {seed}.{number}, {version}: {error!r}") from error
    return readings


def _round(version: str, dice: random.Random) -> int:
    python, tstates, codes = _process(version, dice)
    python.new(_PAGES)
    memory = _Bounded(python)
    # Whoever reads by the runtime reads here.
    python.read = memory.read  # type: ignore[method-assign]
    reader = CodeReader(python.runtime, most_bytes=_MOST_KEPT)
    readings = 0
    for _ in range(dice.randrange(2, 12)):
        for reading in _readings(python, tstates, codes, reader, dice):
            memory.reads = memory.read_bytes = 0
            readings += 1
            with contextlib.suppress(*_EXPECTED):
                reading()
            if reader.kept_bytes > _MOST_KEPT:
                raise Failed(f"{reader.kept_bytes} bytes are kept")
        _mutate(python, memory.places, tstates + codes, dice)
        del memory.places[:-500]
    return readings


def _process(version: str, dice: random.Random) -> tuple[PythonInMemory, list[int], list[int]]:
    """Return a process that is whole, with its thread states and code objects."""
    python = PythonInMemory(version)
    names = ("f", "Pool.work", "größer", "関数", "\U0001f40d" * 5, "x" * 5000)
    codes = [
        python.code(
            dice.choice(names),
            f"/srv/{dice.choice(names)}.py",
            dice.randrange(1, 5000),
            line_table=dice.randbytes(dice.choice((0, 2, 30, 5000))),
            instructions=dice.choice((1, 8, 500)),
        )
        for _ in range(dice.randrange(1, 6))
    ]
    gil = python.gil()
    tstates = []
    interpreter = 0
    for number in range(dice.randrange(1, 4)):
        interpreter = python.interpreter(number, interpreter, gil)
        if python.layout.modules is not None:
            some = [(dice.choice(names), True, dice.random() < 0.5) for _ in range(9)]
            python.modules(interpreter, some)
        thread = 0
        for _ in range(dice.randrange(0, 5)):
            frame = python.stack(*dice.choices(codes, k=dice.randrange(1, 20)))
            thread = python.thread(
                interpreter,
                thread,
                frame=frame,
                thread_id=thread,
                native_thread_id=dice.randrange(9),
            )
            tstates.append(thread)
    return python, tstates, codes


def _readings(
    python: PythonInMemory,
    tstates: Sequence[int],
    codes: Sequence[int],
    reader: CodeReader,
    dice: random.Random,
) -> Iterator[Callable[[], object]]:
    runtime = python.runtime
    yield lambda: read_gils(runtime)
    yield lambda: modules_that_need_gil(runtime)
    yield lambda: [kernel_thread_id(runtime, thread) for thread in read_threads(runtime)]
    walk = StackWalk(cast("ProcessMemory", python), runtime, 64)
    for tstate in tstates[:3]:
        yield lambda tstate=tstate: walk.stack(tstate)  # type: ignore[misc]
        yield lambda tstate=tstate: outermost_frames(runtime, tstate, 8)  # type: ignore[misc]
        yield lambda tstate=tstate: reader.frames(read_places(runtime, tstate))  # type: ignore[misc]
    for code in codes[:3]:
        at = dice.choice((0, 2, 200, dice.getrandbits(32)))
        yield lambda code=code: read_code(runtime, code)  # type: ignore[misc]
        yield lambda code=code: is_code(runtime, code, dice.getrandbits(32))  # type: ignore[misc]
        yield lambda code=code, at=at: reader.frame(code, at)  # type: ignore[misc]


def _mutate(
    python: PythonInMemory, places: Sequence[int], structures: Sequence[int], dice: random.Random
) -> None:
    """Change a few words, most of them where something was read."""
    used = python.used
    for _ in range(dice.randrange(1, 4)):
        base = dice.choice(places or structures) if dice.random() < 0.8 else dice.choice(structures)
        address = base + dice.choice((0, 0, 8, 16, 24, 32, 40, 64, 72, 104, dice.randrange(256)))
        size = dice.choice((1, 4, 8, 8, 8))
        value = dice.choice(
            (
                dice.choice(_ODD),
                dice.getrandbits(64),
                dice.choice(structures),
                # A circle, or somewhere in the middle of something.
                dice.choice(places or structures),
                dice.choice(structures) + 8 * dice.randrange(-64, 64),
                1 << dice.randrange(64),
                used,
            )
        )
        if python.holds(address, size):
            python.put_int(address, value, size)


def _debug_offsets(dice: random.Random) -> int:
    version = dice.choice(list(RECORDED_OFFSETS))
    words = list(RECORDED_OFFSETS[version])
    for _ in range(dice.randrange(1, 4)):
        words[dice.randrange(3, len(words))] = dice.choice((*_ODD, dice.getrandbits(12)))
    major, minor = map(int, version.split(".")[:2])
    with contextlib.suppress(GilscopeError):
        read_members((major, minor), words)
        layout_for(Interpreter((major, minor), version, 0x1000, 0x2000, tuple(words)))
    return 1


def main() -> int:
    """Fuzz for as long as the command line says, and print how often it was read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    arguments = parser.parse_args()
    end_s = time.monotonic() + arguments.seconds
    readings, seed = 0, arguments.seed
    while time.monotonic() < end_s:
        readings += fuzz(seed, 20)
        seed += 1
    print(f"{readings} readings, seeds {arguments.seed} to {seed - 1}")  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
