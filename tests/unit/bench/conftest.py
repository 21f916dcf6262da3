"""Lets the tests import the bench, which is no part of the package and runs from the checkout."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))
