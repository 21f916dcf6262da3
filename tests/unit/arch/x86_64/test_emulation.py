"""Stepping over simple instructions."""

import pytest

from gilscope.arch.x86_64.emulation import distance_to_emulated, is_emulated


@pytest.mark.parametrize(
    ("code", "distance"),
    [
        ("eb 10", 0),  # jmp
        ("e8 00 00 00 00", 0),  # call
        ("4c 89 e6 4c 89 ef e8 38 be ff ff", 6),  # mov rsi,r12; mov rdi,r13; call
        ("4c 89 e6 bf 78 b9 a5 00 e8 76 88 ff ff", 8),  # mov rsi,r12; mov edi,imm32; call
        ("48 8b 7c 24 48 48 89 ee e8 00 00 00 00", 8),  # mov rdi,[rsp+0x48]; mov rsi,rbp; call
        ("49 8b 45 10 4c 89 e6 48 85 c0 74 09", 10),  # mov rax,[r13+16]; mov; test; je
        ("48 8b 05 fa 1a 32 00 48 89 ee 48 8d b8 30 02 00 00 e8 83 97 ff ff", 17),  # rip-relative
        ("8b 04 25 00 10 00 00 e9 00 00 00 00", 7),  # mov eax,[disp32]; jmp
        ("89 04 8d 00 10 00 00 0f 84 00 00 00 00", 7),  # mov [rcx*4+disp32],eax; je
        ("c3", 0),  # ret: leaves the way
        ("f6 c3 02 74 00", 0),  # test bl,imm8: not among the simple ones
        ("48 b8 00 00 00 00 00 00 00 00 e8", 0),  # mov rax,imm64: not either
        ("4c 89", 0),  # cut
        ("", 0),
    ],
)
def test_distance_is_that_of_the_first_cheap_instruction(code: str, distance: int) -> None:
    """
    Moves and comparisons are stepped over; whatever is not known stops at the beginning.
    """
    assert distance == distance_to_emulated(bytes.fromhex(code))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("55 48", True),  # push rbp
        ("e9 00", True),  # jmp
        ("0f 84", True),  # je
        ("f3 0f 1e fa", False),  # endbr64
        ("48 83 ec 18", False),  # sub rsp, 24
        ("41 54", False),  # push r12, which some kernels do not know
        ("c3", False),  # ret
        ("cc", False),  # a breakpoint hides what is there
        ("", False),
    ],
)
def test_only_what_every_kernel_emulates_is_cheap(code: str, *, expected: bool) -> None:
    """
    Of the rest the price of single-stepping is assumed.
    """
    assert is_emulated(bytes.fromhex(code)) is expected
