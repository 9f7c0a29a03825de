"""Fixtures that several folders of tests use."""

import faulthandler
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import zlib

import pytest
from hypothesis import HealthCheck, settings

import pairs
import selection

# how long an example takes depends on what else the machine does
settings.register_profile("polyop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("polyop")

# read when polyop is imported, which the conftest.py of a folder that is tested alone does before any hook
os.environ["POLYOP_CHECK_LOCKS"] = "1"

HERE = pathlib.Path(__file__).parent
collect_ignore = [  # programs, and modules that define operators: their doctests would define these twice
    "export/exported_operators.py",
    "hosts/dlpack_page.py",
    "hosts/paddle/page.py",
    "kernels/page.py",
    "kernels/triton_page.py",
    "released/make.py",
    "released/released_operators.py",
    "sources/dask_cluster.py",
    "sources/dtensor_processes.py",
    "sources/jax_communication.py",
    "sources/lost_peer.py",
    "support/chunked_operators.py",
    "support/measured_operators.py",
    "support/opinfo",
    "support/report_kernels.py",
    "support/torch_packages",
]


def pytest_runtest_teardown():
    """Undo what a process group of PyTorch does to the process: its hook marks each line of an error for good."""
    sys.excepthook = sys.__excepthook__


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected texts from what is produced"
    )
    selection.add_options(parser)


def pytest_configure(config):
    """Set the variables of the session before anything is collected; all workers inherit them."""
    # importing it changes PyTorch
    stand_in = HERE.parent / "src" / "polyop" / "providers" / "npu" / "stand_in"
    tree = HERE / "sources" / "npu_wheel"  # a project with tests of its own
    config.option.ignore_glob = [*(config.option.ignore_glob or []), f"{stand_in}/*", f"{tree}/*"]
    for name in ("jax", "mindspore", "paddle", "dask", "xarray", "pyopencl"):
        if importlib.util.find_spec(name) is None:  # files that import it cannot be searched for doctests
            source = HERE.parent / "src" / "polyop"
            own = [f"{source}/hosts/{name}/*", f"{source}/testing/frameworks/{name}.py"]
            config.option.ignore_glob = [*(config.option.ignore_glob or []), *own]
    os.environ["POLYOP_TRACEBACK"] = "full"  # a failure shows where
    os.environ.pop("PYTEST_ADDOPTS", None)  # not for the runs of pytest that tests start
    if config.option.more == selection.ALL:
        os.environ[pairs.WHOLE] = "1"
    os.environ["POLYOP_STRICT"] = "1"  # a mistake of the compiler is an error, not a slower kernel
    config.uncaptured, config.has_fault_handler = os.fdopen(os.dup(2), "w"), False
    config.temporary_folders = {}
    set_to_temporary_folder(config, "POLYOP_CACHE_DIR")  # shared: PyTorch's headers are precompiled once
    set_to_temporary_folder(config, "MS_OM_PATH")  # MindSpore writes rank_0/ into it when a compilation fails
    set_to_temporary_folder(config, "TORCHINDUCTOR_CACHE_DIR")  # no graph that an earlier run compiled


def set_to_temporary_folder(config, variable):
    """Set an environment variable to a new folder until the end of the session, unless it is set."""
    if variable not in os.environ:
        os.environ[variable] = config.temporary_folders[variable] = tempfile.mkdtemp(prefix="polyop-tests-")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out cases of slow tests, and put the others into a random order."""
    selection.select(config, items)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Give a worker the seed of the run's order."""
    node.workerinput["order"] = selection.seed_of_order(node.config)


def pytest_report_header(config):
    """Print how to repeat the order."""
    return f"random order: --order {selection.seed_of_order(config)}"


def pytest_collection_finish():
    """Write no byte code from here on: a module that a test writes twice within a second would stay the first."""
    sys.dont_write_bytecode = True


def pytest_runtest_setup(item):
    """Give each test random numbers of its own, the same in each run, and the signals of Python's fault handler."""
    seed = zlib.crc32(item.nodeid.encode())
    for module, function in (("numpy.random", "seed"), ("torch", "manual_seed"), ("paddle", "seed")):
        if hasattr(sys.modules.get(module), function):  # a test may have put an empty module there
            getattr(sys.modules[module], function)(seed)
    # Paddle takes the signals, and prints where pytest captures
    paddle = sys.modules.get("paddle")
    if hasattr(paddle, "disable_signal_handler") and not item.config.has_fault_handler:
        item.config.has_fault_handler = True
        paddle.disable_signal_handler()
        faulthandler.disable()
        faulthandler.enable(item.config.uncaptured)


def pytest_terminal_summary(terminalreporter):
    """Print for which targets loop kernels were compiled, and on which they ran."""
    import target_summary

    target_summary.print_targets(terminalreporter)


def pytest_unconfigure(config):
    """Remove the temporary folders of the session."""
    for variable, folder in config.temporary_folders.items():
        del os.environ[variable]
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def plain_path(tmp_path_factory):
    """Return a folder for programs of others that take no path with a space."""
    return tmp_path_factory.mktemp("plain")


@pytest.fixture
def tmp_path(request, tmp_path):
    """Return a folder; that of building, wheels and definitions has spaces and letters that are not ASCII."""
    if request.path.relative_to(HERE.parent).parts[1] not in ("build", "wheel", "define"):
        return tmp_path
    folder = tmp_path / "ein Ordner für Ω"
    folder.mkdir()
    return folder


@pytest.fixture
def golden(request):
    """Compare a text with tests/golden/<name>; --update-golden writes it."""

    def compare(name, text):
        path = HERE / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run 'make golden' and look at what it wrote"
        assert text == path.read_text()

    return compare


@pytest.fixture
def sources():
    """The folder of C and C++ kernels that tests share."""
    return HERE / "sources"


@pytest.fixture
def not_warned_yet(monkeypatch):
    """Warn of loops of ``vmap`` again, whatever tests that ran before have called."""
    monkeypatch.setattr("polyop.call.batching._warned", set())
