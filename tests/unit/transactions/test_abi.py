"""What the probes of transactions and user space agree on, as a C compiler and Python have it."""

from pathlib import Path

from gilscope.gil.abi import Loss
from gilscope.model.histogram import OCTAVE_BITS, SLOTS, STEP_BITS, STEPS
from gilscope.runtimes.stm.numberings import Numbering
from gilscope.transactions import abi
from support.c_header import compiled_numbers
from support.paths import ROOT

_HEADER = "transactions/abi.bpf.h"


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
        "HISTOGRAM_OCTAVE_BITS": OCTAVE_BITS,
        "HISTOGRAM_SLOTS": SLOTS,
        "HISTOGRAM_STEP_BITS": STEP_BITS,
        **{f"HISTOGRAM_STEP_{number}": step for number, step in enumerate(STEPS, 1)},
        "EVENT_NUMBERS": 32,
        "WAITS": 8,
        "COLLECTIONS": len(abi.Collection),
        "RESTART_REASONS": 16,
        **{f"LOST_{loss.name}": loss.number for loss in abi.StmLoss},
        **{f"PROGRAM_{program.name}": program.value for program in abi.Program},
        **{f"COLLECTION_{each.name}": each.value for each in abi.Collection},
        **{f"EVENT_{event.name}": event.value for event in abi.Event},
    }

    assert expected == compiled_numbers(_HEADER, tmp_path)
    assert len(abi.Wait) <= expected["WAITS"]
    assert len(abi.RestartReason) <= expected["RESTART_REASONS"]
    assert list(range(len(abi.StmLoss))) == [loss.number for loss in abi.StmLoss]


def test_losses_are_reasons_that_the_metric_knows() -> None:
    """
    The label has the same values for a GIL.
    """
    assert {loss.value for loss in abi.StmLoss} <= {loss.value for loss in Loss}


def test_waits_are_in_the_order_of_the_events_that_begin_them() -> None:
    """
    The kind of a wait is the number of its event less that of the first of them.
    """
    first = abi.Event.WAIT_FREE_SEGMENT

    assert [f"WAIT_{wait.name}" for wait in abi.Wait] == [
        abi.Event(first + wait).name for wait in abi.Wait
    ]


def test_every_numbering_is_of_events_that_there_are() -> None:
    """
    What a program's numbers stand for has a number of ours, and they fit into the table.
    """
    known = {event.name for event in abi.Event}

    for numbering in Numbering:
        assert {name or "OTHER" for name in numbering.value} <= known
        assert len(numbering.value) <= abi.EVENT_NUMBERS
