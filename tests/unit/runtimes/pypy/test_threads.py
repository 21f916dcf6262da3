"""The list of threads of a PyPy."""

import pytest

from gilscope.process.remote_read import TornRead
from gilscope.runtimes.pypy.layout import DESCRIPTOR_TID, THREAD_IDENT, THREAD_NEXT
from gilscope.runtimes.pypy.threads import PyPyThread, read_threads
from support.words_in_memory import Words

_HEAD, _FIRST, _SECOND, _STARTING = 0x1000, 0x2000, 0x3000, 0x4000
_LIST = {
    _HEAD + THREAD_NEXT: _FIRST,
    _FIRST + THREAD_NEXT: _SECOND,
    _FIRST + THREAD_IDENT: 0x8000,
    0x8000 + DESCRIPTOR_TID: 100,
    _SECOND + THREAD_NEXT: _STARTING,
    _SECOND + THREAD_IDENT: 0x9000,
    0x9000 + DESCRIPTOR_TID: 101,
    _STARTING + THREAD_NEXT: _HEAD,
    _STARTING + THREAD_IDENT: 0,
}


def test_threads_are_read_up_to_the_head() -> None:
    """
    One that has no identity yet is left out.
    """
    assert [PyPyThread(_FIRST, 0x8000, 100), PyPyThread(_SECOND, 0x9000, 101)] == read_threads(
        Words(_LIST), _HEAD
    )


@pytest.mark.parametrize("following", [0, _HEAD])
def test_there_are_none_while_pypy_starts(following: int) -> None:
    """
    The head leads nowhere, or to itself.
    """
    assert [] == read_threads(Words({_HEAD + THREAD_NEXT: following}), _HEAD)


def test_a_list_that_does_not_end_is_torn() -> None:
    """
    A thread has just ended, and its memory is another's.
    """
    with pytest.raises(TornRead, match="does not end"):
        read_threads(Words({**_LIST, _SECOND + THREAD_NEXT: _FIRST}), _HEAD)
