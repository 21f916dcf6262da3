"""The code that takes and drops a lock like a GIL, read where it cannot run."""

from gilscope.arch.aarch64.architecture import AARCH64
from gilscope.arch.aarch64.dummy import DUMMY
from gilscope.arch.aarch64.words import adr_of, is_comparison, page_of, word_at


def test_probes_belong_on_calls_and_on_a_jump() -> None:
    """
    The direct calls lead to the stub, and behind the wait is a jump on its result.
    """
    called = dict(AARCH64.calls(memoryview(DUMMY.code), 1 << 31, lambda _: None))

    assert {DUMMY.acquire: 0, DUMMY.release: 0, DUMMY.wait: 0} == {
        site: target for site, target in called.items() if not target
    }
    assert is_comparison(word_at(DUMMY.code, DUMMY.wait_return - 4))
    assert AARCH64.is_emulated(DUMMY.code[DUMMY.wait_return :])


def test_the_other_calls_go_through_the_slot() -> None:
    """
    It is loaded by its address, two instructions before each.
    """
    for site in (DUMMY.stepped_acquire, DUMMY.stepped_release):
        assert 0xD63F0100 == word_at(DUMMY.code, site)  # blr x8
        assert (8, DUMMY.slot) == adr_of(word_at(DUMMY.code, site - 8), site - 8)
    assert len(DUMMY.code) <= DUMMY.slot
    assert page_of(word_at(DUMMY.code, 0), 0) is None


def test_the_way_up_begins_at_the_wait_and_leads_behind_a_call_of_it() -> None:
    """
    Its function has 16 bytes on the stack, and whoever calls it 32.
    """
    (wait, own), (behind, caller) = DUMMY.callers
    begins = DUMMY.wait - 20

    assert (DUMMY.wait, 16, 32) == (wait, own, caller)
    assert 0xA9BF7BFD == word_at(DUMMY.code, begins)  # stp x29, x30, [sp, #-16]!
    assert (
        begins == dict(AARCH64.calls(memoryview(DUMMY.code), 1 << 31, lambda _: None))[behind - 4]
    )
