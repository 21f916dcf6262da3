"""The account of locks, as far as it needs no probe."""

import errno
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gilscope.errors import UnsupportedPython
from gilscope.locks import account as account_module
from gilscope.locks.account import LockAccount
from gilscope.model.gil import Process
from gilscope.process.attachment import Retention
from support.recordings.gil import full_mode


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[LockAccount]:
    """Return one that can trace nothing."""

    def refuse(_self: LockAccount, _pid: int) -> None:
        raise UnsupportedPython("it is too old")

    monkeypatch.setattr(account_module.LockAccount, "attach", refuse)
    made = LockAccount()
    yield made
    made.close()


def _process(pid: int) -> Process:
    return replace(full_mode().observation.process, pid=pid)


def _pids(account: LockAccount) -> list[int]:
    return [seen.process.pid for seen in account.observe()]


def test_why_locks_are_not_traced_is_told_while_the_process_is_there(account: LockAccount) -> None:
    """
    And for as long as what was counted of others; a host with many has no more memory of them.
    """
    account.attach_beside(_process(1))
    account.attach_beside(_process(2))
    (first, _) = account.observe()
    account.drop_ended(Retention(60.0), {1})
    kept = _pids(account)
    account.drop_ended(Retention(0.0), {1})

    assert (None, "it is too old") == (first.totals, first.invalid)
    assert [1, 2] == kept
    assert [1] == _pids(account)
    account.drop(1)
    assert [] == _pids(account)


class _Unreadable:
    """Probes whose tables cannot be read."""

    sends_spans = False

    def new_stacks(self, _known: object) -> dict[int, object]:
        return {}

    def read(self) -> None:
        raise OSError(errno.EBADF, "no such table")

    def close(self) -> None: ...


def test_tables_that_cannot_be_read_cost_nobody_elses_figures(
    account: LockAccount, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Why locks of others are not traced is told all the same, and the log says what happened.
    """
    account.attach_beside(_process(1))
    monkeypatch.setattr(account, "_probe", _Unreadable())

    assert [1] == _pids(account)
    assert "could not read what the probes on locks have counted" in caplog.text
