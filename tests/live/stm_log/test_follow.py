"""``gilscope stm follow`` as users run it."""

import json
import signal
from pathlib import Path

import pytest

from support.commands.gilscope import Gilscope, eventually, gilscope_started
from support.stm_log.program import played_log
from support.stm_log.reading import log_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_LOG = played_log("E16", 3000).content
_WITHOUT_INOTIFY = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"',
    "sh",
)


def _wait_for(command: Gilscope, words: str) -> None:
    eventually(lambda: words in command.output)


def test_without_notice_logs_are_looked_at_by_the_clock(tmp_path: Path) -> None:
    """
    Where the kernel grants no inotify, which is said once.
    """
    log = tmp_path / "app.log"
    words = ("stm", "follow", str(log), "--every", "0.1", "--format", "json")
    with gilscope_started(*words, wrapper=_WITHOUT_INOTIFY) as command:
        warning = command.says("no notice of changes (inotify: ")
        log.write_bytes(_LOG)
        _wait_for(command, f'"read_bytes": {len(_LOG)}')
        command.send(signal.SIGINT)
        outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert 1 == outcome.messages.count(warning)
    report = json.loads(outcome.output.splitlines()[-1])["report"]
    assert log_of(_LOG).totals.commits == report["files"][str(log)]["totals"]["commits"]


def test_log_of_a_process_that_writes_blocks_is_followed(tmp_path: Path) -> None:
    """
    Its summaries add up to what the report has in the end.
    """
    log = tmp_path / "app.log"
    words = ("stm", "follow", f"{tmp_path}/*.log", "--every", "0.1", "--format", "json")
    with gilscope_started(*words) as command, log.open("wb", buffering=0) as writer:
        command.says("Following ")
        for at in range(0, len(_LOG), 4096):
            block = _LOG[at : at + 4096]
            writer.write(block)
            _wait_for(command, f'"total": {{"read_bytes": {at + len(block)}, ')
        command.send(signal.SIGINT)
        lines = [json.loads(line) for line in command.outcome().output.splitlines()]

    *summaries, last = lines
    seen = [line["logs"][str(log)]["interval"] for line in summaries if line["logs"]]
    totals = last["report"]["files"][str(log)]["totals"]
    assert (totals["commits"], totals["aborts"], len(_LOG)) == (
        sum(part["commits"] for part in seen),
        sum(part["aborts"] for part in seen),
        sum(part["read_bytes"] for part in seen),
    )
