"""Holds the modules to their layers: imports go downward, and what touches the world is listed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_PACKAGE = Path(__file__).resolve().parents[2] / "agent" / "gilscope"

_BASE, _PURE, _IO, _VIEWS, _SERVING, _COMMANDS, _CLI = range(7)

_BASE_MODULES = {"", "errors", "histogram", "metrics", "model", "printable"}
# Whatever is not listed here or found in a package below is pure.
_IO_MODULES = {
    "agent_reader",
    "allocation",
    "assets",
    "atomic_output",
    "bare_agent",
    "births",
    "breakpoints",
    "cache_folder",
    "descriptors",
    "discovery",
    "ending",
    "cpu_time",
    "gil.blame_tables",
    "gil.calibration",
    "gil.count_tables",
    "gil.find_sites",
    "gil.frame_walk",
    "gil.full_mode",
    "gil.handles",
    "gil.held_sampler",
    "gil.held_time",
    "gil.lock_memory",
    "gil.notices",
    "gil.plan",
    "gil.practice_lock",
    "gil.probe",
    "gil.quotas",
    "gil.process_reads",
    "gil.reading_allowance",
    "gil.readings",
    "gil.request",
    "gil.return_sites",
    "gil.role_reader",
    "gil.site_cache",
    "gil.site_search",
    "gil.thread_finder",
    "gil.traced",
    "gil.traced_processes",
    "gil.tracer",
    "gil.tracing_cost",
    "gil.trap_costs",
    "gil.usage",
    "gil.wakeups",
    "gil.window",
    "guarded_memory",
    "launch",
    "memory_reader",
    "waiting_thread",
    "log_output",
    "mapped_file",
    "own_memory",
    "process_access",
    "process_files",
    "process_name",
    "scheduling",
    "shipped",
    "procfs",
    "procmem",
    "regular_file",
    "shortage",
    "source_lines",
    "standard_streams",
    "stm.follow",
    "stm.followed_file",
    "stm.inotify",
    "stm.log_file",
    "stm.notice",
    "stm.places",
    "stm.read",
    "stm.sources",
    "stm_live.cost",
    "stm_live.plan",
    "stm_live.probe",
    "stm_live.request",
    "stm_live.target",
    "stm_live.tracer",
    "stm_live.window",
    "stm_live.window_thread",
    "stm_live.windows",
    "target",
    "web.access",
    "web.connections",
    "web.guard",
    "web.listener",
    "web.tls",
}
_LAYER_OF_PACKAGE = {
    "doctor": _IO,
    "kernel": _IO,
    "collectors": _VIEWS,
    "reports": _VIEWS,
    "top": _VIEWS,
    "serve": _SERVING,
    "watched": _SERVING,
    "commands": _COMMANDS,
    "cli": _CLI,
    "entry": _CLI,
    "__main__": _CLI,
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

# The modules that may import what is not for everyone, each with its reason.
_MAY_IMPORT = {
    "bcc": {"kernel.compile": "runs in a process of its own, which takes the compiler with it"},
    "prometheus_client": {
        "collectors": "turn values into families",
        "serve": "answers scrapes",
    },
    "subprocess": {
        "doctor.compiler": "asks which Python has BCC",
        "gil.site_search": "reads a stranger's file where it can do no harm",
        "kernel.loader": "starts kernel.compile",
    },
    "textual": {"top": "draws the live view; large, so that commands.top imports it late"},
    "bcrypt": {
        "web.passwords": "for --web.config.file alone, so that commands.serve imports it late"
    },
    "yaml": {"web.parse": "likewise"},
    "markupsafe": {"reports": "make HTML", "serve": "sends it"},
    "rich": {"top": "comes with textual, which draws with its styles and widths"},
}


def _module_name(path: Path) -> str:
    parts = path.relative_to(_PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


_MODULES = {_module_name(path): path for path in sorted(_PACKAGE.rglob("*.py"))}


def _layer(module: str) -> int:
    if module in _BASE_MODULES:
        return _BASE
    if module in _IO_MODULES:
        return _IO
    return _LAYER_OF_PACKAGE.get(module.partition(".")[0], _PURE)


def _imports(source: str) -> Iterator[str]:
    """Yield the dotted names that *source* imports, at its top or later."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _own_module(imported: str) -> str | None:
    """Return the module of gilscope that the dotted name *imported* belongs to."""
    if imported.partition(".")[0] != "gilscope":
        return None
    name = imported.removeprefix("gilscope").lstrip(".")
    return name if name in _MODULES else name.rpartition(".")[0]


def _may_import(module: str, library: str) -> bool:
    allowed = _MAY_IMPORT[library]
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def _libraries(module: str) -> set[str]:
    return {name.partition(".")[0] for name in _imports(_MODULES[module].read_text())}


@pytest.mark.parametrize("module", _MODULES)
def test_imports_go_downward(module: str) -> None:
    """
    A module imports from its own layer and from those below it.
    """
    imported = {_own_module(name) for name in _imports(_MODULES[module].read_text())}

    upward = sorted(name for name in imported if name and _layer(name) > _layer(module))

    assert [] == upward


@pytest.mark.parametrize("module", _MODULES)
def test_a_pure_module_does_not_touch_the_world(module: str) -> None:
    """
    Outside the IO layer and those above it nothing imports files, sockets, processes or clocks.
    """
    if _layer(module) >= _IO:
        return

    assert set() == _libraries(module) & _TOUCHES_THE_WORLD


@pytest.mark.parametrize("library", _MAY_IMPORT)
def test_a_library_stays_with_those_who_need_it(library: str) -> None:
    """
    BCC, the Prometheus client and child processes are used where a reason is written down.
    """
    users = [module for module in _MODULES if library in _libraries(module)]

    assert [] == [module for module in users if not _may_import(module, library)]


@pytest.mark.parametrize("module", [name for name in _MODULES if _layer(name) == _VIEWS])
def test_collectors_and_reports_see_plain_values(module: str) -> None:
    """
    What is shown never depends on how it was observed: no probes, no maps, no /proc.
    """
    own = (_own_module(name) for name in _imports(_MODULES[module].read_text()))

    assert [] == [name for name in own if name and _layer(name) == _IO]


def test_the_import_finder_sees_every_form() -> None:
    """
    Plain, dotted, renamed and late imports are all found.
    """
    source = "import os.path as p\nfrom gilscope.gil import layout\ndef f():\n    import bcc\n"

    assert ["os.path", "gilscope.gil.layout", "bcc"] == list(_imports(source))
