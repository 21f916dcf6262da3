"""Single fields of entries, read out of real maps."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gilscope.gil.probes.probe import GilProbe

pytestmark = pytest.mark.live


def test_a_field_is_what_the_whole_value_shows(probe: GilProbe) -> None:
    """
    At the beginning, in the middle and at the end of a value, and after it has changed.
    """
    locks, slot = probe.tables["locks"], {"value": 4000}
    fields = {
        name: locks.entry(slot, name) for name in ("version_end", "traps", "tgid", "version_begin")
    }
    for factor in (1, 1 << 31):
        expected = {name: n * factor for n, name in enumerate(fields, 1) if name != "tgid"}
        locks.put(slot, {**expected, "tgid": 7})

        assert {**expected, "tgid": 7} == {name: field.read() for name, field in fields.items()}
    locks.put(slot, {})


def test_threads_read_their_own_entries(probe: GilProbe) -> None:
    """
    At the same time, of values of different sizes.
    """
    tables = {"locks": {"value": 4001}, "targets": {"value": 0}}
    entries = {}
    for traps, (name, key) in enumerate(tables.items(), start=1):
        probe.tables[name].put(key, {"traps": traps})
        entries[traps] = probe.tables[name].entry(key, "traps")

    def read(traps: int) -> set[int | None]:
        return {entries[traps].read() for _ in range(3000)}

    with ThreadPoolExecutor(2) as threads:
        assert [{1}, {2}] == list(threads.map(read, entries))
    probe.tables["locks"].put(tables["locks"], {})
    probe.tables["targets"].delete(tables["targets"])


def test_an_entry_that_is_not_there(probe: GilProbe) -> None:
    """
    It can come and go: only reading it tells.
    """
    targets, pid = probe.tables["targets"], {"value": 0}
    traps = targets.entry(pid, "traps")

    assert traps.read() is None
    targets.put(pid, {"traps": 5})
    assert 5 == traps.read()
    targets.delete(pid)
    assert traps.read() is None


def test_a_field_that_does_not_exist(probe: GilProbe) -> None:
    """
    Is said at once, not at the first reading.
    """
    with pytest.raises(KeyError):
        probe.tables["targets"].entry({"value": 0}, "trap")


def test_what_a_probe_has_removed_is_not_put_back(probe: GilProbe) -> None:
    """
    An entry is replaced while it is there, and only then.
    """
    gils, key = probe.tables["gils"], {"cond": 4096, "tgid": 0}
    before = gils.replace(key, {})
    absent = gils.get(key)
    gils.put(key, {})
    replaced = gils.replace(key, {})
    gils.delete(key)

    assert (False, None, True) == (before, absent, replaced)
    assert gils.get(key) is None
