"""``python -m gilscope``: makes sure of signals and streams, then runs the command line."""

# The half of `signal` in C, which is there at once. The other half imports a dozen modules, and
# Ctrl-C among them would be a traceback.
import _signal as signal  # type: ignore[import-not-found]
import sys

__all__ = ["main"]

_LIMIT_REACHED = 6
"""The exit code of `gilscope.errors.LimitReached`, which may be out of reach."""


def main() -> int:
    """Run the command line and return its exit code."""
    # Until the command line says otherwise Ctrl-C has its default action. Python's own way is an
    # exception, in the middle of an import for example.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from gilscope.system import standard_streams  # noqa: PLC0415 - after the signals

        standard_streams.prepare()
        from gilscope import cli  # noqa: PLC0415 - likewise
        from gilscope.system import log_output  # noqa: PLC0415 - likewise
    except Exception as error:  # noqa: BLE001 - without memory imports end in any of them
        return _not_loaded(error)
    try:
        code = cli.main()
    except SystemExit as end:
        # argparse has printed its help, or what is wrong with the arguments.
        code = end.code if isinstance(end.code, int) else 0
    code = standard_streams.finish(code)
    log_output.finish_log_output()
    return code


def _not_loaded(error: Exception) -> int:
    try:
        from gilscope.system import shortage  # noqa: PLC0415 - it needs next to nothing

        known = shortage.explained_loading(error)
    except Exception:  # noqa: BLE001 - not even that
        sys.stderr.write("error: gilscope cannot be loaded: memory is short (RLIMIT_AS)\n")
        return _LIMIT_REACHED
    if known is None:
        raise error
    sys.stderr.write(f"error: gilscope cannot be loaded: {known}\n{known.remedy}\n")
    return known.exit_code


if __name__ == "__main__":
    sys.exit(main())
