"""Which processes are probed in the same file, and whose turn it is there."""

from types import SimpleNamespace
from typing import cast

from gilscope.budget.prices import Sharing
from gilscope.gil.tracing.probed_files import ProbedFile, ProbedFiles
from gilscope.gil.tracing.process import AttachedProcess
from support.gil.windows_setting import S, target


def _traced(pid: int, inode: int, build_id: str = "") -> AttachedProcess:
    return cast("AttachedProcess", SimpleNamespace(pid=pid, target=target(inode, build_id)))


def test_processes_of_one_file_share_it() -> None:
    """
    The same inode, or the same build in a container's copy of the file.
    """
    files = ProbedFiles()
    first = files.join(_traced(1, inode=7))

    assert files.join(_traced(2, inode=7)) is first
    assert files.join(_traced(3, inode=8)) is not first
    assert files.join(_traced(4, inode=9, build_id="b")) is files.join(
        _traced(5, inode=10, build_id="b")
    )
    assert Sharing(2, 0) == first.sharing


def test_a_file_without_processes_is_forgotten() -> None:
    """
    Not before the last one has gone, and its windows with it.
    """
    files = ProbedFiles()
    one, other = _traced(1, inode=7), _traced(2, inode=7)
    file = files.join(one)
    files.join(other)
    file.open_in.update((1, 2))

    files.leave(one, file)
    assert Sharing(1, 1) == file.sharing
    assert files.join(one) is file
    files.leave(one, file)
    files.leave(other, file)

    assert files.join(one) is not file


def test_who_has_had_its_turn_makes_room_for_who_waits() -> None:
    """
    Ten seconds each, where all of six windows are open and somebody was refused lately.
    """
    file = ProbedFile(targets=12, open_in={1, 2, 3, 4, 5, 6}, refused_ns=95 * S)
    assert file.is_full
    assert 2.0 == file.processes_per_window

    assert file.must_make_room(opened_ns=90 * S, now_ns=100 * S)
    assert not file.must_make_room(opened_ns=91 * S, now_ns=100 * S)
    assert not file.must_make_room(opened_ns=90 * S, now_ns=105 * S)
    file.open_in.discard(3)
    assert not file.must_make_room(opened_ns=90 * S, now_ns=100 * S)
