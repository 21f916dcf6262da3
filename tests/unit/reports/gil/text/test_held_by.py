"""The part of the text report that says who held the GIL."""

from dataclasses import replace

from gilscope.model.gil import HeldBy, HolderSamples
from gilscope.reports.gil.text.held_by import held_by_lines
from gilscope.text.ansi import Paint
from support.recordings.gil import CRUNCHING, MS, convoy, with_holders, with_native_calls


def test_places_come_with_their_share_and_its_error() -> None:
    """
    The longest first, with source lines where they are known.
    """
    lines = list(held_by_lines(with_holders(), Paint(on=False)))

    assert "Who held the GIL, by place (sampled)" == lines[0]
    assert lines[1].startswith(" ≈ 50 % ±7")
    assert "crunch (app.py:4)" in lines[1]
    assert "Of all the time, from 200 samples." == lines[-1]


def test_what_was_not_sampled_is_not_told() -> None:
    """
    Not even a heading.
    """
    assert [] == list(held_by_lines(convoy(), Paint(on=False)))


def test_places_with_next_to_nothing_are_not_told() -> None:
    """
    No heading stands above an empty table.
    """
    recording = with_holders()
    seen = recording.observation
    samples = HolderSamples(200, 2000 * MS, (HeldBy(CRUNCHING, MS),))
    totals = replace(seen.totals, holder_samples=samples)

    assert [] == list(
        held_by_lines(replace(recording, observation=replace(seen, totals=totals)), Paint(on=False))
    )


def test_calls_in_c_are_told_where_they_are_known() -> None:
    """
    From the function that the thread was in to the one that Python code has called.
    """
    lines = list(held_by_lines(with_native_calls(), Paint(on=False)))
    after = [line.strip() for line in lines[lines.index(next(filter(_is_why, lines))) :]]

    assert "≈ 100 % C code (libz.so.1 longest_match)" == after[0]
    assert (
        "longest_match < deflate (libz.so.1) < (zlib.so) < _PyObject_MakeTpCall (python3.11)"
        == after[1]
    )


def _is_why(line: str) -> bool:
    return "C code" in line
