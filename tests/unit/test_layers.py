"""Holds the rooms of the package to their floors: imports go downward, and most rooms are pure."""

from pathlib import PurePath

import pytest

from support.imports import MODULES, imported_names, own_imports

_FLOORS = (
    ("values",),
    ("arch", "assets", "metrics", "model"),
    ("elf", "text"),
    ("errors", "naming"),
    ("stm_log", "system"),
    ("process", "series"),
    ("bpf", "budget", "exporter", "runtimes", "verdict"),
    ("windows",),
    ("gil", "locks", "reports", "top", "transactions"),
    ("doctor", "regions", "tracing", "web"),
    ("discovery", "dump"),
    ("commands",),
    ("cli", "pytest_plugin"),
    ("__main__",),
)
"""A room imports from rooms on lower floors, and from itself."""
_FLOOR_OF = {room: number for number, rooms in enumerate(_FLOORS) for room in rooms}

_MOST_MODULES = 15
"""In one folder."""

_PURE_ROOMS = (
    *("arch", "budget", "elf", "errors", "exporter", "metrics", "model", "naming"),
    *("reports", "series", "text", "top", "verdict"),
    *("gil.abi", "gil.totals", "locks.abi", "locks.totals", "runtimes", "stm_log"),
)
"""They import no files, sockets, processes or clocks, but for these modules, each with a reason."""
_TOUCHING = {
    "exporter.collector": "knows how long a scrape takes",
    "runtimes.site_cache": "keeps what was found in files",
    "runtimes.cpython.sites.search": "starts the child that searches",
    "runtimes.cpython.sites.search_child": "is that child",
    "runtimes.cpython.thread_roles": "knows what time it is",
    "runtimes.cpython.code.unwind_info": "reads what the loader has mapped",
    "stm_log.follow": "follows files",
    "stm_log.log_file": "opens them",
    "stm_log.read": "reads them",
    "stm_log.source_lines": "reads sources",
    "top.terminal_driver": "is the terminal",
}
_TOUCHES_THE_WORLD = {
    "bcc",
    "fcntl",
    "os",
    "select",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "time",
}

_SEES_PLAIN_VALUES = ("exporter", "naming", "reports", "series", "text", "top", "verdict")
"""What is shown never depends on how it was observed: no probes, no maps, no /proc."""
_OBSERVES = (
    *("bpf", "discovery", "gil", "locks", "process", "runtimes", "system", "tracing"),
    *("transactions", "windows"),
)

_WAYS_OF_TRACING = ("gil", "locks", "transactions")

# The modules that may import what is not for everyone, each with its reason.
_MAY_IMPORT = {
    "bcc": {
        "bpf.compile.bcc_child": "runs in a process of its own, which takes the compiler with it"
    },
    "pytest": {"pytest_plugin.plugin": "is its plugin"},
    "prometheus_client": {
        "exporter": "turns values into families",
        "web.server": "answers scrapes",
    },
    "subprocess": {
        "bpf.compile.child": "starts the compiler",
        "doctor.compiler": "asks which Python has BCC",
        "pytest_plugin.own_tracer": "is traced by a child, from outside",
        "runtimes.cpython.sites.search": "reads a stranger's file where it can do no harm",
    },
    "textual": {"top": "draws the live view; large, so that commands.top imports it late"},
    "bcrypt": {
        "web.config.passwords": "for --web.config.file alone: commands.serving imports it late"
    },
    "yaml": {"web.config.parse": "likewise"},
    "markupsafe": {
        "naming.origins": "names files in HTML",
        "reports": "make HTML",
        "web": "sends it",
    },
    "rich": {"top": "comes with textual, which draws with its styles and widths"},
}


def _room(module: str) -> str:
    return module.partition(".")[0]


def _is_in(module: str, *rooms: str) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def _libraries(module: str) -> set[str]:
    return {name.partition(".")[0] for name in imported_names(MODULES[module].read_text())}


def test_every_room_has_its_floor() -> None:
    """
    No room is forgotten, none is gone, and nothing else stands loose at the top.
    """
    rooms = {_room(module) for module in MODULES if module}

    assert set(_FLOOR_OF) == rooms


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_downward(module: str) -> None:
    """
    A module imports from its own room and from rooms on floors below.
    """
    room = _room(module)
    others = {name for name in own_imports(module) if _room(name) != room}

    assert [] == [name for name in others if _FLOOR_OF[_room(name)] >= _FLOOR_OF[room]]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """
    Within a room, too, there is an order in which its modules can be read.
    """
    left = {module: own_imports(module) - {module} for module in MODULES}
    while ready := [module for module, needed in left.items() if not needed & set(left)]:
        for module in ready:
            del left[module]

    assert {} == left


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES.values()}))
def test_a_folder_is_small_enough_to_be_read_at_a_glance(folder: PurePath) -> None:
    """
    Fifteen modules at most.
    """
    modules = [path for path in MODULES.values() if path.parent == folder]

    assert len([path for path in modules if path.name != "__init__.py"]) <= _MOST_MODULES


@pytest.mark.parametrize("module", [name for name in MODULES if _is_in(name, *_PURE_ROOMS)])
def test_a_pure_room_does_not_touch_the_world(module: str) -> None:
    """
    It can be tested without a process, a file or a clock, but for what is listed.
    """
    if _is_in(module, *_TOUCHING):
        return

    assert set() == _libraries(module) & _TOUCHES_THE_WORLD


def test_what_is_listed_touches_the_world() -> None:
    """
    The list of exceptions has none that is not needed.
    """
    touching = {module for module in MODULES if _libraries(module) & _TOUCHES_THE_WORLD}

    assert [] == [name for name in _TOUCHING if not any(_is_in(each, name) for each in touching)]


@pytest.mark.parametrize("library", _MAY_IMPORT)
def test_a_library_stays_with_those_who_need_it(library: str) -> None:
    """
    BCC, the Prometheus client and child processes are used where a reason is written down.
    """
    users = [module for module in MODULES if library in _libraries(module)]

    assert [] == [module for module in users if not _is_in(module, *_MAY_IMPORT[library])]


@pytest.mark.parametrize("module", [name for name in MODULES if _is_in(name, *_SEES_PLAIN_VALUES)])
def test_what_is_shown_is_plain_values(module: str) -> None:
    """
    Reports, pages and families can be made of a recording from another machine.
    """
    assert [] == [name for name in own_imports(module) if _is_in(name, *_OBSERVES)]


@pytest.mark.parametrize("room", _WAYS_OF_TRACING)
def test_the_ways_of_tracing_do_not_know_each_other(room: str) -> None:
    """
    GILs, locks and transactions share what is below them, and nothing else.
    """
    known = {name for module in MODULES if _is_in(module, room) for name in own_imports(module)}
    others = set(_WAYS_OF_TRACING) - {room}

    assert [] == [name for name in known if _is_in(name, *others)]


def test_the_import_finder_sees_every_form() -> None:
    """
    Plain, dotted, renamed and late imports are all found.
    """
    source = "import os.path as p\nfrom gilscope.elf import cfi\ndef f():\n    import bcc\n"

    assert ["os.path", "gilscope.elf.cfi", "bcc"] == list(imported_names(source))
