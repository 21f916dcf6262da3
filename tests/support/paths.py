"""Where things lie in a checkout."""

from pathlib import Path

__all__ = ["AGENT", "ROOT", "TESTS", "WORKLOADS"]

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
AGENT = ROOT / "agent"
WORKLOADS = TESTS / "workloads"
