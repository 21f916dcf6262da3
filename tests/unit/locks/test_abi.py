"""What the probes on locks and user space agree on, as a C compiler and Python have it."""

from pathlib import Path

from gilscope.gil.abi import Loss
from gilscope.locks import abi
from gilscope.runtimes.cpython.code.frame_marks import FIRST_OWNER_WITHOUT_CODE, REFERENCE_FLAGS
from gilscope.series.moments.seconds import SECOND_SHIFT
from support.c_header import compiled_numbers
from support.paths import ROOT

_HEADER = "locks/abi.bpf.h"


def test_the_header_is_that_of_the_tables() -> None:
    """
    Made again, it is the same.
    """
    assert (ROOT / "probes" / _HEADER).read_text() == abi.c_header()


def test_the_numbers_of_c_are_those_of_python(tmp_path: Path) -> None:
    """
    All of them, as the compiler of this machine sees them.
    """
    expected = {
        "LONGEST_TYPE": abi.LONGEST_TYPE,
        "STACK_DEPTH": 8,
        "MOST_HOLDERS": 256,
        "MOST_HELD_WAITS": 64,
        "SPAN_SECOND_SHIFT": SECOND_SHIFT,
        "OWNER_WITHOUT_CODE": FIRST_OWNER_WITHOUT_CODE,
        "REFERENCE_FLAGS": REFERENCE_FLAGS,
        **{f"LOST_{loss.name}": loss.number for loss in abi.LockLoss},
        **{f"PROGRAM_{program.name}": program.value for program in abi.Program},
        **{f"SLEEP_{kind.name}": kind.value for kind in abi.SleepKind},
        **{f"SPAN_{kind.name}": kind.value for kind in abi.SpanKind},
    }

    assert expected == compiled_numbers(_HEADER, tmp_path)
    assert list(range(len(abi.LockLoss))) == [loss.number for loss in abi.LockLoss]


def test_losses_are_reasons_that_the_metric_knows() -> None:
    """
    The label has the same values for a GIL.
    """
    assert {loss.value for loss in abi.LockLoss} <= {loss.value for loss in Loss}
