"""The table of every exported metric: the one source of the exporter, its pages and tests."""

from gilscope.metrics import agent, gil, locks, requests, stm
from gilscope.metrics.agent import *
from gilscope.metrics.family import PID, PROCESS_LABELS, Family, Type, families_of
from gilscope.metrics.gil import *
from gilscope.metrics.locks import *
from gilscope.metrics.requests import *
from gilscope.metrics.stm import *

__all__ = ["FAMILIES", "PID", "PROCESS_LABELS", "Family", "Type"]
__all__ += agent.__all__
__all__ += gil.__all__
__all__ += requests.__all__
__all__ += locks.__all__
__all__ += stm.__all__

FAMILIES = (
    *families_of(gil),
    *families_of(requests),
    *families_of(locks),
    *families_of(stm),
    *families_of(agent),
)
"""In the order in which they are exported and documented, which is that of the tables."""
