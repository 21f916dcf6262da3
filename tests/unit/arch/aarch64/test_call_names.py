"""Names and numbers of system calls."""

from gilscope.arch.aarch64.call_names import CALL_NAMES
from gilscope.arch.aarch64.system_calls import SYSTEM_CALLS


def test_names_and_numbers_agree() -> None:
    """
    Of those that have both.
    """
    assert dict(SYSTEM_CALLS) == {
        name: number for number, name in CALL_NAMES.items() if name in SYSTEM_CALLS
    }


def test_gaps_have_no_names() -> None:
    """
    From 244 on are the processor's own, and behind 294 those of 32 bits.
    """
    assert ["accept", "futex", "recvmmsg", "wait4", "kexec_file_load", "pidfd_send_signal"] == [
        CALL_NAMES[number] for number in (202, 98, 243, 260, 294, 424)
    ]
    assert not {244, 259, 295, 403, 423} & CALL_NAMES.keys()
