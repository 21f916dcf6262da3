"""Loads the real probes, places one where nothing ever runs, and measures a trap.

They are compiled for that, unless they came compiled with gilscope.
"""

import os
import time
from collections.abc import Sequence

from gilscope.bpf.loader import has_ahead
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.errors import GilscopeError, KernelOrBccMissing
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import begin_loading, whole_request
from gilscope.model.diagnosis import Check, Status, TrapCost, has_failed
from gilscope.values import dataclass

__all__ = ["Trial", "come_compiled", "judge_trial", "try_probes", "what_prevents"]

_PREREQUISITES = ("architecture", "bpf", "raw_tracepoints", "kernel_headers", "bcc")
# The program's ELF header: part of the file, and never executed.
_HARMLESS = Hook("on_wait", "/proc/self/exe", 0)
_REPORT = "Please report this, with what gilscope doctor prints"


@dataclass(frozen=True, slots=True)
class Trial:
    """How it went."""

    seconds: float = 0.0
    """Until the programs were loaded, with the compiler's time if it had to work."""
    is_ahead: bool = False
    """They came compiled with gilscope."""
    prevented_by: str = ""
    """It was not tried, because this is missing."""
    failure: GilscopeError | None = None
    placement_failure: GilscopeError | None = None
    """The programs were loaded; a uprobe could not be placed."""
    rare_failure: GilscopeError | None = None
    """One was not loaded that is for PyPy, Python 2.7 or ``--method libc`` alone."""
    trap_cost: TrapCost | None = None
    """Measured after all of it has succeeded."""

    @property
    def can_place_uprobes(self) -> bool:
        """Whether a uprobe was placed."""
        return not (self.prevented_by or self.failure or self.placement_failure)


def what_prevents(checks: Sequence[Check]) -> str:
    """Return the name of the check that makes trying pointless, empty for none."""
    return has_failed(checks, *_PREREQUISITES) or ""


def come_compiled() -> bool:
    """Return whether the probes came compiled with gilscope: nothing has to compile them."""
    try:
        return has_ahead(whole_request())
    except GilscopeError:
        return False  # the trial will say so


def try_probes() -> Trial:
    """Return how compiling, loading and placing went, whatever is remembered; takes seconds."""
    began_s = time.monotonic()
    try:
        loading = begin_loading()
        probe = GilProbe(loading if loading.is_ahead else loading.compile_anew())
    except GilscopeError as error:
        return Trial(failure=error)
    except OSError as error:
        return Trial(failure=KernelOrBccMissing(f"the compiler could not be started: {error}"))
    with probe:
        rare_failure = _load_rare(probe)
        taken_s = time.monotonic() - began_s
        try:
            probe.add_hooks(os.getpid(), [_HARMLESS])
        except GilscopeError as error:
            return Trial(taken_s, probe.is_ahead, placement_failure=error)
        return Trial(
            taken_s, probe.is_ahead, trap_cost=_trap_cost(probe), rare_failure=rare_failure
        )


def _load_rare(probe: GilProbe) -> GilscopeError | None:
    try:
        probe.programs.load_all()
    except GilscopeError as error:
        return error
    return None


def _trap_cost(probe: GilProbe) -> TrapCost:
    costs = measure_trap_costs(probe)
    return TrapCost(
        full_ns=costs.full_ns,
        contention_ns=costs.contention_ns,
        stepped_ns=costs.stepped_ns,
        is_measured=costs.is_measured,
    )


def judge_trial(trial: Trial, *, uprobes_fail: bool = False) -> Check:
    """Return whether the probes can be compiled, loaded and placed.

    *uprobes_fail*: another check says already why no uprobe can be placed.
    """
    if trial.prevented_by:
        reason = trial.prevented_by.replace("_", " ")
        return Check("probes", Status.UNKNOWN, f"not compiled: see {reason}")
    if trial.placement_failure is not None and uprobes_fail:
        return Check("probes", Status.UNKNOWN, f"{_loaded(trial)}, and not placed: see uprobes")
    failure = trial.failure or trial.placement_failure
    if failure is not None:
        remedy = _own_remedy(failure)
        return Check("probes", Status.MISSING, str(failure), remedy, failure.exit_code)
    if trial.rare_failure is not None:
        found = f"{_loaded(trial)}, but for what only PyPy, Python 2.7 or --method libc need: "
        return Check("probes", Status.WARNING, f"{found}{trial.rare_failure}", _REPORT)
    return Check("probes", Status.OK, _loaded(trial))


def _loaded(trial: Trial) -> str:
    if trial.is_ahead:
        return f"loaded in {trial.seconds:.1f} s, as they came compiled with gilscope"
    return f"compiled and loaded in {trial.seconds:.1f} s"


def _own_remedy(error: GilscopeError) -> str:
    # These two name doctor as their remedy, which is of no use in here.
    return error.remedy if error.remedy != type(error).remedy else _REPORT
