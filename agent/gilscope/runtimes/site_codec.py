"""Writes the sites of a file as JSON, and reads them back without trusting what it reads."""

import json
from typing import Final

from gilscope.runtimes.sites import CallerRule, PausePoint, Site, Sites

__all__ = ["from_json", "to_json"]

_VERSION: Final = 6
"""To be raised with every change of the format or of what the resolver finds."""

_LARGEST_ADDRESS: Final = (1 << 64) - 1


def to_json(sites: Sites) -> str:
    """Return *sites* as one JSON object."""
    return json.dumps(
        {
            "version": _VERSION,
            "build_id": sites.build_id,
            "waits": [_pause_object(pause) for pause in sites.waits],
            "yields": [_pause_object(pause) for pause in sites.yields],
            "acquires": [_site_object(site) for site in sites.acquires],
            "releases": [_site_object(site) for site in sites.releases],
            "forced_drops": [_site_object(site) for site in sites.forced_drops],
            "forced_takes": [_site_object(site) for site in sites.forced_takes],
            "callers": [_rule_object(rule) for rule in sites.callers],
            "checks": list(sites.checks),
            "facts": dict(sites.facts),
            "sleeps": [_site_object(site) for site in sites.sleeps],
        }
    )


def from_json(text: str) -> Sites:
    """Return what `to_json` was given; raises ValueError on anything else."""
    try:
        return _sites(json.loads(text))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not the sites of a file: {error!r}") from error


def _sites(found: object) -> Sites:
    fields = _object(found)
    if _whole(fields["version"]) != _VERSION:
        raise ValueError(f"sites of version {fields['version']}, not {_VERSION}")
    return Sites(
        build_id=_text(fields["build_id"]),
        waits=tuple(_pause(pause) for pause in _list(fields["waits"])),
        yields=tuple(_pause(pause) for pause in _list(fields["yields"])),
        acquires=tuple(_site(site) for site in _list(fields["acquires"])),
        releases=tuple(_site(site) for site in _list(fields["releases"])),
        forced_drops=tuple(_site(site) for site in _list(fields["forced_drops"])),
        forced_takes=tuple(_site(site) for site in _list(fields["forced_takes"])),
        callers=tuple(_rule(rule) for rule in _list(fields["callers"])),
        checks=tuple(_text(check) for check in _list(fields["checks"])),
        facts={name: _whole(fact) for name, fact in _object(fields["facts"]).items()},
        sleeps=tuple(_site(site) for site in _list(fields["sleeps"])),
    )


def _site_object(site: Site) -> dict[str, int]:
    return {"vaddr": site.vaddr, "offset": site.offset}


def _pause_object(pause: PausePoint) -> dict[str, object]:
    return {"call": _site_object(pause.call), "after": _site_object(pause.after)}


def _rule_object(rule: CallerRule) -> dict[str, object]:
    return {
        "pc": rule.pc,
        "made_to_yield": rule.made_to_yield,
        "cfa_from_frame_pointer": rule.cfa_from_frame_pointer,
        "cfa_offset": rule.cfa_offset,
        "saved_frame_pointer_offset": rule.saved_frame_pointer_offset,
        "return_address_offset": rule.return_address_offset,
    }


def _site(found: object) -> Site:
    fields = _object(found)
    return Site(_address(fields["vaddr"]), _address(fields["offset"]))


def _pause(found: object) -> PausePoint:
    fields = _object(found)
    return PausePoint(_site(fields["call"]), _site(fields["after"]))


def _rule(found: object) -> CallerRule:
    fields = _object(found)
    saved = fields["saved_frame_pointer_offset"]
    return CallerRule(
        pc=_address(fields["pc"]),
        made_to_yield=_truth(fields["made_to_yield"]),
        cfa_from_frame_pointer=_truth(fields["cfa_from_frame_pointer"]),
        cfa_offset=_whole(fields["cfa_offset"]),
        saved_frame_pointer_offset=None if saved is None else _whole(saved),
        return_address_offset=_whole(fields["return_address_offset"]),
    )


def _object(found: object) -> dict[str, object]:
    if not isinstance(found, dict):
        raise TypeError(f"{type(found).__name__} instead of an object")
    return found


def _list(found: object) -> list[object]:
    if not isinstance(found, list):
        raise TypeError(f"{type(found).__name__} instead of a list")
    return found


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(f"{type(found).__name__} instead of a string")
    return found


def _truth(found: object) -> bool:
    if not isinstance(found, bool):
        raise TypeError(f"{type(found).__name__} instead of true or false")
    return found


def _whole(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{type(found).__name__} instead of an integer")
    return found


def _address(found: object) -> int:
    address = _whole(found)
    if not 0 <= address <= _LARGEST_ADDRESS:
        raise ValueError(f"{address} is not an address")
    return address
