"""x86-64 as one value."""

from typing import Final

from gilscope.arch.base import Architecture, PthreadLayout, Registers, SampledRegisters
from gilscope.arch.x86_64 import search
from gilscope.arch.x86_64.branches import LOOKAHEAD, distance_to_jump
from gilscope.arch.x86_64.call_names import CALL_NAMES
from gilscope.arch.x86_64.dummy import DUMMY
from gilscope.arch.x86_64.emulation import STRAIGHT_LINE, distance_to_emulated, is_emulated
from gilscope.arch.x86_64.exchanges import exchanges
from gilscope.arch.x86_64.length import LONGEST_INSTRUCTION, instruction_length
from gilscope.arch.x86_64.static_loads import static_load
from gilscope.arch.x86_64.static_words import word_uses
from gilscope.arch.x86_64.system_calls import SYSTEM_CALLS

__all__ = ["X86_64"]

X86_64: Final = Architecture(
    name="x86_64",
    elf_machine=62,  # EM_X86_64
    elf_name="x86-64",
    is_traced=True,
    system_calls=SYSTEM_CALLS,
    call_names=CALL_NAMES,
    # sysdeps/x86/nptl/bits/pthreadtypes-arch.h; struct pthread (nptl/descr.h) is a thread control
    # block whose third word points to itself (sysdeps/x86_64/nptl/tls.h), then the kernel's number.
    # The same since glibc 2.4.
    pthread=PthreadLayout(cond_size=48, mutex_size=40, descriptor_self=16, descriptor_tid=720),
    # System V ABI, AMD64 supplement, figure 3.36; a call pushes the return address.
    registers=Registers(
        frame_pointer=6,
        stack_pointer=7,
        return_address=16,
        return_address_offset=-8,
        cfa_offset_at_entry=8,
    ),
    # PERF_REG_X86_IP, _SP and _BP.
    sampled_registers=SampledRegisters(instruction=8, stack_pointer=7, frame_pointer=6),
    slot_relocations=(6, 7),  # R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT
    longest_instruction=LONGEST_INSTRUCTION,
    instruction_length=instruction_length,
    straight_line=STRAIGHT_LINE,
    distance_to_emulated=distance_to_emulated,
    is_emulated=is_emulated,
    jump_lookahead=LOOKAHEAD,
    distance_to_jump=distance_to_jump,
    call_length=search.CALL_LENGTH,
    slot_call_length=search.SLOT_CALL_LENGTH,
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
    exchanges=exchanges,
    semaphore_registers=(3, 7),  # rbx and rdi
    static_load=static_load,
    dummy=DUMMY,
)
