"""Fixtures of the MindSpore tests: the two modes, a C++ module and a prebuilt library."""

import importlib.util
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent
SOURCES = HERE.parents[1] / "sources"
PRESENT = importlib.util.find_spec("mindspore") is not None
collect_ignore = ["compile_cache_program.py", "mindir_networks.py"]  # programs
collect_ignore_glob = [] if PRESENT else ["test_*.py"]


def pytest_terminal_summary(terminalreporter):
    if not PRESENT:
        count = len(list(HERE.glob("test_*.py")))
        terminalreporter.write_line(f"MindSpore host: not run: {count} files, as MindSpore is not installed")


@pytest.fixture(params=["pynative", "graph"])
def mode(request):
    """Return a decorator: ``ms.jit`` for graph mode, the identity for PyNative."""
    import mindspore

    return mindspore.jit if request.param == "graph" else lambda function: function


@pytest.fixture(params=["pynative", "graph"])
def context(request):
    """Set MindSpore's mode for networks, and return its name."""
    import mindspore

    before = mindspore.get_context("mode")
    mindspore.set_context(mode=mindspore.GRAPH_MODE if request.param == "graph" else mindspore.PYNATIVE_MODE)
    yield request.param
    mindspore.set_context(mode=before)


@pytest.fixture(scope="session")
def module():
    from polyop import CustomOpBuilder

    return CustomOpBuilder("ms_host_gradients", [str(SOURCES / "module_gradients.cpp")], backend="CPU").load()


@pytest.fixture(scope="session")
def library_file(tmp_path_factory):
    """A prebuilt library with the aot kernel CustomAdd."""
    from polyop.build import build

    return build([str(SOURCES / "add.cc")], output=tmp_path_factory.mktemp("aot") / "libadd.so")
