"""Lets the tests import the bench, which is no part of the package and runs from the checkout."""

import sys

from support.paths import ROOT

sys.path.append(str(ROOT))
