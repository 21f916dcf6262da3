"""``gilscope serve``: traces processes for as long as it runs and exposes the figures over HTTP."""

import argparse

from gilscope.bpf.loader import Loading
from gilscope.commands.options import has_targets
from gilscope.commands.serving.options import EXAMPLES, SUMMARY, check_options, prepare_parser
from gilscope.commands.serving.service import Service, begin_log
from gilscope.gil.probes.program import Limits, begin_loading
from gilscope.system.malloc import share_one_arena
from gilscope.system.rlimits import allow_many

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

_LIMITS = Limits(span_pages=64, spans_a_second=500)
"""For the worst moment of a report: a convoy has some hundreds of waits a second."""


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM and return the exit code; raises GilscopeError."""
    check_options(arguments)
    begin_log(arguments)
    service = Service()
    allow_many()
    share_one_arena()
    loading = _begin_loading(arguments) if has_targets(arguments) else None
    try:
        # The kernel checks the programs while Python imports all that works with them.
        from gilscope.commands.serving.agent import serve  # noqa: PLC0415 - see above

        serve(arguments, service, loading)
    finally:
        if loading is not None:
            loading.cancel()
    return 0


def _begin_loading(arguments: argparse.Namespace) -> Loading:
    return begin_loading(
        discover=True,
        moments=arguments.page,
        regions=arguments.regions is not None,
        limits=_LIMITS,
    ).load_meanwhile()
