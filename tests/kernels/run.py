"""Boots kernels of the distribution in a virtual machine and runs the checks on each.

python tests/kernels/run.py                        # all kernels, all checks
python tests/kernels/run.py --suite bookworm       # one of them
python tests/kernels/run.py --record               # and keep the results for docs/kernels.md
python tests/kernels/run.py --page                 # nothing but the page, by what was kept
python tests/kernels/run.py --suite bullseye --check TEST   # a test by its id
"""
# ruff: noqa: T201 - a script

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "agent")]
# Beside this file lie modules with names of other packages.
sys.path = [entry for entry in sys.path if entry != str(_TESTS / "kernels")]

from kernels.machine import boot  # noqa: E402 - needs the paths
from kernels.packages import CACHE, KERNELS, Kernel, fetched  # noqa: E402 - needs the paths
from kernels.page import PAGE, RECORDED, page  # noqa: E402 - needs the paths
from kernels.results import (  # noqa: E402 - needs the paths
    Outcome,
    dumped,
    failures,
    loaded,
    outcome_of,
    replaced,
)
from kernels.root import pack  # noqa: E402 - needs the paths
from support.interpreters.interpreter import Unavailable  # noqa: E402 - needs the paths
from support.paths import ROOT  # noqa: E402 - needs the paths

_LIMIT_S = 2400
"""Some eight minutes are usual."""

_INIT = """\
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root /var/tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/shm /dev/pts
/bin/busybox mount -t devpts pts /dev/pts
/bin/busybox chmod 1777 /tmp /dev/shm
/bin/busybox ip link set lo up
/bin/busybox stty -F /dev/ttyS1 raw -echo
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8 CI=true
export GILSCOPE_PROGRAMS=ahead
cd {root}
.venv/bin/python tests/kernels/guest.py /dev/ttyS1 {checks}
/bin/busybox poweroff -f
"""


def main() -> int:
    """Do what the command line says; return 0 if each kernel that could be had has passed."""
    options = _options()
    if options.page:
        PAGE.write_text(page())
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / f"root-{os.getpid()}.cpio"
    try:
        pack(archive, _INIT.format(root=ROOT, checks=shlex.join(options.check)))
        chosen = [each for each in KERNELS if not options.suite or each.suite in options.suite]
        found = [_outcome(kernel, archive, options.check) for kernel in chosen]
    finally:
        archive.unlink(missing_ok=True)
    outcomes = [outcome for outcome in found if outcome is not None]
    if options.record and not options.check:
        before = loaded(RECORDED.read_text()) if RECORDED.exists() else []
        order = [kernel.suite for kernel in KERNELS]
        RECORDED.write_text(dumped(replaced(before, outcomes, order)))
        PAGE.write_text(page())
    passed = [outcome for outcome in outcomes if not _complaints(outcome, options.check)]
    print(f"{len(passed)} passed, {len(outcomes) - len(passed)} failed")
    return 0 if outcomes and passed == outcomes else 1


def _outcome(kernel: Kernel, archive: Path, checks: list[str]) -> Outcome | None:
    """Return what came of a kernel, which is shown; None where it cannot be had."""
    try:
        release, image = fetched(kernel)
    except Unavailable as error:
        print(f"{kernel.suite}: not to be had: {error}")
        return None
    print(f"{release} ({kernel.suite}): begins", flush=True)
    folder = CACHE / "runs" / kernel.suite
    began_s = time.monotonic()
    text, ended = boot(image, archive, folder, _LIMIT_S)
    outcome = outcome_of(kernel.suite, text, ended=ended)
    print(f"{release} ({kernel.suite}): {time.monotonic() - began_s:.0f} s; see {folder}")
    for test, how in outcome.tests.items():
        print(f"  {how:8} {test}")
    for complaint in _complaints(outcome, checks):
        print(f"  {complaint}")
    return outcome


def _complaints(outcome: Outcome, checks: list[str]) -> list[str]:
    """Return what is not as it has to be, of nothing but *checks* where there are some."""
    if not checks:
        return failures(outcome)
    return [
        f"{check}: {how}"
        for check in checks
        if not (how := outcome.tests.get(check, "not run")).startswith("passed")
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", action="append", choices=[each.suite for each in KERNELS])
    parser.add_argument("--check", action="append", default=[], metavar="TEST")
    parser.add_argument("--record", action="store_true", help="keep the results for the page")
    parser.add_argument("--page", action="store_true", help="make the page by what was kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
