"""What code does with static variables, by instructions as compilers make them."""

from gilscope.arch.x86_64.operands import Access, accesses, calls_with_argument

_BASE = 0x1000


def _accesses(code: str) -> list[Access]:
    return list(accesses(bytes.fromhex(code), _BASE))


def test_operands_of_every_form() -> None:
    """
    Loads, stores, sums and comparisons with an operand relative to the instruction's end.
    """
    assert [Access(0x8B, 0, True, 0x1017, None)] == _accesses("488b0510000000 c3")
    assert [Access(0x8B, 0, False, 0x1016, None)] == _accesses("8b0510000000 f7d0 c1e81f c3")
    assert [Access(0x89, 14, True, 0x0FF7, None)] == _accesses("4c8935f0ffffff")
    assert [Access(0xC7, 0, False, 0x102A, 1)] == _accesses("c7052000000001000000")
    assert [Access(0x83, 0, True, 0x1028, 1)] == _accesses("4883052000000001")
    assert [Access(0x83, 7, False, 0x1027, -1)] == _accesses("833d20000000ff")
    assert [Access(0xFF, 0, True, 0x1027, None)] == _accesses("48ff0520000000")


def test_other_operands_are_passed_over() -> None:
    """
    Those in registers, on the stack or behind a pointer, and what is no operand at all.
    """
    assert [] == _accesses("48893c24 488b4708 4889f3 488d4f10 0fb605ffffff7f e810000000 55 c3")


def test_what_is_not_known_ends_the_search() -> None:
    """
    Behind bytes that are no instruction nobody knows where the next one begins.
    """
    assert [] == _accesses("06 488b0510000000")


def test_first_arguments_of_calls() -> None:
    """
    Loaded right before, kept in a register that lasts, or as a number where addresses are fixed.
    """
    loaded = "488d3d10000000 e800010000"  # lea 0x10(%rip),%rdi; call
    kept = "488d1d10000000 e800000000 4889df e800000000"  # lea ..,%rbx; call; mov %rbx,%rdi; call
    number = "bf00204000 ff1500010000"  # mov $0x402000,%edi; call *0x100(%rip)
    lost = "488d3d10000000 e800000000 e800000000"

    def arguments(code: str) -> list[int | None]:
        return [call.argument for call in calls_with_argument(bytes.fromhex(code), _BASE)]

    assert [0x1017] == arguments(loaded)
    assert [None, 0x1017] == arguments(kept)
    assert [0x402000] == arguments(number)
    assert [0x1017, None] == arguments(lost)
    assert [None] == arguments("488d3d10000000 488b7b08 e800000000")  # mov 8(%rbx),%rdi


def test_where_calls_lead() -> None:
    """
    To their target, or to where a slot has it.
    """
    direct, jump, slot = calls_with_argument(
        bytes.fromhex("e800010000 e900020000 ff1500030000"), _BASE
    )

    assert (0x1000, 0x1105, False) == direct[:3]
    assert (0x1005, 0x120A, False) == jump[:3]
    assert (0x100A, 0x1310, True) == slot[:3]
