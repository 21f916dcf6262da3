"""One run of doctor: reads and tries everything, in an order in which causes come first."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gilscope.doctor.compiler import judge_compiler
from gilscope.doctor.features import judge_features, judge_trap_cost
from gilscope.doctor.kernel import judge_abilities, judge_architecture, judge_release
from gilscope.doctor.machine import Machine, read_machine
from gilscope.doctor.permissions import (
    judge_environment,
    judge_program_cache,
    judge_rights,
    judge_site_cache,
    judge_switches,
)
from gilscope.doctor.probe_trial import (
    Trial,
    come_compiled,
    judge_trial,
    try_probes,
    what_prevents,
)
from gilscope.doctor.process import diagnose_process, is_readable
from gilscope.doctor.processes import list_pythons
from gilscope.doctor.syscall_trials import Attempt, make_attempts
from gilscope.model.diagnosis import Diagnosis
from gilscope.system.cache_dir import default_folder

__all__ = ["examine"]

_NOWHERE = Path(os.devnull, "gilscope")


def examine(
    pid: int | None, *, all_pythons: bool, attempt: Callable[[], Trial] = try_probes
) -> Diagnosis:
    """Return what works here and what does not; *attempt*, which takes seconds, tries the probes.

    It is called once, and only where nothing that it needs is missing.
    """
    machine = read_machine()
    folder = _cache_folder()
    process = None if pid is None else diagnose_process(pid, machine, folder or _NOWHERE)
    diagnosis = _examine_machine(machine, folder, attempt, target_is_readable=is_readable(process))
    diagnosis = replace(diagnosis, process=process)
    if not all_pythons:
        return diagnosis
    processes, unreadable = list_pythons(folder or _NOWHERE, machine)
    return replace(diagnosis, processes=processes, unreadable=unreadable)


def _examine_machine(
    machine: Machine,
    folder: Path | None,
    attempt: Callable[[], Trial],
    *,
    target_is_readable: bool,
) -> Diagnosis:
    attempts = make_attempts(machine.uprobe_type, uses_links=machine.uses_links)
    is_compiled = come_compiled()
    compiler = judge_compiler(
        os.environ,
        machine.release,
        machine.distributions,
        uses_links=machine.uses_links,
        is_needed=not is_compiled,
    )
    abilities = judge_abilities(machine, attempts, can_place_uprobes=False)
    architecture = judge_architecture(machine)
    obstacle = what_prevents((architecture, *abilities, *compiler))
    trial = Trial(prevented_by=obstacle) if obstacle else attempt()
    can_place = trial.can_place_uprobes
    checks = (
        judge_release(machine),
        architecture,
        *judge_rights(
            machine, attempts, can_place_uprobes=can_place, target_is_readable=target_is_readable
        ),
        *judge_abilities(machine, attempts, can_place_uprobes=can_place),
        *judge_switches(machine, target_is_readable=target_is_readable),
        *judge_environment(machine),
        *compiler,
        judge_trial(trial, uprobes_fail=bool(attempts[Attempt.UPROBE])),
        judge_site_cache(folder),
        judge_program_cache(folder, is_needed=not is_compiled),
    )
    features = (*judge_features(machine, attempts), judge_trap_cost(trial.trap_cost))
    return Diagnosis(checks, features=features, trap_cost=trial.trap_cost)


def _cache_folder() -> Path | None:
    try:
        return default_folder()
    except RuntimeError:
        return None
