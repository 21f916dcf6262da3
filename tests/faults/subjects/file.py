"""What happens to the interpreter's file while it is traced."""

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from faults.bench import Bench
from faults.native import found
from faults.registry import Verdict, fault
from faults.targets import SYSTEM_PYTHON, Target
from support.commands.gilscope import eventually
from support.commands.serve import Service


def _copied(bench: Bench, kind: str, *, may_end: bool = False) -> tuple[Path, Target]:
    """Start a target from a copy of an interpreter; return what was copied, and the target."""
    folder = bench.folder / f"copy-{len(list(bench.folder.iterdir()))}"
    folder.mkdir()
    if kind == "static":
        file = Path(shutil.copy(SYSTEM_PYTHON, folder))
        return file, bench.target(str(file), may_end=may_end)
    original = found("pyenv-3.12")
    file = Path(shutil.copy(original.elf, folder))
    python = [word.replace(str(original.elf.parent), str(folder)) for word in original.command()]
    return file, bench.target("env", f"LD_LIBRARY_PATH={folder}", *python, may_end=may_end)


def _rename_over(file: Path) -> None:
    other = file.with_name("other")
    shutil.copy("/bin/sleep", other)
    other.rename(file)


def _rename_copy(file: Path) -> None:
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    copy.rename(file)


_WAYS: dict[str, Callable[[Path], None]] = {
    "renamed_over": _rename_over,
    "renamed_copy": _rename_copy,
    "deleted": Path.unlink,
}


def _replaced(way: str, kind: str) -> None:
    what = f"interpreter's file ({kind}) {way.replace('_', ' ')} while traced, then attached anew"

    @fault(f"file_{way}_{kind}", what, half=(way, kind) == ("renamed_copy", "shared"))
    def check(bench: Bench) -> None:
        file, target = _copied(bench, kind)
        service = bench.serve("-p", str(target.pid))
        bench.sees(service, target)
        _WAYS[way](file)
        bench.counts_rightly(service, target)
        bench.reports_rightly(target, "--mode", "full")


for _way in _WAYS:
    for _kind in ("static", "shared"):
        _replaced(_way, _kind)


@fault("file_rewritten_same", "libpython rewritten in place with the same bytes while traced")
def _file_rewritten_same(bench: Bench) -> None:
    file, target = _copied(bench, "shared")
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    content = file.read_bytes()
    with file.open("r+b") as out:
        out.write(content)
    _tells_no_lie(bench, service, target)


def _tells_no_lie(bench: Bench, service: Service, target: Target) -> None:
    """Expect right figures, or that they are said to be none."""
    scrape = bench.lives(service)
    if scrape.total("gilscope_probe_valid", pid=str(target.pid)) == 1:
        bench.counts_rightly(service, target)


@fault("file_appended", "libpython gets bytes appended while traced: figures stay right")
def _file_appended(bench: Bench) -> None:
    file, target = _copied(bench, "shared")
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    with file.open("ab") as out:
        out.write(bytes(10_000))
    bench.counts_rightly(service, target)
    bench.reports_rightly(target)


@fault("file_truncated", "libpython truncated: the target dies by itself, agent and others go on")
def _file_truncated(bench: Bench) -> None:
    file, target = _copied(bench, "shared", may_end=True)
    other = bench.target()
    service = bench.serve("--match", str(bench.folder))
    bench.sees(service, target)
    bench.sees(service, other)
    os.truncate(file, 0)
    eventually(lambda: not target.is_alive)
    bench.counts_rightly(service, other)


@fault("file_overwritten_other", "libpython overwritten in place by another version while traced")
def _file_overwritten_other(bench: Bench) -> None:
    file, target = _copied(bench, "shared", may_end=True)
    other = bench.target()
    service = bench.serve("--match", str(bench.folder))
    bench.sees(service, target)
    with file.open("r+b") as out:
        out.write(found("pyenv-3.11").elf.read_bytes())
    bench.counts_rightly(service, other)


@fault(
    "upgrade_while_traced",
    "libpython upgraded while traced, a process with the new one: both right",
)
def _upgrade_while_traced(bench: Bench) -> None:
    file, target = _copied(bench, "static")
    service = bench.serve("--match", str(bench.folder))
    bench.sees(service, target)
    _rename_copy(file)
    newer = bench.target(str(file))
    bench.counts_rightly(service, newer)
    bench.counts_rightly(service, target)


@fault(
    "file_mounted_over",
    "a copy is bind-mounted over the path of the interpreter that runs: the running one is traced",
    half=True,
    mounts=True,
)
def _file_mounted_over(bench: Bench) -> None:
    for kind in ("static", "shared"):
        file, target = _copied(bench, kind)
        copy = Path(shutil.copy(file, bench.folder / f"mounted-{kind}"))
        subprocess.run(["mount", "--bind", str(copy), str(file)], check=True)
        bench.finally_do(partial(subprocess.run, ["umount", "-l", str(file)], check=True))
        outcome = bench.run("record", "-p", str(target.pid), "-d", "0.2")
        if outcome.exit_code == 0:
            bench.reports_rightly(target)
        else:
            refusal = (3, 4)
            bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in refusal, outcome.messages)
