"""The part of the text report that says who held the GIL."""

from dataclasses import replace

import pytest

from gilscope.model.gil import HeldBy, HolderSamples, Recording
from gilscope.model.stack import Stack
from gilscope.reports.gil.text.held_by import held_by_lines, no_contention_lines
from gilscope.text.ansi import Paint
from support.recordings.gil import CRUNCHING, MS, convoy, stack, with_holders

_LOOP = ("BaseEventLoop.run_forever", "/usr/lib/python3.11/asyncio/base_events.py", 596, 607)


def _held_in(holder: Stack, ns: int) -> Recording:
    recording = convoy()
    seen = recording.observation
    samples = HolderSamples(200, 2000 * MS, (HeldBy(holder, ns),))
    totals = replace(seen.totals, holder_samples=samples)
    return replace(recording, observation=replace(seen, totals=totals))


def test_places_come_with_their_share_and_its_error() -> None:
    """
    The longest first, with source lines where they are known.
    """
    lines = list(held_by_lines(with_holders(), Paint(on=False)))

    assert "Who held the GIL, by place (sampled)" == lines[0]
    assert lines[1].startswith("   50 % ±7")
    assert "crunch (app.py:4)" in lines[1]
    assert "Of all the time, from 200 samples." == lines[-1]


def test_what_was_not_sampled_is_not_told() -> None:
    """
    Neither a heading nor a conclusion.
    """
    assert [] == list(held_by_lines(convoy(), Paint(on=False)))
    assert [] == list(no_contention_lines(convoy()))


@pytest.mark.parametrize(
    ("holder", "ns", "words"),
    [
        (stack(("handle", "/srv/app.py", 1, 2), _LOOP), 1200 * MS, "kept the asyncio event loop"),
        (CRUNCHING, 1200 * MS, "Python code runs for most of the time"),
        (CRUNCHING, 200 * MS, ""),
    ],
)
def test_no_contention_has_a_meaning(holder: Stack, ns: int, words: str) -> None:
    """
    A blocked loop, a busy thread, or hardly anything at all.
    """
    first, *rest = no_contention_lines(_held_in(holder, ns))

    assert first.startswith("That is no contention")
    assert words in " ".join(rest)
    assert bool(words) == bool(rest)
