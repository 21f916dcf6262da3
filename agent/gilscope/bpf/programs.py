"""Descriptors of BPF programs, of which some are loaded only when somebody needs them."""

import errno
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from gilscope.bpf.locked_memory import with_locked_memory
from gilscope.errors import GilscopeError, KernelOrBccMissing, LimitReached, NotPermitted
from gilscope.system.shortage import low_limits

__all__ = ["Programs"]


class Programs(dict[str, int]):
    """Descriptors of loaded programs by name.

    One that was left for later is loaded when it is first asked for, by ``programs[name]``, which
    raises KernelOrBccMissing, NotPermitted or LimitReached where the kernel does not take it; until
    then it is not among them. Any thread may ask.
    """

    def __init__(
        self,
        loaded: Mapping[str, int],
        later: Mapping[str, Callable[[], int]] = MappingProxyType({}),
        maps: Iterable[int] = (),
    ) -> None:
        """Own the descriptors *loaded*, and *maps*, which *later* programs are loaded with."""
        super().__init__(loaded)
        self._later = dict(later)
        self._maps = list(maps)
        self._lock = threading.Lock()

    def __missing__(self, name: str) -> int:
        """Load *name*, and return its descriptor."""
        with self._lock:
            if name in self:
                return self[name]
            load = self._later[name]
            try:
                fd = with_locked_memory(load)
            except OSError as error:
                raise _refusal(name, error) from error
            self[name] = fd
            del self._later[name]
            return fd

    def load_all(self) -> None:
        """Load what was left for later; raises as ``programs[name]`` does."""
        for name in tuple(self._later):
            self[name]

    def close(self) -> None:
        """Give up all descriptors; nothing is loaded any more."""
        with self._lock:
            self._later.clear()
            for fd in (*self.values(), *self._maps):
                os.close(fd)
            self._maps.clear()
            self.clear()


def _refusal(name: str, error: OSError) -> GilscopeError:
    said = f"the kernel refused BPF program {name} ({error.strerror})"
    if error.errno == errno.EPERM:
        return NotPermitted(said)
    limits = low_limits()
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM) and limits:
        return LimitReached(f"{said}; limits of this process are low: {limits}")
    # EACCES is how the kernel says that a program may do what programs must not.
    return KernelOrBccMissing(said)
