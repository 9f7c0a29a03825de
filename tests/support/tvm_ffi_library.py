"""Builds the library of tests/sources/tvm_ffi.cc, with the headers of the installed tvm-ffi."""

import functools
import importlib.util
import pathlib

import pytest

from polyop.build import build

SOURCE = pathlib.Path(__file__).parents[1] / "sources" / "tvm_ffi.cc"


@functools.cache
def path():
    """Return the path of the library; skip the test where tvm-ffi is not installed."""
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None:
        pytest.skip("not run: apache-tvm-ffi is not installed")
    folder = pathlib.Path(spec.submodule_search_locations[0])
    return build(
        [SOURCE], include_paths=[folder / "include"], link_flags=[f"-L{folder / 'lib'}", "-ltvm_ffi"]
    )
