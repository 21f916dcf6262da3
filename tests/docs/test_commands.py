"""Every command in a shell's block of README.md, of the guide and of the pages beside it is run."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.docs.command_blocks import Place, Started, blocks_of, commands_of, free_port, place
from support.docs.pages import DOCS, ROOT
from support.prometheus.monitoring import pushgateway

_FOLDERS = {
    ROOT / "README.md": "",
    DOCS / "guide.md": "docs/examples",
    DOCS / "install.md": "",
    DOCS / "formats.md": "docs/examples",
}
"""Where the commands of a page are typed, in a checkout."""

_ALONE = DOCS / "guide.md"
"""What its commands say of times lost others on the machine would add to."""

_WHEEL = "gilscope-0.2.0-cp311-abi3-linux_x86_64.whl"
_NOT_RUN = {
    "make wheel": "the packaging test makes a wheel that brings the probes",
    **dict.fromkeys(
        [
            "apt-get install ./gilscope_0.2.0-1_amd64.deb",
            f"python3 -m venv /opt/gilscope && /opt/gilscope/bin/pip install {_WHEEL}",
            f"pipx install {_WHEEL}",
            f"uv tool install {_WHEEL}",
        ],
        "it would be installed on this machine; `make test-install` does it in containers",
    ),
    "make stack": "tests/live/serve/test_stack.py runs it",
    "make test": "this test is part of it",
    "flamegraph.pl --countname ns waits.txt > waits.svg": "no package has that program",
    "go tool pprof -top waits.pb.gz": "needs Go; test_formats_agree.py runs it",
    "go tool pprof -top -sample_index=gil_wait waits.pb.gz": "likewise",
    "go tool pprof -top -sample_index=gil_wait -tagfocus 'role=answer' -tagfocus "
    "'holder=compute_price' waits.pb.gz": "likewise",
    "go tool pprof -top 'http://127.0.0.1:9845/report?form=pprof&last=60'": "likewise",
    "curl -H 'Content-Type: application/json' --data-binary @waits.otlp.json "
    "http://127.0.0.1:4318/v1development/profiles": "needs a Collector; `make check-receivers`",
    "curl -s 'http://127.0.0.1:9845/report?form=otlp-profiles&last=60' | "
    "curl -H 'Content-Type: application/json' --data-binary @- "
    "http://127.0.0.1:4318/v1development/profiles": "likewise",
    "grep '^holders' waits.txt | flamegraph.pl --countname ns > holders.svg": "likewise",
}


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a command has to say."""

    command: str
    says: str
    runs_on: bool = False
    """It goes on until the page is over, and needs to have said so by then only."""


_RULES = (
    _Rule(r"make demo", r"convoy: serve_echo \(convoy\.py:\d+\)"),
    _Rule(r"apt-get install .*", r"(0 upgraded|newest version)"),
    _Rule(r"python3 -m venv \S+", r"^"),
    _Rule(r"\S+/pip install .*", r"^Successfully installed .*gilscope-"),
    _Rule(r"(\S+/)?gilscope doctor", r"(?s)^  ok +kernel .*^  ok +probes "),
    _Rule(r"gilscope doctor -p 4711", r"(?s)^  ok +process .*^  ok +gil code "),
    _Rule(r"gilscope record -p 4711 -d 10", r"convoy: answer \(quotes_before\.py:28\)$"),
    _Rule(r"gilscope record -p \d+ -d 10 .*--format .*", r"^Tracing the GIL of quotes_"),
    _Rule(r"gilscope record --f.* -- python3 \S+", r"^Tracing the GIL of load_test\.py"),
    _Rule(
        r"gilscope diff before\.json after\.json .*", r"(?m)^\| threads waiting \| .* -\d+ % \|$"
    ),
    _Rule(r"gilscope serve -p \d+", r"^Serving http", runs_on=True),
    _Rule(r"python3 quotes_(before|after)\.py", r"^\d+$", runs_on=True),
    _Rule(r"python3 quotes_client\.py \d+", r"^half of the answers within ", runs_on=True),
    _Rule(
        r"gilscope diff before\.json after\.json",
        r"(?m)^  threads waiting +0\.\d+ +[\d.]+ +-\d+ %$(.|\n)*"
        r"^  compute_price \(quotes_before\.py\)",
    ),
    _Rule(r"gilscope dump -p \d+", r"(holds|hold) the GIL"),
    _Rule(r"promtool tsdb .*", r"^BLOCK ULID"),
    _Rule(r"curl .*/metrics \| grep .*", r"^gilscope_gil_convoy_waits_total\{.*quotes_after\.py"),
    _Rule(r"curl --fail .* http://127\.0\.0\.1:9091/.*", r"^"),
    _Rule(r"mv waits\.prom\.new .*", r"^"),
    _Rule(r"rm -rf .*", r"^"),
)

_NAMES = {"quotes_before.py": ("4711", "60999"), "quotes_after.py": ("4712", "36999")}
"""What the pages call the process id and the port of a server."""
_LOAD_TEST = """\
import threading
import time

threads = [threading.Thread(target=sum, args=[range(10**7)]) for _ in range(2)]
for thread in threads:
    thread.start()
"""


def _commands(page: Path) -> list[str]:
    """Return what is run of *page*."""
    return [command for block in _blocks(page) for command in block]


def _blocks(page: Path) -> list[list[str]]:
    """Return what is run of *page*, block by block."""
    blocks = [
        [command for command in commands_of(block) if command not in _NOT_RUN]
        for block in blocks_of(page)
        if _is_new(page, block)
    ]
    return [block for block in blocks if block]


def _is_new(page: Path, block: str) -> bool:
    """Return whether no page before has *block* too: what installs takes long."""
    pages = list(_FOLDERS)
    return all(block not in blocks_of(before) for before in pages[: pages.index(page)])


def _sessions() -> list[tuple[Path, list[str]]]:
    """Return what is typed one after the other, by page; blocks of README.md stand alone."""
    return [
        (page, commands)
        for page in _FOLDERS
        for commands in (_blocks(page) if page.name == "README.md" else [_commands(page)])
    ]


def _rule(command: str) -> _Rule | None:
    return next((rule for rule in _RULES if re.fullmatch(rule.command, command.rstrip())), None)


@pytest.mark.parametrize("page", _FOLDERS, ids=lambda page: page.stem)
def test_it_is_known_what_each_command_says(page: Path) -> None:
    """
    A command without a rule would be run without a look at what it does.
    """
    commands = _commands(page)

    assert commands
    assert [] == [command for command in commands if _rule(command) is None]


def test_rules_and_excuses_are_of_use() -> None:
    """
    Each is about a command that is on a page.
    """
    everything = {
        command for page in _FOLDERS for block in blocks_of(page) for command in commands_of(block)
    }
    used = {_rule(command) for page in _FOLDERS for command in _commands(page)}

    assert set() == set(_NOT_RUN) - everything
    assert set() == set(_RULES) - used


@contextmanager
def _prepared(page: Path, folder: Path) -> Iterator[Place]:
    """Make a place for *page*, with what its commands take for granted."""
    textfiles = folder / "textfiles"
    textfiles.mkdir()
    port = free_port()
    with ExitStack() as stack:
        here = stack.enter_context(place(folder, _FOLDERS[page]))
        here.words |= {
            "-d 10": "-d 1",
            "/var/lib/prometheus/node-exporter": str(textfiles),
            "gilscope serve": f"gilscope serve --listen 127.0.0.1:{port}",
            "127.0.0.1:9845": f"127.0.0.1:{port}",
            "make demo": "make --silent demo SECONDS=1",
            # Whatever is missing was installed by the set-up, but for headers of a strange kernel.
            "apt-get install": "apt-get install --simulate",
            "linux-headers-$(uname -r)": "",
        }
        if any(":9091" in command for command in _commands(page)):
            here.words["127.0.0.1:9091"] = stack.enter_context(pushgateway(folder))
        here.folder.joinpath("load_test.py").write_text(_LOAD_TEST)
        yield here


def _serve(here: Place) -> None:
    """Start the server that a page speaks of and does not start itself, and its client."""
    examples = DOCS / "examples"
    _meet(here, here.start(f"python3 {examples}/quotes_before.py"), "quotes_before.py")
    here.start(f"python3 {examples}/quotes_client.py 60999")


def _meet(here: Place, server: Started, name: str) -> None:
    """Let the pages' process id and port stand for those of *server*."""
    pid, port = _NAMES[name]
    here.words[port] = server.says(r"^\d+$")
    here.words[pid] = str(server.process.pid)


def _parameters() -> list[object]:
    return [
        pytest.param(
            page,
            commands,
            id=f"{page.stem}: {commands[-1]}",
            marks=[] if page == _ALONE else pytest.mark.beside_others,
        )
        for page, commands in _sessions()
    ]


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(("page", "commands"), _parameters())
def test_every_command_runs(page: Path, commands: list[str], tmp_path: Path) -> None:
    """
    In the order of the page, each command does what it says.
    """
    run_on: list[tuple[Started, _Rule]] = []
    with _prepared(page, tmp_path) as here:
        for command in commands:
            rule = _rule(command)
            assert rule is not None, command
            if "-p 4711" in command and "4711" not in here.words:
                _serve(here)
            if not rule.runs_on:
                assert re.search(rule.says, here.run(command), re.MULTILINE), command
                continue
            started = here.start(command)
            run_on.append((started, rule))
            name = command.partition(" ")[2]
            if name in _NAMES:
                _meet(here, started, name)
            elif "serve" in command:
                started.says(rule.says)
        for started, rule in run_on:
            started.says(rule.says)
