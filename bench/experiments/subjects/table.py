"""All experiments, in the order in which they are run."""

from bench.experiments.subjects import (
    ccbench,
    convoy_udp,
    priorities,
    stm_golden,
    stm_tornado,
    switch_interval,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    convoy_udp.EXPERIMENT,
    ccbench.EXPERIMENT,
    stm_golden.EXPERIMENT,
    stm_tornado.EXPERIMENT,
    switch_interval.EXPERIMENT,
    priorities.EXPERIMENT,
)
