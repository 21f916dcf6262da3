"""Says in words what a thread waits for in a system call."""

from gilscope.model.moment.seen import SystemCall
from gilscope.text.printable import label

__all__ = ["call_words", "descriptor_of", "futex_address"]

_ON_DESCRIPTOR = {
    *("read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2"),
    *("pwritev2", "fsync", "fdatasync", "sync_file_range", "fallocate", "ftruncate", "flock"),
    *("ioctl", "fcntl", "sendfile", "connect", "accept", "accept4", "sendto", "recvfrom"),
    *("sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "epoll_wait", "epoll_pwait", "epoll_pwait2"),
    *("getdents", "getdents64", "io_uring_enter", "fstat", "lseek", "close", "shutdown"),
}
"""Their first argument is the descriptor that they wait for."""
_OF_SOME = {"poll", "ppoll"}
_OF_SETS = {"select", "pselect6"}

# include/uapi/linux/futex.h: the operation is below two flags.
_FUTEX_COMMAND = 0x7F
_FUTEX_WAITS = {0, 6, 9, 11, 13}
"""FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2."""
_SIGN = 1 << 31


def descriptor_of(call: SystemCall) -> int | None:
    """Return the descriptor that *call* waits for, None for a call of another kind."""
    return _number(call.arguments[0]) if call.name in _ON_DESCRIPTOR else None


def futex_address(call: SystemCall) -> int | None:
    """Return the address of the word that *call* sleeps on, None where it sleeps on none."""
    if call.name != "futex" or call.arguments[1] & _FUTEX_COMMAND not in _FUTEX_WAITS:
        return None
    return call.arguments[0]


def call_words(call: SystemCall, file: str | None = None) -> str:
    """Return *call* in words; *file* is what its descriptor leads to, where that is known."""
    descriptor, address = descriptor_of(call), futex_address(call)
    if address is not None:
        return f"waits for a lock at {address:#x}"
    if descriptor is not None:
        where = "" if file is None else f" = {label(file)}"
        return f"{call.name} on fd {descriptor}{where}"
    first, second = call.arguments[:2]
    if call.name in _OF_SOME:
        return f"{call.name} of {_counted(second)}"
    if call.name in _OF_SETS:
        return f"{call.name} of descriptors below {_number(first)}"
    if call.name == "wait4":
        child = _number(first)
        return f"{call.name} for process {child}" if child > 0 else f"{call.name} for any child"
    return call.name


def _counted(number: int) -> str:
    return "1 descriptor" if number == 1 else f"{number & 0xFFFF_FFFF} descriptors"


def _number(argument: int) -> int:
    # An int in a register: what stands above its 32 bits does not count.
    low = argument & 0xFFFF_FFFF
    return low - (1 << 32) if low & _SIGN else low
