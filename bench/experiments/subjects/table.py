"""All experiments, in the order in which they are run."""

from bench.experiments.subjects import stm_golden, stm_tornado

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (stm_golden.EXPERIMENT, stm_tornado.EXPERIMENT)
