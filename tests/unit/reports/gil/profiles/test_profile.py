"""Profiles of pprof: what is written once, and what is added up."""

import gzip

from gilscope.reports.gil.profiles.pprof import encoded
from gilscope.reports.gil.profiles.profile import Location, Profile, ValueType
from support.reports.pprof import Read, read

_COUNT, _TIME = ValueType("waits", "count"), ValueType("wait", "nanoseconds")
_INNER = Location("app.py", "<module>", "/srv/app.py", 1, 9)
_OUTER = Location("app.py", "run", "/srv/run.py", 3, 4)


def _profile() -> Profile:
    return Profile((_COUNT, _TIME), default=_TIME)


def _read(profile: Profile) -> Read:
    return read(gzip.compress(encoded(profile)))


def test_samples_of_one_stack_and_labels_are_one() -> None:
    """
    Their values are added up; what was not said is zero.
    """
    profile = _profile()
    profile.add([_INNER, _OUTER], {"kind": "a", "pid": "1"}, {_COUNT: 2, _TIME: 300})
    profile.add([_INNER, _OUTER], {"pid": "1", "kind": "a"}, {_TIME: 44})
    profile.add([_INNER, _OUTER], {"kind": "b"}, {_COUNT: 1})

    found = _read(profile)

    assert [("waits", "count"), ("wait", "nanoseconds")] == found.types
    assert "wait" == found.default
    assert [(2, 344), (1, 0)] == [sample.values for sample in found.samples]
    assert [{"kind": "a", "pid": "1"}, {"kind": "b"}] == [each.labels for each in found.samples]
    assert {(("<module>", "/srv/app.py", 1, 9), ("run", "/srv/run.py", 3, 4))} == {
        sample.stack for sample in found.samples
    }


def test_a_sample_of_nothing_is_none() -> None:
    """
    Viewers would list its functions with nothing beside them.
    """
    profile = _profile()
    profile.add([_INNER], {}, {_COUNT: 0, _TIME: 0})

    assert [] == _read(profile).samples


def test_names_are_written_once() -> None:
    """
    However many samples there are.
    """
    profile = _profile()
    for at in range(1000):
        profile.add([_INNER, _OUTER], {"number": str(at)}, {_TIME: 1})

    written = encoded(profile)

    assert [1, 1, 1] == [written.count(name) for name in (b"/srv/app.py", b"<module>", b"number")]


def test_programs_have_mappings_of_their_own() -> None:
    """
    The same line of two programs is in both.
    """
    profile = _profile()
    for program in ("app.py", "worker.py"):
        profile.add([Location(program, "run", "/srv/run.py", 3, 4)], {}, {_TIME: 1})

    found = _read(profile)

    assert ["app.py", "worker.py"] == found.programs
    assert [{"app.py"}, {"worker.py"}] == [sample.programs for sample in found.samples]


def test_times_period_and_comments() -> None:
    """
    All that is about the profile as a whole.
    """
    profile = _profile()
    profile.began_ns, profile.duration_ns = 7, 9
    profile.period_type, profile.period = _TIME, 10_000_000
    profile.comments = ("one", "two", "one")

    found = _read(profile)

    assert (7, 9) == (found.began_ns, found.duration_ns)
    assert ("wait", 10_000_000) == found.period
    assert ["one", "two", "one"] == found.comments
