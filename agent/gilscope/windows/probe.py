"""The programs in the kernel that observe processes in windows."""

from collections.abc import Collection, Sequence

from gilscope.bpf.probe import Probe
from gilscope.bpf.ringbuf import Ring
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.values import Record
from gilscope.windows.notices import Notices, take_notices
from gilscope.windows.window import ProbeWindow, WindowKernel

__all__ = ["WindowedProbe"]


class WindowedProbe(Probe):
    """Those that have ``common/window.bpf.h`` among them."""

    window_table = "targets"

    @property
    def notice_ring(self) -> Ring:
        """Becomes readable when a window has used up its allowance, or a process has forked."""
        return self._loaded.rings["notices"]

    def take_notices(self) -> Notices:
        """Take and return what the probes have noticed since the last call."""
        return take_notices(self.notice_ring)

    def _closed_window(
        self,
        pid: int,
        hooks: Sequence[Hook],
        terms: Record,
        *,
        programs: Sequence[str],
        stepped: Collection[str],
    ) -> ProbeWindow:
        """Return the closed window of *pid*; while it is open the process has *hooks*.

        *terms* are what else ``struct target`` has. Of *programs*, in the order of their numbers,
        *stepped* are those whose traps the kernel has to single-step.
        """
        kernel = WindowKernel(self._table("targets"), self._table("totals"), self._uprobes)
        self._table("totals").put({"value": pid}, {})
        bits = sum(1 << programs.index(name) for name in stepped)
        return ProbeWindow(pid, hooks, kernel, {**terms, "stepped_programs": bits})
