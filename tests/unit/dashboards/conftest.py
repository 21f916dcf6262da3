"""Lets the tests import what makes the dashboards, which runs from the checkout alone."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))
