"""Compiles native_sums.cpp."""

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

setup(
    name="native_sums",
    py_modules=[],
    ext_modules=[Pybind11Extension("native_sums", ["native_sums.cpp"])],
)
