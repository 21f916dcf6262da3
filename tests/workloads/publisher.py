"""The library that publishes which request a thread serves, compiled from context_publisher.c."""

import ctypes
import os
import subprocess


def built(folder, *options):
    """Return it, compiled in *folder* with *options* of the compiler."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "context_publisher.c")
    path = os.path.join(folder, "publisher.so")
    command = ["gcc", "-O1", "-shared", "-fPIC", *options, "-o", path, source]
    subprocess.check_call(command)
    return ctypes.PyDLL(path)
