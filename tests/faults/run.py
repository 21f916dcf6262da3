"""Plays faults against gilscope and says which of them did harm.

python tests/faults/run.py                 # all of them
python tests/faults/run.py --half          # those of `make test`, with few repetitions
python tests/faults/run.py kill9_record    # by name
python tests/faults/run.py --subject http --jobs 2
python tests/faults/run.py --list
"""

import argparse
import contextlib
import faulthandler
import os
import signal
import sys
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "agent")]
# Beside this file lie modules with names of other packages.
sys.path = [entry for entry in sys.path if entry != str(_TESTS / "faults")]

from faults.one_fault import Result, play, play_here, printed  # noqa: E402 - needs the paths
from faults.registry import Fault, all_faults  # noqa: E402 - needs the paths
from faults.targets import with_variable  # noqa: E402 - needs the paths

_MARK = "GILSCOPE_FAULT_RUN"


def main() -> int:
    """Play what the command line names; return how many faults did harm, 100 at the most."""
    options = _options()
    known = all_faults()
    if unknown := [name for name in options.names if name not in known]:
        sys.stderr.write(f"no such fault: {', '.join(unknown)}\n")
        return 2
    if options.child:
        faulthandler.enable()
        sys.stdout.write(f"\n{printed(play_here(known[options.child], is_half=options.half))}\n")
        return 0
    chosen = list(_chosen(known.values(), options))
    if options.list:
        for fault in chosen:
            half = "half" if fault.in_half else "    "
            sys.stdout.write(f"{fault.subject:10} {fault.name:32} {half}  {fault.what}\n")
        return 0
    _end_all_when_told()
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda fault: play(fault, is_half=options.half), chosen):
            _show(result)
            results.append(result)
    return min(100, _sum_up(results, known))


def _end_all_when_told() -> None:
    """End everything that was started if this process is told to end, or by Ctrl-C."""
    mark = uuid.uuid4().hex
    os.environ[_MARK] = mark

    def end(number: int, _: object) -> None:
        for pid in with_variable(_MARK, mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="faults", description="Play faults against gilscope.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="play these only")
    parser.add_argument("--subject", action="append", help="play those of one subject only")
    parser.add_argument("--half", action="store_true", help="the short half, few repetitions")
    parser.add_argument("--jobs", type=int, default=1, help="so many at once (default: 1)")
    parser.add_argument("--list", action="store_true", help="list them, and play none")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def _chosen(faults: Iterable[Fault], options: argparse.Namespace) -> Iterable[Fault]:
    for fault in faults:
        if options.names:
            if fault.name in options.names:
                yield fault
        elif options.subject and fault.subject not in options.subject:
            continue
        elif (fault.in_half or not options.half) and (options.list or not fault.opt_in):
            yield fault


def _show(result: Result) -> None:
    state = result.verdict or ("not played" if result.not_here else "survived")
    sys.stdout.write(f"{result.name:32} {result.seconds:6.1f} s  {state}\n")
    sys.stdout.flush()


def _sum_up(results: list[Result], known: dict[str, Fault]) -> int:
    failed = [result for result in results if result.verdict]
    not_played = [result for result in results if result.not_here]
    for result in not_played:
        sys.stdout.write(f"\nnot played: {result.name}: {result.not_here}")
    for result in failed:
        expected = known[result.name].what
        seen = " ".join(result.seen.split())
        sys.stdout.write(f"\n{result.verdict:16} {result.name}: {expected}\n{'':16} seen: {seen}\n")
    survived = sum(result.is_survived for result in results)
    sys.stdout.write(f"\n{survived} of {len(results) - len(not_played)} survived")
    sys.stdout.write(f", {len(not_played)} not played\n" if not_played else "\n")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
