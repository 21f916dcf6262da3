"""Slots of histograms, as the kernel computes them."""

import ctypes
import random
import struct
from collections.abc import Iterator

import pytest

from gilscope.bpf import loader
from gilscope.bpf.loader import Loading
from gilscope.bpf.request import Request
from gilscope.gil.abi import c_header
from gilscope.model.histogram import SLOTS, bound_ns, slot_of
from gilscope.system.syscall import call
from support.paths import ROOT

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_BPF_PROG_TEST_RUN = 10
_PROGRAM = """
#include "abi.bpf.h"
#include "common/arithmetic.bpf.h"
#include "common/histogram.bpf.h"
int slot(struct bpf_raw_tracepoint_args *ctx) { return slot_of_ns(ctx->args[0]); }
int bit(struct bpf_raw_tracepoint_args *ctx) { return highest_bit(ctx->args[0]); }
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Descriptors of programs that answer with what the probes' functions return."""
    folder = tmp_path_factory.mktemp("probes")
    (folder / "slots.bpf.c").write_text(_PROGRAM)
    (folder / "abi.bpf.h").write_text(c_header())
    (folder / "common").symlink_to(ROOT / "probes" / "common")
    request = Request(
        probe="slots.bpf.c",
        constants={},
        parameters={},
        entries={},
        table_flags=0,
        programs={"slot": "raw_tracepoint", "bit": "raw_tracepoint"},
        tables=(),
        rings={},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "asset", lambda _: folder)
        loaded = Loading(request, cache=None).finish()
    yield dict(loaded.programs)
    loaded.close()


def _answer(program: int, value: int) -> int:
    """Return what *program* answers where its tracepoint has *value* as argument."""
    context = ctypes.create_string_buffer(struct.pack("=Q", value), 8)
    # union bpf_attr, test: prog_fd, retval, data_size_in, data_size_out, data_in, data_out,
    # repeat, duration, ctx_size_in, ctx_size_out, ctx_in, ctx_out.
    attributes = struct.pack(
        "=IIIIQQIIIIQQ", program, 0, 0, 0, 0, 0, 0, 0, 8, 0, ctypes.addressof(context), 0
    )
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    call("bpf", _BPF_PROG_TEST_RUN, buffer, len(attributes))
    (answer,) = struct.unpack_from("=I", buffer.raw, 4)
    return int(answer)


def test_slots_of_the_kernel_are_those_of_python(programs: dict[str, int]) -> None:
    """
    At every bound and beside it, at the ends of what a number can be, and at many in between.
    """
    chance = random.Random(1)  # noqa: S311 - no secret
    bounds_ns = [bound_ns(slot) for slot in range(SLOTS - 1)]
    values = {ns + beside for ns in bounds_ns for beside in (-1, 0, 1)}
    values |= {0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1}
    values |= {int(2 ** chance.uniform(0, 63)) for _ in range(2000)}

    wrong = {ns: slot for ns in values if (slot := _answer(programs["slot"], ns)) != slot_of(ns)}

    assert {} == wrong


def test_highest_bit_is_found_wherever_it_is(programs: dict[str, int]) -> None:
    """
    Alone, with all below it, and with the lowest one.
    """
    for bit in range(64):
        for value in {1 << bit, (2 << bit) - 1, 1 << bit | 1}:
            assert bit == _answer(programs["bit"], value), value
