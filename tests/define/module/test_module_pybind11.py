"""A C++ module whose author includes pybind11 gets the real one."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

from polyop import CustomOpBuilder
from polyop.core.errors import BuildError, LibraryError

SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "module_pybind11.cpp"


@pytest.fixture(scope="session")
def module():
    return CustomOpBuilder("with_pybind11", [SOURCE]).load()


@pytest.mark.slow
def test_it_is_a_python_module_with_python_types(module):
    assert module.__name__ == "with_pybind11"
    assert module.add_one.__doc__.startswith("add_one(x: Tensor)")
    assert module.size({"a": 1, "b": 2}) == 2


@pytest.mark.slow
def test_arrays_and_tensors(module):
    np.testing.assert_array_equal(module.add_one(np.array([1, 2], np.float32)), [2, 3])
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(module.add_one(x=x), x + 1)
    assert torch.equal(module.add_one(x.T), x.T + 1)  # made dense by Call
    assert module.add_one(torch.zeros(0, 3)).shape == (0, 3)


def test_a_returned_argument_is_the_argument(module):
    x = torch.ones(2)
    assert module.first(x, [x, x]) is x


def test_a_wanted_gradient_is_an_error_not_a_zero(module):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a module that is bound with pybind11 itself records none"):
        module.add_one(x)
    with torch.no_grad():
        assert torch.equal(module.add_one(x), torch.full((2,), 2.0))


@pytest.mark.slow
def test_what_is_no_tensor_is_pybind11s_own_error(module):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        module.add_one("text")


@pytest.mark.slow
def test_memory_stays(module):
    x = np.zeros(4, np.float32)
    before = sys.getrefcount(x)
    for _ in range(1000):
        module.add_one(x)
    assert sys.getrefcount(x) == before


@pytest.mark.slow
def test_pytorch_imported_after_the_module():
    program = (
        "from polyop import CustomOpBuilder\n"
        f"m = CustomOpBuilder('with_pybind11', [{str(SOURCE)!r}]).load()\n"
        "import torch\n"
        "print(m.add_one(torch.ones(2)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[2.0, 2.0]\n"


@pytest.mark.slow
def test_another_name_in_the_source(tmp_path):
    source = tmp_path / "other.cpp"
    source.write_text(SOURCE.read_text().replace("MS_EXTENSION_NAME", "fixed_name"))
    with pytest.raises(LibraryError, match="write PYBIND11_MODULE\\(MS_EXTENSION_NAME, m\\)"):
        CustomOpBuilder("another_name", [source]).load()


def test_without_pybind11_installed():
    program = (
        "import sys\n"
        "sys.modules['pybind11'] = None\n"
        "from polyop import CustomOpBuilder\n"
        f"CustomOpBuilder('without_pybind11', [{str(SOURCE)!r}]).build()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "its sources include pybind11, which is not installed" in done.stderr
    assert BuildError.__name__ in done.stderr
