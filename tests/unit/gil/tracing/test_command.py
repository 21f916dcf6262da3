"""Starting a command, as far as that needs no rights."""

import pytest

from gilscope.gil.tracing.command import HeldCommand


def test_a_command_without_a_name_is_not_found() -> None:
    """
    As a shell has it: nothing is started.
    """
    with pytest.raises(FileNotFoundError):
        HeldCommand([""])
