"""The cache of compiled programs, from which comes what will run in the kernel."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gilscope.bpf.compile.object import Compiled, MapDefinition
from gilscope.bpf.compile.object_cache import ProgramCache, program_key

_KEY = "0" * 64
_OTHER_KEY = "1" * 64
_COMPILED = Compiled(
    maps=(MapDefinition("targets", 1, 4, 40, 4096, 1),),
    programs={"on_wait": bytes(range(64))},
    tables=(),
    map_of={"targets": 0},
    licence="GPL",
    bcc_version="0.26.0",
)
_MESSAGE: dict[str, Any] = {
    "text": "int on_wait(void) { return 0; }",
    "cflags": ["-DA=1", "-DB=2"],
    "programs": {"on_wait": "uprobe"},
    "tables": ["targets"],
    "rings": ["notices"],
}
_SYSTEM = os.uname_result(("Linux", "host", "6.18.0", "#1 SMP", "x86_64"))


def _key(message: dict[str, Any] = _MESSAGE, **options: Any) -> str:
    return program_key(message, **{"version": "1", "system": _SYSTEM, **options})


def _system(place: int, value: str) -> os.uname_result:
    fields = list(_SYSTEM)
    fields[place] = value
    return os.uname_result(fields)


@pytest.fixture
def cache(tmp_path: Path) -> ProgramCache:
    """A cache that remembers one request."""
    made = ProgramCache(tmp_path / "new" / "gilscope")
    made.store(_KEY, _COMPILED)
    return made


@pytest.fixture
def entry(cache: ProgramCache, tmp_path: Path) -> Path:
    """The file in which it is."""
    assert _COMPILED == cache.load(_KEY)
    (path,) = (tmp_path / "new" / "gilscope").iterdir()
    return path


@pytest.mark.parametrize(
    "change",
    [
        {"text": "int on_wait(void) { return 1; }"},
        {"cflags": ["-DA=1", "-DB=3"]},
        {"cflags": ["-DA=1"]},
        {"programs": {"on_wait": "uprobe_multi"}},
        {"programs": {"on_exec": "uprobe"}},
        {"tables": ["targets", "gils"]},
        {"rings": []},
    ],
)
def test_another_request_has_another_key(change: dict[str, Any]) -> None:
    """
    Whatever the compiler is given makes a difference.
    """
    assert _key() != _key({**_MESSAGE, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2"},
        {"system": _system(2, "6.18.1")},
        {"system": _system(3, "#2 SMP")},
        {"system": _system(4, "aarch64")},
    ],
)
def test_other_surroundings_have_another_key(change: dict[str, Any]) -> None:
    """
    So do gilscope's version, the kernel, its build, and the machine.
    """
    assert _key() != _key(**change)


def test_what_changes_nothing_leaves_the_key() -> None:
    """
    The order of the macros, and the name of the host.
    """
    assert _key() == _key({**_MESSAGE, "cflags": ["-DB=2", "-DA=1"]}, system=_system(1, "other"))


def test_the_running_system_is_the_default() -> None:
    """
    Without a system it is this one.
    """
    assert _key(system=os.uname()) == program_key(_MESSAGE, version="1")


def test_programs_come_back(cache: ProgramCache) -> None:
    """
    What was stored is loaded, under its key only.
    """
    assert _COMPILED == cache.load(_KEY)
    assert cache.load(_OTHER_KEY) is None


def test_the_folder_of_the_user_is_looked_up_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Without a folder it is the one of XDG_CACHE_HOME.
    """
    cache = ProgramCache()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.store(_KEY, _COMPILED)

    assert _COMPILED == ProgramCache(tmp_path / "gilscope").load(_KEY)
    assert _COMPILED == cache.load(_KEY)


def test_an_entry_is_replaced(cache: ProgramCache) -> None:
    """
    The last one stored under a key is the one that counts.
    """
    newer = replace(_COMPILED, bcc_version="0.35.0")
    cache.store(_KEY, newer)

    assert newer == cache.load(_KEY)


def test_an_entry_is_for_its_owner(entry: Path) -> None:
    """
    Nobody else has to read it, whatever the umask says.
    """
    assert 0o600 == entry.stat().st_mode & 0o777


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _changed(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b"4096", b"4097"))
    assert content != path.read_bytes()


def _without_seal(path: Path) -> None:
    path.write_bytes(path.read_bytes().partition(b"\n")[2])


def _not_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\n{}")


def _writable_by_the_group(path: Path) -> None:
    path.chmod(0o620)


def _writable_by_all(path: Path) -> None:
    path.chmod(0o602)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder_writable_by_all(path: Path) -> None:
    path.parent.chmod(0o777)


def _folder_above_writable_by_the_group(path: Path) -> None:
    path.parent.parent.chmod(0o775)


@pytest.mark.parametrize(
    "spoil",
    [
        _cut,
        _empty,
        _changed,
        _without_seal,
        _not_text,
        _writable_by_the_group,
        _writable_by_all,
        _link,
        _pipe,
        _folder_writable_by_all,
        _folder_above_writable_by_the_group,
    ],
)
def test_what_cannot_be_believed_is_compiled_again(
    cache: ProgramCache, entry: Path, spoil: Callable[[Path], None]
) -> None:
    """
    A file that is damaged, or that somebody else may have written, does not reach the kernel.
    """
    spoil(entry)

    assert cache.load(_KEY) is None


def test_an_entry_of_somebody_else_is_not_believed(
    cache: ProgramCache, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is the file's owner who counts, not the one who may read it.
    """
    if os.geteuid() == 0:
        os.chown(entry, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    assert cache.load(_KEY) is None


def test_an_entry_under_another_name_is_not_believed(cache: ProgramCache, entry: Path) -> None:
    """
    The seal is over the key as well.
    """
    entry.rename(entry.with_name(f"programs-{_OTHER_KEY}"))

    assert cache.load(_OTHER_KEY) is None


def test_nothing_is_stored_where_others_can_write(tmp_path: Path) -> None:
    """
    It would never be believed.
    """
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    ProgramCache(folder).store(_KEY, _COMPILED)

    assert [] == list(folder.iterdir())


def test_folder_that_cannot_be_made_is_no_failure(tmp_path: Path) -> None:
    """
    Without a cache everything works, a little later.
    """
    (tmp_path / "file").write_text("")
    cache = ProgramCache(tmp_path / "file" / "folder")
    cache.store(_KEY, _COMPILED)

    assert cache.load(_KEY) is None


def test_a_use_makes_an_entry_young(cache: ProgramCache, entry: Path) -> None:
    """
    So that one that is used every day outlives many that were used once.
    """
    os.utime(entry, ns=(1, 1))
    cache.load(_KEY)

    assert 1 < entry.stat().st_mtime_ns


def test_the_youngest_few_are_kept(cache: ProgramCache, entry: Path) -> None:
    """
    Of programs 16, what was left half written included; other files in the folder stay.
    """
    others = entry.with_name("sites-ab12")
    others.write_text("")
    half = entry.with_name("programs-0123456789abcdef")
    half.write_text("")
    for number, path in enumerate((others, half, entry)):
        os.utime(path, ns=(number, number))
    keys = [f"{number:064}" for number in range(1, 16)]
    for number, key in enumerate(keys):
        cache.store(key, _COMPILED)
        os.utime(entry.with_name(f"programs-{key}"), ns=(number + 10, number + 10))

    kept = sorted(path.name for path in entry.parent.iterdir())
    assert sorted([entry.name, *(f"programs-{key}" for key in keys), others.name]) == kept
    cache.store("f" * 64, _COMPILED)
    assert not entry.exists()
    assert 17 == len(list(entry.parent.iterdir()))
