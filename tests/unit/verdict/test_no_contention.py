"""What it means that the GIL was held and nobody had to wait for it."""

import pytest

from gilscope.model.gil import HeldBy, HolderSamples
from gilscope.model.stack import Stack
from gilscope.verdict.no_contention import no_contention
from support.recordings.gil import CRUNCHING, MS, stack

_LOOP = ("BaseEventLoop.run_forever", "/usr/lib/python3.11/asyncio/base_events.py", 596, 607)


@pytest.mark.parametrize(
    ("holder", "ns", "words"),
    [
        (stack(("handle", "/srv/app.py", 1, 2), _LOOP), 1200 * MS, "kept the asyncio event loop"),
        (CRUNCHING, 1200 * MS, "what costs that time is below"),
        (CRUNCHING, 200 * MS, ""),
    ],
)
def test_no_contention_has_a_meaning(holder: Stack, ns: int, words: str) -> None:
    """
    A blocked loop, a busy thread, or hardly anything at all.
    """
    first, *rest = no_contention(HolderSamples(200, 2000 * MS, (HeldBy(holder, ns),)))

    assert first.startswith("That is no contention")
    assert words in " ".join(rest)
    assert bool(words) == bool(rest)


def test_without_samples_nothing_is_concluded() -> None:
    """
    Where stacks are not read, nobody knows what the GIL was held for.
    """
    assert [] == list(no_contention(None))
