"""What gilscope has to know of a processor, as one value: a folder here makes one for each."""

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from gilscope.values import dataclass

__all__ = [
    "MATCHES_AT_ONCE",
    "AddressLoads",
    "Architecture",
    "DummyCode",
    "Exchange",
    "PthreadLayout",
    "Registers",
    "SampledRegisters",
    "Search",
    "SlotBranch",
    "Spend",
    "WordAccess",
    "WordUse",
]

MATCHES_AT_ONCE: Final = 1024
"""Matches of a search that are counted together, because counting takes time as well."""

Spend = Callable[[int], None]
"""Told, as a search continues, of so many further matches; raises what ends the search."""

Search = Callable[[memoryview, int, Spend], Iterator[tuple[int, int]]]
"""Yields where instructions of one kind seem to be in code, and what each refers to: both from the
code's beginning. Given are the code, the farthest distance that is of interest, and whom to tell.

Every byte is taken for the beginning of an instruction: a few finds may lie inside other ones.
"""


AddressLoads = Callable[[memoryview, int, Collection[int], Spend], Iterator[tuple[int, int]]]
"""Yields where instructions load one of some addresses, and which.

Given are the code, its virtual address, the addresses, and whom to tell.
"""


@dataclass(frozen=True, slots=True)
class PthreadLayout:
    """glibc's types of threads, bytes."""

    cond_size: int
    """``sizeof(pthread_cond_t)``."""
    mutex_size: int
    descriptor_self: int | None
    """Where a thread's descriptor has its own address; None: nowhere."""
    descriptor_tid: int
    """Where it has the kernel's number of the thread."""


@dataclass(frozen=True, slots=True)
class Registers:
    """Numbers of registers in DWARF."""

    frame_pointer: int
    stack_pointer: int
    return_address: int
    return_address_offset: int | None
    """Where a call has left it, from the canonical frame address; None: in its register, and a
    function saves it where it likes."""
    cfa_offset_at_entry: int
    """From the stack pointer to the canonical frame address, where a function begins."""


class SampledRegisters(NamedTuple):
    """Numbers of registers in samples of perf events (<asm/perf_regs.h>)."""

    instruction: int
    stack_pointer: int
    frame_pointer: int


class SlotBranch(NamedTuple):
    """A call or jump to where a slot of the global offset table leads."""

    site: int
    """Virtual address; so is the slot."""
    slot: int
    is_call: bool


class WordAccess(Enum):
    """What an instruction does with a word of static memory."""

    TEST = auto()
    """Compares it with 0."""
    LOAD = auto()
    ATOMIC_ADD = auto()
    """Adds to it, or subtracts, while no other processor can."""
    EXCHANGE = auto()
    """Writes it if it has a certain value, likewise."""


class WordUse(NamedTuple):
    """An instruction that uses a word of static memory."""

    access: WordAccess
    site: int
    """Virtual address; so are the others."""
    end: int
    word: int


class Exchange(NamedTuple):
    """An atomic exchange that writes a word if it has a certain value, and a decision on that."""

    jump_before: int | None
    """From the code's beginning, as the others: a conditional jump that leads there where it is
    not taken, with nothing but the computation of the new value between."""
    site: int
    jump: int
    """The conditional jump behind it."""
    register: int
    """Where the word's address is, by the processor's number of the register."""


@dataclass(frozen=True, slots=True)
class DummyCode:
    """Machine code that takes and drops a lock as CPython does, without relocations.

    Each loop is a C function of two numbers: its rounds, at least 1, and the address of `cond`.
    """

    code: bytes
    slot: int
    """Where the address of the code itself is to be written: what calls through a slot go to."""
    holds: int
    """The loop that takes and drops it by direct calls; so are the next two."""
    stepped_holds: int
    """By calls through a slot, which the kernel has to single-step."""
    waits: int
    """One contended wait, which ends at once."""
    acquire: int
    release: int
    stepped_acquire: int
    stepped_release: int
    wait: int
    wait_return: int
    """The conditional jump behind it."""
    callers: tuple[tuple[int, int], ...]
    """What .eh_frame would say of the wait: each pc, and its distance from the CFA."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A processor: values and pure functions, so that each is tested on any machine."""

    name: str
    """As ``uname -m`` says it."""
    elf_machine: int
    """``e_machine`` of its ELF files."""
    elf_name: str
    """What people call those."""
    is_traced: bool
    """Processes have been traced on it. Where not, its code is known from files alone."""
    system_calls: Mapping[str, int]
    """The kernel's number of each system call that Python has no function for, by its name."""
    call_names: Mapping[int, str]
    """The name of each system call that a program may be in, by the kernel's number."""
    pthread: PthreadLayout
    registers: Registers
    sampled_registers: SampledRegisters
    slot_relocations: Collection[int]
    """Kinds of relocations that fill a slot with the address of a symbol."""

    longest_instruction: int
    instruction_length: Callable[[bytes, int], int | None]
    """The bytes of the instruction at a position of code; None where it is not known."""
    straight_line: int
    """Bytes that `distance_to_emulated` wants to see."""
    distance_to_emulated: Callable[[bytes], int]
    """The bytes to the first instruction that the kernel emulates under a uprobe, 0 for none."""
    is_emulated: Callable[[bytes], bool]
    """Whether it emulates the first instruction of code, rather than single-step it."""
    jump_lookahead: int
    """Bytes that `distance_to_jump` wants to see."""
    distance_to_jump: Callable[[bytes], int]
    """The bytes from a call's end to a conditional jump on its result, 0 for none."""

    call_length: int
    """Bytes of a direct call."""
    slot_call_length: int
    """Bytes of a call through a slot."""
    is_direct_call: Callable[[bytes], bool]
    """Whether code begins with a direct call."""
    calls: Search
    jumps: Search
    conditional_jumps: Search
    slot_branches: Callable[[memoryview, int, Spend], Iterator[SlotBranch]]
    """Given are code and its virtual address: what is near may be told from the address itself."""
    tail_jump: Callable[[memoryview, int], tuple[int, int] | None]
    """A short jump that ends at a position of code: where it is, and its target."""
    slot_stubs: Callable[[memoryview, int], Iterator[tuple[int, int]]]
    """The beginnings of stubs that jump through a slot, and the slot, by code and its address."""
    address_loads: AddressLoads
    """Instructions that load one of some addresses relative to their own."""
    absolute_loads: AddressLoads
    """Instructions that load one of them as a constant, where code has a fixed address."""
    word_uses: Callable[[bytes, int], Iterator[WordUse]]
    """Instructions that use a word of static memory, by code and its address. Each byte is taken
    for the first of one."""
    exchanges: Callable[[bytes], Iterator[Exchange]]
    """Each byte is taken for the first of one. None are known where no lock is found by them."""
    semaphore_registers: tuple[int, int] | None
    """Where probes expect a semaphore's address: in a function that takes it, and in one that
    gives it back; None: no probe is on semaphores."""
    static_load: Callable[[bytes, int], int | None]
    """Where the first word is that a function loads from static memory, by its code and address;
    None: it loads none there."""
    dummy: DummyCode
