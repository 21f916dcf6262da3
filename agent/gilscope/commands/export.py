"""``gilscope export``: writes the dashboards, rules and tables of the installed version."""

import argparse
import errno
import sys
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path

from gilscope import __home__
from gilscope.assets.bundles import dashboards, kubernetes, provisioning, rules, schema
from gilscope.errors import FilesDiffer
from gilscope.reports import metric_table
from gilscope.system import ending
from gilscope.system.atomic_output import write_atomically
from gilscope.text.printable import printable

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "write the dashboards, rules, metric table and JSON Schemas of this version to files"

EXAMPLES = """\
examples:
  gilscope export rules /etc/prometheus/rules
  gilscope export provisioning /etc/grafana/provisioning
  gilscope export dashboards gilscope-dashboards --force
  gilscope export kubernetes manifests && kubectl apply -f manifests
  gilscope export metrics
  gilscope export schema                     # of record and dump --format json
"""

_WRITERS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "dashboards": dashboards,
    "rules": rules,
    "metrics": lambda: {"metrics.md": metric_table.render(linked=False)},
    "provisioning": provisioning,
    "kubernetes": kubernetes,
    "schema": schema,
}
_WITH_RUNBOOKS = ("rules", "kubernetes")
_RUNBOOK = "runbook_url: "
_PUBLISHED = f"{_RUNBOOK}{__home__}/blob/main/"
_DONE, _UNEXPECTED = 0, 1


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "what",
        choices=tuple(_WRITERS),
        metavar="WHAT",
        help=f"what to write: {', '.join(_WRITERS)}",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="write to DIR, which is made if need be (default: the current folder)",
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite files that have another content"
    )
    parser.add_argument(
        "--runbooks",
        metavar="URL",
        help="let alerts, of rules and kubernetes, find their runbooks below URL instead of in the "
        "published repository",
    )
    parser.set_defaults(complain=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Write the files, name them on stdout, and return the exit code; raises FilesDiffer."""
    if arguments.runbooks is not None and arguments.what not in _WITH_RUNBOOKS:
        arguments.complain(f"{arguments.what} has no runbooks, so --runbooks makes no sense")
    try:
        files = _WRITERS[arguments.what]()
    except FileNotFoundError as error:
        print(f"error: this installation is not complete: {error}", file=sys.stderr)
        return _UNEXPECTED
    if arguments.runbooks is not None:
        files = {name: _linked(text, arguments.runbooks) for name, text in files.items()}
    try:
        with ending.told() as stopped:
            written = _write(arguments.folder, files, force=arguments.force)
            stopped.end()
    except (FileExistsError, NotADirectoryError) as error:
        name = printable(str(error.filename))
        print(f"error: {name} is in the way: it is not a folder", file=sys.stderr)
        return _UNEXPECTED
    except OSError as error:
        name = printable(str(error.filename or arguments.folder))
        print(f"error: cannot write {name}: {error.strerror}", file=sys.stderr)
        return _UNEXPECTED
    for name in files:
        print(arguments.folder / name)
    sys.stdout.flush()
    print(f"{written} of {len(files)} files were written anew.", file=sys.stderr)
    return _DONE


def _linked(text: str, address: str) -> str:
    return text.replace(_PUBLISHED, f"{_RUNBOOK}{address.rstrip('/')}/")


def _write(folder: Path, files: Mapping[str, str], *, force: bool) -> int:
    """Write what is not there already, and return how many files that were."""
    contents = {folder / name: text.encode() for name, text in files.items()}
    found = {path: _content(path) for path in contents if path.exists()}
    differing = [path for path, content in found.items() if content != contents[path]]
    if differing and not force:
        names = ", ".join(map(str, differing))
        raise FilesDiffer(f"nothing was written, because files have another content: {names}")
    missing = [path for path, content in contents.items() if found.get(path) != content]
    for path in missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, methodcaller("write", contents[path]))
    return len(missing)


def _content(path: Path) -> bytes:
    if path.exists() and not (path.is_file() or path.is_dir()):
        # A pipe would be waited for.
        raise OSError(errno.EINVAL, "it is there, and is no file", str(path))
    return path.read_bytes()
