"""The jump behind a call, on the call's result."""

import pytest

from gilscope.arch.x86_64.branches import distance_to_jump


@pytest.mark.parametrize(
    ("code", "distance"),
    [
        pytest.param("83f8ff 7410", 3, id="cmp eax, -1; je"),
        pytest.param("83c001 7410", 3, id="add eax, 1; je"),
        pytest.param("85c0 0f85", 2, id="test eax, eax; jne"),
        pytest.param("83c001 eb10", 0, id="add eax, 1; jmp"),
        pytest.param("83e801 7410", 0, id="sub eax, 1; je"),
    ],
)
def test_a_jump_on_the_result_is_found(code: str, distance: int) -> None:
    """
    Behind a comparison of it, or what a compiler makes of one.
    """
    assert distance == distance_to_jump(bytes.fromhex(code))
