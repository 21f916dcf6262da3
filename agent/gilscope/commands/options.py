"""The options that commands share."""

import argparse

__all__ = ["add_observation_options", "chosen_method"]


def add_observation_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--mode`` and ``--method``."""
    parser.add_argument(
        "--mode",
        choices=["contention"],
        default="contention",
        help="what to observe; contention costs nothing while nobody waits (default)",
    )
    parser.add_argument(
        "--method",
        choices=["auto", "sites", "libc"],
        default="auto",
        help="how to find the GIL; auto tries the call sites, then libc (default: auto)",
    )


def chosen_method(arguments: argparse.Namespace) -> str | None:
    """Return the method that the user insists on, or None."""
    return None if arguments.method == "auto" else str(arguments.method)
