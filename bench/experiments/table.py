"""All experiments, in the order in which they are run."""

from bench.experiments.subjects import (
    astar_game,
    ccbench,
    convoy_udp,
    free_threaded,
    http_percentiles,
    io_and_gc,
    no_threads,
    primes_http,
    priorities,
    py27_ticks,
    pypy_gil,
    stm_golden,
    stm_scaling,
    stm_tornado,
    switch_interval,
    wiki_trie,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    convoy_udp.EXPERIMENT,
    ccbench.EXPERIMENT,
    stm_golden.EXPERIMENT,
    http_percentiles.EXPERIMENT,
    stm_tornado.EXPERIMENT,
    switch_interval.EXPERIMENT,
    primes_http.EXPERIMENT,
    io_and_gc.EXPERIMENT,
    priorities.EXPERIMENT,
    astar_game.EXPERIMENT,
    no_threads.EXPERIMENT,
    wiki_trie.EXPERIMENT,
    free_threaded.EXPERIMENT,
    stm_scaling.EXPERIMENT,
    pypy_gil.EXPERIMENT,
    py27_ticks.EXPERIMENT,
)
