"""Bad input: errors that name the argument, the rule and the value."""

import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint

import polyop
from polyop.call.host import host_of, load
from polyop.core.errors import ArgumentTypeError, HostError, NoKernelError, UnsupportedError

ONE = polyop.operator(
    "ms_refusals::one(Tensor x, float a=1.0) -> Tensor", lambda x, a: (x * a).astype(x.dtype), infer="x"
)
TWO = polyop.operator("ms_refusals::two(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y, infer="x")
X = np.ones(3, np.float32)


def test_dtypes_that_no_kernel_takes(mode):
    @mode
    def call(x):
        return ONE(x)

    message = "dtype: must be one of bool, int8, .*complex128, but got Float8E4M3FN"
    with pytest.raises(ArgumentTypeError, match=message):
        call(Tensor(np.array([1, 0]), dtype=ms.float8_e4m3fn))


def test_tensors_of_two_frameworks():
    with pytest.raises(HostError, match="y is a tensor of numpy, and x one of mindspore"):
        TWO(Tensor(X), X)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(HostError, match="y is a tensor of mindspore, and x one of torch"):
        TWO(torch.ones(3), Tensor(X))


def test_a_number_in_place_of_a_tensor(mode):
    @mode
    def call(x):
        return TWO(x, 2.0)

    with pytest.raises(ArgumentTypeError, match="argument y: must be a tensor of .*, but got builtins.float"):
        call(Tensor(X))


def test_an_array_in_a_graph():
    @ms.jit
    def call(x):
        return TWO(x, np.ones(3, np.float32))

    with pytest.raises(HostError, match="y is a tensor of numpy, and x one of mindspore"):
        call(Tensor(X))


def test_another_device():
    op = polyop.Custom(lambda x: x, lambda x: x, lambda x: x, "pyfunc").set_device("GPU")

    @ms.jit
    def call(x):
        return op(x)

    with pytest.raises(HostError, match="is bound to cuda, and MindSpore's tensors are on the CPU"):
        op(Tensor(X))
    with pytest.raises(NoKernelError, match="runs on cpu, and the operator is bound to cuda"):
        call(Tensor(X))


def test_a_tensor_without_data():
    with pytest.raises(HostError, match="argument x: has no data: a meta tensor"):
        ONE(mint.empty((2, 3), device="meta"))


def test_a_tensor_as_an_attribute(mode):
    @mode
    def call(x, a):
        return ONE(x, a)

    with pytest.raises(ArgumentTypeError, match="argument a: must be float, but got Tensor"):
        call(Tensor(X), Tensor(2.0))


def test_an_attribute_of_another_type(mode):
    @mode
    def call(x):
        return ONE(x, "s")

    with pytest.raises(ArgumentTypeError, match=r"argument a: must be float, but got 's' \(str\)"):
        call(Tensor(X))


def test_attributes_that_a_graph_does_not_know():
    op = polyop.operator("ms_refusals::many(Tensor x, float[] a) -> Tensor", lambda x, a: x, infer="x")

    @ms.jit
    def call(x):
        return op(x, x.asnumpy().tolist())

    @ms.jit
    def of_tensors(x):
        return op(x, [x, 2.0])

    with pytest.raises(UnsupportedError, match="::many: must be called with attributes that are constants"):
        call(Tensor(X))
    with pytest.raises(ArgumentTypeError, match=r"argument a: must be float\[\], but got \(Tensor"):
        of_tensors(Tensor(X))


def test_a_sparse_tensor():
    sparse = ms.COOTensor(Tensor([[0, 1]]), Tensor([1.0]), (3, 3))
    with pytest.raises(ArgumentTypeError, match="must be a tensor of .*but got mindspore.*COOTensor"):
        ONE(sparse)


def test_a_mindspore_that_is_too_old(monkeypatch):
    from polyop.hosts.mindspore.host import MindSporeHost

    monkeypatch.setattr(ms, "__version__", "2.6.0")
    with pytest.raises(HostError, match="MindSpore: must be 2.7 or later, but got 2.6.0"):
        MindSporeHost()


def test_a_mindspore_beside_a_numpy_that_it_cannot_use(monkeypatch):
    from polyop.hosts.mindspore import host

    class Broken:
        @staticmethod
        def from_numpy(array):
            raise ImportError("numpy.core.multiarray failed to import")

    monkeypatch.setattr(np, "__version__", "2.4.0")
    monkeypatch.setattr(host, "TensorPy", Broken)
    with pytest.raises(HostError, match="was built for NumPy 1 and cannot be used beside NumPy 2.4.0"):
        host.MindSporeHost()


STAND_IN = """
import sys
import polyop.mindspore
sys.modules["mindspore"] = polyop.mindspore
import mindspore
import polyop
from polyop.call.host import host_of, load
op = polyop.operator("demo::double(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
out = op(mindspore.Tensor([1.0, 2.0]))
assert out.asnumpy().tolist() == [2, 4]
assert load("mindspore") is None
assert host_of(mindspore.Tensor([1.0])).name == "torch"
"""


def test_the_stand_in_is_not_taken_for_mindspore():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    done = subprocess.run([sys.executable, "-c", STAND_IN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_host_is_there_for_mindspore_s_own_tensors_alone():
    host = load("mindspore")
    assert host is not None and host_of(Tensor(X)) is host
    assert host_of(ms.Parameter(Tensor(X), name="p")) is host
    assert not host.owns(X)


def test_a_size_that_depends_on_data_is_given_to_a_graph():
    schema = "ms_refusals::positive(Tensor x) -> Tensor"
    positive = polyop.operator(
        schema,
        lambda x: x[x > 0],
        dims="n -> k<=n",
        gradient=lambda x, out, dout: (ms.Tensor((x.asnumpy() > 0).astype(np.float32)) * dout.sum(),),
    )
    x = ms.Tensor(np.array([1, -2, 3], np.float32))
    assert positive(x).asnumpy().tolist() == [1, 3]
    assert positive(x, size=3, fill_value=9).asnumpy().tolist() == [1, 3, 9]
    assert ms.grad(lambda x: positive(x).sum())(x).asnumpy().tolist() == [2, 0, 2]
    padded = positive.padded

    @ms.jit
    def with_size(x):
        return padded(x, size=3)

    @ms.jit
    def without_size(x):
        return positive(x)

    assert with_size(x).asnumpy().tolist() == [1, 3, 0]
    with pytest.raises(UnsupportedError, match=r"size k depends on data(.|\n)*pass size="):
        without_size(x)
