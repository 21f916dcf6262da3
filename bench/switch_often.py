"""The fight of bench_fight.py with a switch interval of 0.1 ms instead of 5 ms.

Fifty times as many contended waits for the same work: only so does the cost of one wait stand out
from the noise. No real program is like this.
"""

import runpy
import sys
from pathlib import Path

_WORKLOADS = Path(__file__).resolve().parents[1] / "tests" / "workloads"
_INTERVAL_S = 0.0001


def main() -> None:
    """Serve rounds, as bench_fight.py does."""
    sys.setswitchinterval(_INTERVAL_S)
    sys.path.insert(0, str(_WORKLOADS))
    runpy.run_path(str(_WORKLOADS / "bench_fight.py"), run_name="__main__")


if __name__ == "__main__":
    main()
