"""Lengths of instructions, against encodings by hand.

Against a disassembler they are in test_instructions_real_files.py.
"""

import pytest

from gilscope.arch.x86_64.length import instruction_length


@pytest.mark.parametrize(
    "instruction",
    [
        "c3",  # ret
        "f3c3",  # repz ret
        "f30f1efa",  # endbr64
        "50",  # push rax
        "4157",  # push r15
        "e800000000",  # call
        "48e800000000",  # rex.W call: as in calls of __tls_get_addr
        "666648e800000000",
        "f2e900000000",  # bnd jmp
        "3effe0",  # notrack jmp rax
        "ff1500000000",  # call [rip + 0]
        "ff1425e8000000",  # call [0xe8]: no base
        "ff54c508",  # call [rbp + 8 * rax + 8]
        "ff14c5e8000000",  # call [8 * rax + 0xe8]: no base, and no mode that says so
        "0f84e8000000",  # je
        "74e8",
        "b8e8000000",  # mov eax, imm32
        "66b8e800",  # mov ax, imm16
        "48b8e800000000000000",  # movabs rax, imm64
        "6648b8e800000000000000",  # REX.W is the stronger one
        "48c7c0e8000000",  # mov rax, imm32
        "66c700e800",  # mov word [rax], imm16
        "c600e8",  # mov byte [rax], imm8
        "a1e800000000000000",  # movabs eax, [address]
        "67a1e8000000",
        "c8e80000",  # enter
        "c2e800",  # ret imm16
        "f6c0e8",  # test al, imm8
        "f6d0",  # not al
        "f7c0e8000000",  # test eax, imm32
        "66f7c0e800",
        "f7d8",  # neg eax
        "69c0e8000000",  # imul
        "66662e0f1f840000000000",  # the longest nop that compilers make
        "0fa4c0e8",  # shld
        "0f3800c0",  # pshufb
        "660f3a0fc0e8",  # palignr
        "c5f877",  # vzeroupper
        "c5f9700500000000e8",  # vpshufd xmm0, [rip + 0], imm8
        "c4e2f9f7c0",  # shlx
        "c4e3fd0005000000 00e8".replace(" ", ""),  # vpermq ymm0, [rip + 0], imm8
        "62f17c48104001",  # vmovups zmm0, [rax + 64]
        "62f3fd480005000000 00e8".replace(" ", ""),  # vpermq zmm0, [rip + 0], imm8
        "c7f800000000",  # xbegin
        "f0480fb1 15e8000000".replace(" ", ""),  # lock cmpxchg
        "d9e8",  # fld1
        "64488b042528000000",  # mov rax, fs:0x28
    ],
)
def test_lengths_are_those_of_the_manual(instruction: str) -> None:
    """
    The length is that of the whole encoding, whatever follows; a byte less is not enough.
    """
    code = bytes.fromhex(instruction)

    assert len(code) == instruction_length(code + b"\xe8" * 16)
    assert len(code) == instruction_length(b"\xe8" + memoryview(code), 1)
    assert instruction_length(code[:-1]) is None


@pytest.mark.parametrize(
    "code",
    [
        "06",  # push es: not in 64-bit mode
        "9a",
        "4066 90".replace(" ", ""),  # a prefix behind REX
        "66e800000000",  # 16 bit on some processors
        "660f8400000000",
        "0f04",
        "0f0f c0bf".replace(" ", ""),  # 3DNow!
        "ffff",  # the eighth form of ff
        "fed0",
        "8fe878c0",  # XOP
        "c6d000",
        "c4e8000000",  # no such map
        "66c5f877",  # an operand size in front of VEX
        "62f97c48104001",  # a reserved bit
        "62f17848104001",
        "2e" * 14 + "8bc0",  # 16 bytes
        "0f38ff00",
        "",
    ],
)
def test_what_no_compiler_makes_has_no_length(code: str) -> None:
    """
    Opcodes, forms and prefixes that are unknown or ambiguous are refused.
    """
    assert instruction_length(bytes.fromhex(code) + b"\0" * 16 * bool(code)) is None


def test_the_longest_instruction_has_fifteen_bytes() -> None:
    """
    Prefixes may fill an instruction up to the limit of the processor.
    """
    assert 15 == instruction_length(b"\x2e" * 13 + b"\x8b\xc0")
