"""Each kind of kernel refuses a written tensor whose elements share memory, on each host that writes."""

import pathlib

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import polyop
from polyop.build import build
from polyop.core.errors import ArgumentValueError, PolyopError
from polyop.define.library.load import load_library
from polyop.define.module.builder import CustomOpBuilder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
SOURCE = pathlib.Path(__file__).parents[1] / "sources" / "overlap_kinds.cpp"
REFUSED = "is written in place, so no two of its elements may share memory"
C = """
#include <stdint.h>
int twice(int n, void **data, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  float *x = data[0];
  for (int64_t i = 0; i < shapes[0][0] * shapes[0][1]; ++i) x[i] *= 2;
  return 0;
}
"""


def by_loops(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] * 2.0
    return x


def by_python(x):
    x *= 2


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    """Functions of one tensor that double it in place, by the kind of their kernel."""
    file = tmp_path_factory.mktemp("overlap") / "twice.c"
    file.write_text(C)
    built = build(file, output=file.with_suffix(".so"))
    module = CustomOpBuilder("overlap_kinds_bound", [str(SOURCE)]).load()
    library = load_library(module.path)

    def operator(name, kernel):
        return polyop.operator(f"overlap_kinds_{name}::twice(Tensor(a!) x) -> ()", kernel)

    return {
        "source": operator("source", polyop.source(file, function="twice")),
        "prebuilt": operator("prebuilt", f"{built}:twice"),
        "python": operator("python", by_python),
        "loops": polyop.Custom(by_loops, func_type="hybrid"),
        "library": library.dense,
        "library, a list": lambda x: library.list([x]),
        "module, a launch": module.by_launch,
        "module, a loop": module.by_loop,
        "module, a Forward": module.by_forward,
        "module, unannounced": lambda x: module.unannounced(x, one_like(x)),
        "both": library.both,
        "gradient": module.doubles_gradient,
        "new module": lambda name: CustomOpBuilder(f"overlap_kinds_{name}", [str(SOURCE)]).load(),
    }


KINDS = [
    "source",
    "prebuilt",
    "python",
    "loops",
    "library",
    "library, a list",
    "module, a launch",
    "module, a loop",
    "module, a Forward",
    "module, unannounced",
]


def one_like(x):
    if isinstance(x, np.ndarray):
        return np.ones(1, np.float32)
    return x[:1, 0] * 0 + 1


def paddle_windows(overlapping):
    paddle = pytest.importorskip("paddle", reason="not run: paddle is not installed")
    steps = [1, 1] if overlapping else [1, 3]
    return paddle.as_strided(paddle.arange(6, dtype="float32"), [3, 2], steps)


def numpy_windows(overlapping):
    return as_strided(np.arange(6, dtype=np.float32), (3, 2), (4, 4) if overlapping else (4, 12))


def torch_windows(overlapping):
    return torch.arange(6.0).as_strided((3, 2), (1, 1) if overlapping else (1, 3))


def torch_result(overlapping):
    """Windows that have a gradient."""
    return (torch.arange(6.0, requires_grad=True) * 1).as_strided((3, 2), (1, 1) if overlapping else (1, 3))


TENSORS = {"numpy": numpy_windows, "torch": torch_windows, "paddle": paddle_windows}


@pytest.mark.parametrize("host", TENSORS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_on_each_host(kinds, kind, host):
    x = TENSORS[host](overlapping=True)
    with pytest.raises(PolyopError, match=REFUSED):
        kinds[kind](x)
    np.testing.assert_array_equal(np.asarray(x), numpy_windows(overlapping=True))  # nothing was written
    y = TENSORS[host](overlapping=False)
    kinds[kind](y)
    np.testing.assert_array_equal(np.asarray(y), 2 * numpy_windows(overlapping=False))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if "unannounced" not in kind])
def test_each_kind_in_a_compiled_program(kinds, kind, backend):
    torch.compiler.reset()
    kinds[kind](torch_windows(overlapping=False))

    def program(x):
        kinds[kind](x)
        return x + 0

    compiled = torch.compile(program, fullgraph=True, backend=backend)
    np.testing.assert_array_equal(compiled(torch_windows(False)), 2 * numpy_windows(False))
    with pytest.raises(PolyopError, match=REFUSED):
        compiled(torch_windows(overlapping=True))


def test_a_forward_that_is_recorded(kinds):
    op = kinds["module, a Forward"]
    with pytest.raises(ArgumentValueError, match=f"argument arg0: {REFUSED}.*shape \\(3, 2\\)"):
        op(torch_result(overlapping=True))
    with pytest.raises(ArgumentValueError, match=REFUSED):
        op.vjp(numpy_windows(overlapping=True))
    x = torch_result(overlapping=False)
    op(x)
    np.testing.assert_array_equal(x.detach(), 2 * numpy_windows(overlapping=False))


def test_a_gradient_that_backward_writes(kinds):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(PolyopError, match=f"Backward.*{REFUSED}"):
        kinds["gradient"](x).sum().backward()  # the gradient of a sum is one element, expanded
    (kinds["gradient"](x) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    np.testing.assert_array_equal(x.grad, [2, 4, 6])


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_two_written_tensors_that_share_memory(kinds, make):
    base = make(np.ones((4, 6), np.float32))
    with pytest.raises(ArgumentValueError, match="argument x: is written in place: .* share memory with y"):
        kinds["both"](base[:, :4], base[:, 3:])
    kinds["both"](base[:, :3], base[:, 3:])
    np.testing.assert_array_equal(base, np.full((4, 6), 2))


@pytest.mark.parametrize("host", TENSORS)
def test_a_strided_tensor_is_written_by_the_first_call(kinds, host):
    module = kinds["new module"](host)
    for function in (module.by_launch, lambda arg0: module.unannounced(arg0, arg1=one_like(arg0))):
        x = TENSORS[host](overlapping=False)
        function(arg0=x)
        np.testing.assert_array_equal(np.asarray(x), 2 * numpy_windows(overlapping=False))
