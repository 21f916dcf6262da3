"""What the probes on the GIL and user space agree on, as a C compiler and as Python have it."""

from pathlib import Path

import pytest

from gilscope.bpf.c_header import CStruct
from gilscope.gil import abi
from gilscope.model.histogram import OCTAVE_BITS, SLOTS, STEP_BITS, STEPS
from gilscope.model.kinds import Cause, Kind
from gilscope.model.stack import StackState
from gilscope.runtimes.cpython.code import frame_marks
from gilscope.series.moments.seconds import SECOND_SHIFT
from support.c_header import compiled_numbers, compiled_struct
from support.paths import ROOT

_HEADER = "gil/abi.bpf.h"


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
        "STACK_DEPTH": abi.STACK_DEPTH,
        "NEXT_PROGRAMS": len(abi.NextProgram),
        "QUOTAS": abi.QUOTAS,
        "SPAN_IS_HOLD": abi.SPAN_IS_HOLD,
        "SPAN_SECOND_SHIFT": SECOND_SHIFT,
        "REGION_PLACES": abi.REGION_PLACES,
        "REGION_TRIES": abi.REGION_TRIES,
        "REGION_HOMES": abi.REGION_PLACES - abi.REGION_TRIES,
        "LONGEST_ROUTE": abi.LONGEST_ROUTE,
        "OWNER_WITHOUT_CODE": frame_marks.FIRST_OWNER_WITHOUT_CODE,
        "REFERENCE_FLAGS": frame_marks.REFERENCE_FLAGS,
        **{f"AFTER_{cause.name}": cause.number for cause in Cause},
        "CONVOY": Kind.CONVOY.number,
        "KINDS": len(Kind),
        "DROP_LATENCY": abi.Quantity.DROP_LATENCY,
        **{
            loss.name if loss.is_invalid else f"LOST_{loss.name}": loss.number
            for loss in abi.Loss
            if loss is not abi.Loss.PROBES_GONE
        },
        **{f"NOTICE_{each.name}": each.value for each in abi.NoticeKind},
        **{f"STACK_{each.name}": each.value for each in abi.RawStackState},
        **{f"STACK_{each.name}": each.value for each in abi.StackId},
        **{each.name: each.value for each in abi.NextProgram},
        **{each.name: each.value for each in abi.HeldTraceKind},
        **{f"QUOTA_{each.name}": each.value for each in abi.Quota},
        **{f"TARGET_{each.name}": each.value for each in abi.TargetFlag},
    }

    assert expected == compiled_numbers(_HEADER, tmp_path)


@pytest.mark.parametrize(
    "struct",
    [abi.NOTICE, abi.STACK, abi.SPAN, abi.REGION_HEAD, abi.REGION_PLACE],
    ids=lambda each: each.name,
)
def test_records_lie_in_memory_as_python_reads_them(struct: CStruct, tmp_path: Path) -> None:
    """
    Size of the whole, and place and size of each member.
    """
    layout = struct.layout()
    names = [member.name for member in struct.members]
    size, members = compiled_struct(_HEADER, struct.name, names, tmp_path)
    ends = [*(members[name].offset for name in names[1:]), size]

    assert layout.size == size
    assert [layout.place(name)[0] for name in names] == [members[name].offset for name in names]
    # Nothing lies between two of them.
    assert ends == [members[name].offset + members[name].size for name in names]


@pytest.mark.parametrize("kind", [Cause, Kind, abi.Loss])
def test_numbers_count_from_0(kind: type[Cause | Kind | abi.Loss]) -> None:
    """
    They are places in arrays of the probes.
    """
    assert list(range(len(kind))) == sorted(each.number for each in kind)


def test_a_wait_has_the_number_of_its_cause() -> None:
    """
    As a kind and as a quantity, unless it is a convoy.
    """
    causes = {cause.name: cause.number for cause in Cause}

    assert causes == {kind.name: kind.number for kind in Kind if kind is not Kind.CONVOY}
    assert {f"AFTER_{name}": number for name, number in causes.items()} == {
        each.name: each.value for each in abi.Quantity if each is not abi.Quantity.DROP_LATENCY
    }


def test_each_state_of_the_probes_is_one_of_user_space() -> None:
    """
    By the same name.
    """
    assert {each.name for each in abi.RawStackState} <= {each.name for each in StackState}
