"""Sites as JSON: what is written is read back, and nothing else is believed."""

import json

import pytest

from gilscope.runtimes.site_codec import from_json, to_json
from gilscope.runtimes.sites import CallerRule, PausePoint, Site, Sites

_SITES = Sites(
    build_id="0123abcd",
    waits=(PausePoint(Site(0x4F94E9, 0xF94E9), Site(0x4F94F1, 0xF94F1)),),
    yields=(PausePoint(Site(0x527AAC, 0x127AAC), Site(0x527AB3, 0x127AB3)),),
    acquires=(Site(0x4F9300, 0xF9300), Site(0x4F9400, 0xF9400)),
    releases=(Site(0x527A00, 0x127A00),),
    forced_drops=(Site(0x52B0F0, 0x12B0F0),),
    forced_takes=(Site(0x52B0F5, 0x12B0F5),),
    callers=(
        CallerRule(
            0x4F94E9,
            made_to_yield=False,
            cfa_from_frame_pointer=True,
            cfa_offset=16,
            saved_frame_pointer_offset=-16,
        ),
        CallerRule(0x52B0F5, made_to_yield=True),
    ),
    checks=("take_gil at 0x4f92c0",),
    sleeps=(Site(0x4F9500, 0xF9500),),
)


def _changed(**fields: object) -> str:
    return json.dumps({**json.loads(to_json(_SITES)), **fields})


def test_what_is_written_is_read_back() -> None:
    """
    Every field survives the way through JSON.
    """
    assert _SITES == from_json(to_json(_SITES))


def test_empty_sites_survive() -> None:
    """
    Sites without rules and checks are read back as such.
    """
    empty = Sites("sha256:00", (), (), (), (), (), (), ())

    assert empty == from_json(to_json(empty))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        to_json(_SITES)[:-1],
        _changed(version=0),
        _changed(version="1"),
        _changed(version=True),
        _changed(build_id=None),
        _changed(waits=None),
        _changed(waits={}),
        _changed(waits=[{}]),
        _changed(waits=[{"call": {"vaddr": 1, "offset": 1}}]),
        _changed(acquires=[{"vaddr": 1.0, "offset": 1}]),
        _changed(acquires=[{"vaddr": -1, "offset": 1}]),
        _changed(acquires=[{"vaddr": 1 << 64, "offset": 1}]),
        _changed(releases=[{"vaddr": True, "offset": 1}]),
        _changed(callers=[{"pc": 1}]),
        _changed(checks=[1]),
        _changed(checks="text"),
    ],
    ids=lambda text: text[:40],
)
def test_anything_else_is_refused(text: str) -> None:
    """
    A cut, foreign or damaged text raises ValueError and nothing else.
    """
    with pytest.raises(ValueError):  # noqa: PT011 (the type is the promise)
        from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("made_to_yield", 1),
        ("cfa_from_frame_pointer", None),
        ("cfa_offset", "16"),
        ("saved_frame_pointer_offset", False),
    ],
)
def test_a_rule_of_other_types_is_refused(field: str, value: object) -> None:
    """
    A rule whose field has another type is refused.
    """
    rules = json.loads(to_json(_SITES))["callers"]
    rules[0][field] = value

    with pytest.raises(ValueError, match="instead of"):
        from_json(_changed(callers=rules))
