"""AArch64 as one value."""

from typing import Final

from gilscope.arch.aarch64 import emulation, search
from gilscope.arch.aarch64.call_names import CALL_NAMES
from gilscope.arch.aarch64.dummy import DUMMY
from gilscope.arch.aarch64.static_loads import static_load, word_uses
from gilscope.arch.aarch64.system_calls import SYSTEM_CALLS
from gilscope.arch.aarch64.words import WORD
from gilscope.arch.base import Architecture, PthreadLayout, Registers, SampledRegisters

__all__ = ["AARCH64"]

AARCH64: Final = Architecture(
    name="aarch64",
    elf_machine=183,  # EM_AARCH64
    elf_name="aarch64",
    is_traced=False,
    system_calls=SYSTEM_CALLS,
    call_names=CALL_NAMES,
    # sysdeps/aarch64/nptl/bits/pthreadtypes-arch.h; struct pthread (nptl/descr.h) lies below the
    # thread pointer and begins with 24 words of padding and a list, then the kernel's number.
    pthread=PthreadLayout(cond_size=48, mutex_size=48, descriptor_self=None, descriptor_tid=208),
    # DWARF for the Arm 64-bit Architecture, 4.1; a call leaves the return address in x30.
    registers=Registers(
        frame_pointer=29,
        stack_pointer=31,
        return_address=30,
        return_address_offset=None,
        cfa_offset_at_entry=0,
    ),
    # PERF_REG_ARM64_PC, _SP and _X29.
    sampled_registers=SampledRegisters(instruction=32, stack_pointer=31, frame_pointer=29),
    slot_relocations=(1025, 1026),  # R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT
    longest_instruction=WORD,
    instruction_length=emulation.instruction_length,
    straight_line=emulation.STRAIGHT_LINE,
    distance_to_emulated=emulation.distance_to_emulated,
    is_emulated=emulation.is_emulated,
    jump_lookahead=emulation.LOOKAHEAD,
    distance_to_jump=emulation.distance_to_jump,
    call_length=WORD,
    slot_call_length=WORD,
    is_direct_call=search.is_direct_call,
    calls=search.calls,
    jumps=search.jumps,
    conditional_jumps=search.conditional_jumps,
    slot_branches=search.slot_branches,
    tail_jump=search.tail_jump,
    slot_stubs=search.slot_stubs,
    address_loads=search.address_loads,
    absolute_loads=search.absolute_loads,
    word_uses=word_uses,
    exchanges=lambda _code: iter(()),
    semaphore_registers=None,
    static_load=static_load,
    dummy=DUMMY,
)
