"""Fixtures that several folders of tests use."""

import faulthandler
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings

import tiers
import turns

# how long an example takes depends on what else the machine does
settings.register_profile("polyop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("polyop")

HERE = pathlib.Path(__file__).parent
collect_ignore = [  # programs, and modules that define operators: their doctests would define these twice
    "export/exported_operators.py",
    "hosts/dlpack_page.py",
    "hosts/paddle/page.py",
    "kernels/page.py",
    "kernels/triton_page.py",
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


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected texts from what is produced"
    )


def pytest_configure(config):
    """Set the variables of the session before anything is collected; all workers inherit them."""
    # importing it changes PyTorch
    stand_in = HERE.parent / "src" / "polyop" / "providers" / "npu" / "stand_in"
    tree = HERE / "sources" / "npu_wheel"  # a project with tests of its own
    config.option.ignore_glob = [*(config.option.ignore_glob or []), f"{stand_in}/*", f"{tree}/*"]
    for name in ("jax", "mindspore", "paddle", "dask", "xarray"):
        if importlib.util.find_spec(name) is None:  # files that import it cannot be searched for doctests
            source = HERE.parent / "src" / "polyop"
            own = [f"{source}/hosts/{name}/*", f"{source}/testing/frameworks/{name}.py"]
            config.option.ignore_glob = [*(config.option.ignore_glob or []), *own]
    os.environ.pop("PYTEST_ADDOPTS", None)  # not for the runs of pytest that tests start
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


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before cases are chosen by their marks, and after that
def pytest_collection_modifyitems(config, items):
    """Mark the cases that only the exhaustive tests run, and draw some; in a worker, put long files first."""
    tiers.mark(items)
    yield
    kept = tiers.drawn(items)
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in {*kept}])
        items[:] = kept
    if hasattr(config, "workerinput"):
        turns.sort(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give workers the tests of a file together, and those of files that share their fixtures."""
    return turns.Scheduler(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_runtest_setup(item):
    """Give Python's fault handler its signals back: Paddle takes them, and prints where pytest captures."""
    paddle = sys.modules.get("paddle")
    if hasattr(paddle, "disable_signal_handler") and not item.config.has_fault_handler:
        item.config.has_fault_handler = True
        paddle.disable_signal_handler()
        faulthandler.disable()
        faulthandler.enable(item.config.uncaptured)


def pytest_unconfigure(config):
    """Remove the temporary folders of the session."""
    for variable, folder in config.temporary_folders.items():
        del os.environ[variable]
        shutil.rmtree(folder, ignore_errors=True)


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
