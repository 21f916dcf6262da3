"""Lets the tests import what makes the dashboards, which runs from the checkout alone."""

import sys

from support.paths import ROOT

sys.path.append(str(ROOT))
