"""An exported library registers PyTorch operators, without polyop and without Python."""

import ctypes
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

import exported_by_hand
from polyop.call.overlap import Layout, is_overlapping, share_memory
from polyop.core.parse import parse
from polyop.export.operator import ExportedOperator
from polyop.export.surfaces import torch as surface

WEIGH = (
    'toy::weigh(Tensor x, Tensor? bias=None, *, int[] weights=[], str mode="plain", bool negate=False)'
    " -> (Tensor, Tensor)"
)
SCHEMAS = [
    "toy::scale(Tensor x, float factor=2.0) -> Tensor",
    WEIGH,
    "toy::add_(Tensor(a!) x, Tensor y) -> ()",
    "toy::copy(Tensor x) -> Tensor",
]


def operators(*schemas):
    return [ExportedOperator(one.qualified_name, one, (), (), "C++ source") for one in map(parse, schemas)]


REGISTER = """
extern "C" __attribute__((visibility("default"))) int toy_register_torch(void) {
  return polyop::exported::register_in_torch();
}
"""


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    text = surface.source(operators(*SCHEMAS)) + REGISTER
    return exported_by_hand.build_with(text, tmp_path_factory.mktemp("exported"))


def run(program, *arguments):
    """Run a program without polyop; return what it prints."""
    program = 'import sys\nsys.modules["polyop"] = None  # cannot be imported\n' + program
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


EAGER = """
import torch

torch.ops.load_library(sys.argv[1])
toy = torch.ops.toy
x = torch.arange(6.0).reshape(2, 3)
same = torch.testing.assert_close
same(toy.scale(x), 2 * x)
same(toy.scale(x, factor=3), 3 * x)
same(toy.scale(x.T, 0.5), x.T / 2)
same(toy.scale(x[:, ::2]), 2 * x[:, ::2])
same(toy.scale(x[:0].T), x[:0].T)
same(toy.scale(torch.tensor(4.0)), torch.tensor(8.0))
assert toy.scale(x.T).is_contiguous()
y, size = toy.weigh(x, x.flip(0).T.contiguous().T, weights=[1, 2], mode="a longer text", negate=True)
same(y, -3 * x + x.flip(0))
assert size.dtype == torch.int32 and size.item() == len("a longer text")
y, size = toy.weigh(x)
same(y, 0 * x)
assert size.item() == len("plain")

base = torch.zeros(3, 4)
assert toy.add_(base[:, :2].T, x) is None
same(base, torch.nn.functional.pad(x.T, (0, 2)))
for dtype in (torch.bool, torch.int8, torch.uint64, torch.float16, torch.bfloat16, torch.complex64,
              torch.float8_e4m3fn, torch.float8_e8m0fnu):
    values = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    result = toy.copy(values.T)
    assert result.dtype == dtype
    assert torch.equal(result.view(torch.uint8), values.T.contiguous().view(torch.uint8))
same(toy.copy(torch.conj(x.to(torch.complex64) * 1j)), -1j * x)

meta = toy.weigh(torch.empty(5, 2, device="meta"))
assert [(one.device.type, tuple(one.shape), one.dtype) for one in meta] == [
    ("meta", (5, 2), torch.float32), ("meta", (), torch.int32)]

for words, call in {
    "toy::scale: the kernel returned 1 (the factor must not be 0)": lambda: toy.scale(x, 0.0),
    "toy::scale: no kernel of this library takes x float64[2, 3]": lambda: toy.scale(x.double()),
    "no kernel of this library takes x int64[2]": lambda: toy.scale(torch.empty(2, dtype=torch.int64, device="meta")),
    "toy::copy: the tensor x has a dtype that polyop does not know": lambda: toy.copy(x.to(torch.complex32)),
    "toy::add_: argument x: is written in place, so no two of its elements may share memory, but got shape (2, 3)"
    " with strides (0, 1)\\n  pass a copy, which": lambda: toy.add_(torch.zeros(3).expand(2, 3), x),
    "but got shape (2, 3) with strides (1, 1)": lambda: toy.add_(torch.zeros(4).unfold(0, 3, 1), x),
    "toy::add_: the tensor y must be on the Meta device": lambda: toy.add_(x.to("meta"), x),
}.items():
    try:
        call()
    except RuntimeError as problem:
        assert words in str(problem), problem
    else:
        raise AssertionError(words)
print("called")
"""


@pytest.mark.slow
def test_python_without_polyop(path):
    assert run(EAGER, path) == "called"


COMPILED = """
import torch, torch._dynamo.testing

torch.ops.load_library(sys.argv[1])
toy = torch.ops.toy


def f(x, y):
    z = toy.scale(x, 3.0) + 1
    toy.add_(z, y)
    return toy.weigh(z, y, weights=[2])[0]


x, y = torch.rand(4, 3), torch.rand(3, 4).T
expected = ((3 * x + 1 + y) * 2) + y
for backend in ("eager", "aot_eager"):
    torch.testing.assert_close(torch.compile(f, fullgraph=True, backend=backend)(x, y), expected)

program = torch.export.export(type("M", (torch.nn.Module,), {"forward": lambda self, x, y: f(x, y)})(), (x, y))
assert "toy.scale.default" in program.graph_module.code
torch.testing.assert_close(program.module()(x, y), expected)
torch.library.opcheck(toy.scale.default, (x, 0.5), test_utils=("test_schema", "test_faketensor"))
counter = torch._dynamo.testing.CompileCounter()
compiled = torch.compile(lambda x: toy.scale(x) + 1, backend=counter, fullgraph=True, dynamic=True)
for size in (5, 7):  # every size is a number: it is compiled again
    torch.testing.assert_close(compiled(torch.ones(size)), torch.full((size,), 3.0))
assert counter.frame_count == 2

# Python can add symbolic shapes and a gradient.
torch.library.register_fake("toy::scale", lambda x, factor=2.0: torch.empty_like(x), allow_override=True)
torch.library.register_autograd("toy::scale", lambda ctx, gradient: (gradient * 7, None))
counter = torch._dynamo.testing.CompileCounter()
compiled = torch.compile(lambda x: toy.scale(x) * 2, backend=counter, fullgraph=True, dynamic=True)
for size in (5, 7):
    torch.testing.assert_close(compiled(torch.ones(size)), torch.full((size,), 4.0))
assert counter.frame_count == 1
x = torch.ones(3, requires_grad=True)
toy.scale(x).sum().backward()
assert x.grad.tolist() == [7, 7, 7]
print("compiled")
"""


@pytest.mark.slow
def test_compile_and_export_without_polyop(path):
    assert run(COMPILED, path) == "compiled"


ALIASED = """
import torch

torch.ops.load_library(sys.argv[1])
toy = torch.ops.toy
x = torch.zeros(3, 2).T
assert toy.add_(x, torch.ones(2, 3)) is None
assert x.tolist() == [[1, 1, 1], [1, 1, 1]]
def twice(x):
    toy.add_(x, x)
    return x * 5
for backend in ("eager", "aot_eager"):
    expected = 10 * x
    assert torch.equal(torch.compile(twice, backend=backend, fullgraph=True)(x), expected)
assert x.tolist() == [[4, 4, 4], [4, 4, 4]]
assert toy.scale(x, 4.0).tolist() == [[16] * 3] * 2
try:
    toy.scale(x, None)
except RuntimeError as problem:
    assert "toy::scale: the attribute factor must be a float, not None" in str(problem), problem
else:
    raise AssertionError("None")
print("called")
"""


OVERLAPPING = """
import torch

torch.ops.load_library(sys.argv[1])
add, zeros = torch.ops.toy.add_, torch.zeros(12)
base = zeros.clone().reshape(3, 4)
add(base[:, :2], torch.ones(3, 2))
assert base.tolist() == [[1, 1, 0, 0]] * 3
add(base[:, ::2], base[:, 1::2])  # they lie between each other
assert base.tolist() == [[2, 1, 0, 0]] * 3
before = base.clone()
apart = "toy::add_: argument x: is written in place: it must not share memory with y\\n  pass a copy"
itself = "toy::add_: argument x: is written in place, so no two of its elements may share memory, but got shape (2, 3)"
for x, y, words in (
    (base[:, :2], base[:, 1:3], apart),
    (base[:, ::2], base[:, ::2], apart),
    (base[:, :2], base.flatten()[4:10].view(3, 2), apart),
    (base[0].unfold(0, 3, 1), torch.ones(2, 3), itself),
):
    try:
        add(x, y)
    except RuntimeError as problem:
        assert words in str(problem), problem
    else:
        raise AssertionError("shared")
    assert torch.equal(base, before)
add(base, base)  # dense: the kernel gets the tensor itself, twice
assert torch.equal(base, 2 * before)
print("called")
"""


@pytest.mark.slow(1)
def test_what_is_written_does_not_share_memory(tmp_path):
    table, schemas = exported_by_hand.TABLE.read_text(), SCHEMAS
    for before, after in {
        "Tensor y) -> ()": "Tensor(b!) y) -> ()",
        '{"y", false, false}': '{"y", false, true}',
    }.items():
        assert before in table
        table = table.replace(before, after)
        schemas = [schema.replace(before, after) for schema in schemas]
    (tmp_path / "table.cc").write_text(table)
    source = surface.source(operators(*schemas))
    assert run(OVERLAPPING, exported_by_hand.build_with(source, tmp_path, tmp_path / "table.cc")) == "called"


@pytest.fixture(scope="module")
def overlap(tmp_path_factory):
    """The functions of overlap.h as two of C."""
    folder = tmp_path_factory.mktemp("overlap")
    (folder / "overlap.cc").write_text(OVERLAP)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    command = ["g++", *flags, f"-I{exported_by_hand.ROOT / 'include'}", "overlap.cc", "-o", "overlap.so"]
    subprocess.run(command, check=True, cwd=folder, timeout=120)
    return ctypes.CDLL(str(folder / "overlap.so"))


OVERLAP = """
#include "polyop/export/overlap.h"
using namespace polyop::exported;
struct Row { int64_t address, itemsize, ndim, sizes[3], strides[3]; };
static Layout layout(const Row* row) {
  return {"x", reinterpret_cast<const char*>(row->address), row->sizes, row->strides,
          static_cast<int32_t>(row->ndim), row->itemsize};
}
extern "C" int overlapping(const Row* row) { return is_overlapping(layout(row)); }
extern "C" int sharing(const Row* one, const Row* other) { return share_memory(layout(one), layout(other)); }
"""


def test_every_small_layout_is_told_as_by_polyop(overlap):
    """Here strides count elements, and in polyop bytes."""

    def row(layout):
        steps = [step // layout.itemsize for step in layout.strides]
        parts = [layout.address, layout.itemsize, len(steps)]
        for part in (layout.shape, steps):
            parts += [*part, *[0] * (3 - len(part))]
        return (ctypes.c_int64 * 9)(*parts)

    generator, seen = np.random.default_rng(0), set()
    for _ in range(2000):
        both = []
        for itemsize in generator.choice([4, 4, 8], 2).tolist():
            shape = generator.integers(
                0 if generator.random() < 0.1 else 1, 4, generator.integers(0, 4)
            ).tolist()
            strides = (itemsize * generator.integers(-7, 8, len(shape))).tolist()
            both.append(Layout(4096 + 2 * int(generator.integers(0, 16)), shape, strides, itemsize))
        overlapping = [is_overlapping(one.shape, one.strides, one.itemsize) for one in both]
        assert [bool(overlap.overlapping(row(one))) for one in both] == overlapping, both
        seen.update(overlapping)
        if not any(overlapping):
            shared = share_memory(*both)
            assert bool(overlap.sharing(*map(row, both))) == shared, both
            seen.add(f"shared {shared}")
    assert len(seen) == 4


@pytest.mark.slow
def test_arguments_that_are_returned_and_optional_attributes(tmp_path):
    table = exported_by_hand.TABLE.read_text()
    schemas = SCHEMAS
    for before, after in {
        "Tensor y) -> ()": "Tensor y) -> Tensor(a!)",
        "float factor": "float? factor",
    }.items():
        assert before in table
        table = table.replace(before, after)
        schemas = [schema.replace(before, after) for schema in schemas]
    source = surface.source(operators(*schemas))
    (tmp_path / "table.cc").write_text(table)
    assert run(ALIASED, exported_by_hand.build_with(source, tmp_path, tmp_path / "table.cc")) == "called"


LATER = """
import ctypes
library = ctypes.CDLL(sys.argv[1])  # in a process without libtorch
register = library.toy_register_torch
assert register() == 1
import torch
assert not hasattr(torch.ops.toy, "scale")
assert [register(), register()] == [0, 0]
assert torch.ops.toy.scale(torch.ones(2)).tolist() == [2, 2]
second = ctypes.CDLL(sys.argv[2])  # another library with the same names
assert second.toy_register_torch() == 2
assert torch.ops.toy.scale(torch.ones(2)).tolist() == [2, 2]
del library
print("registered")
"""


@pytest.mark.slow
def test_libtorch_comes_after_the_library(path, tmp_path):
    other = tmp_path / "other.so"
    other.write_bytes(path.read_bytes())
    assert run(LATER, path, other) == "registered"


PROGRAM = """
#include <torch/torch.h>
#include <dlfcn.h>

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  auto f = c10::Dispatcher::singleton().findSchemaOrThrow("toy::scale", "");
  torch::Tensor x = torch::arange(6, torch::kFloat32).reshape({2, 3}).t();
  torch::jit::Stack stack = {x, 0.5};
  f.callBoxed(stack);
  if (!stack.at(0).toTensor().equal(x / 2)) return 1;
  dlclose(library);
  stack = {x.to(torch::kMeta), 0.5};
  f.callBoxed(stack);
  if (stack.at(0).toTensor().sizes() != x.sizes()) return 2;
  stack = {x, 0.0};
  try {
    f.callBoxed(stack);
    return 3;
  } catch (const std::exception& problem) {
    std::puts(problem.what());
  }
}
"""


@pytest.mark.slow
def test_a_program_without_python(path, tmp_path):
    root = pathlib.Path(torch.__file__).parent
    (tmp_path / "program.cc").write_text(PROGRAM)
    libraries = root / "lib"
    includes = [f"-I{root / 'include'}", f"-I{root / 'include/torch/csrc/api/include'}"]
    links = [
        f"-L{libraries}",
        f"-Wl,-rpath,{libraries}",
        "-Wl,--no-as-needed",
        "-ltorch_cpu",
        "-lc10",
        "-ldl",
    ]
    command = ["g++", "-std=c++20", "-O0", *includes, "program.cc", *links, "-o", "program"]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=240)
    done = subprocess.run(
        ["./program", path], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("toy::scale: the kernel returned 1 (the factor must not be 0)")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("toy::f(Tensor x, int[] a, float[2] b, bool[] c, str? d=None) -> Tensor", None),
        ("toy::f(Tensor(a!) x) -> Tensor(a!)", None),
        ("toy::f(int n) -> Tensor", "no tensor argument"),
        ("toy::f(Tensor[] x) -> Tensor", "the argument x is a list of tensors"),
        ("toy::f(Tensor x, str[] s) -> Tensor", "the attribute s is str[]"),
        ("toy::f(Tensor x, Scalar s) -> Tensor", "does not pass Scalar, the type of s"),
        ("toy::f(Tensor x) -> Tensor[]", "returns a list of tensors"),
    ],
)
def test_operators_that_cannot_pass(schema, words):
    scale, other = operators(SCHEMAS[0], schema)
    reason = surface.refused(other)
    assert reason is None if words is None else words in reason
    assert surface.refused(scale) is None
    text = surface.source([other, scale])
    assert f"register_torch({1 if words else 2})" in text
    assert f'    {{1, "{SCHEMAS[0]}", "ta", ' in text  # its position in the sequence
