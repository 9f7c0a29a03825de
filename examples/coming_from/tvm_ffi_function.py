"""The code of docs/coming-from/tvm-ffi.md: one function of tvm-ffi, called by its package and by polyop."""

import pathlib
import tempfile

import tvm_ffi

import polyop
from polyop.build import build

CODE = r"""
// [code]
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

void Scale(tvm::ffi::TensorView x, double factor, tvm::ffi::TensorView out) {
  auto from = static_cast<float*>(x.data_ptr()), to = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = static_cast<float>(factor) * from[i];
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, Scale);
// [/code]
"""
folder = pathlib.Path(tvm_ffi.__file__).parent
source = pathlib.Path(tempfile.mkdtemp()) / "scale.cc"
source.write_text(CODE)
library = str(
    build([source], include_paths=[folder / "include"], link_flags=[f"-L{folder / 'lib'}", "-ltvm_ffi"])
)

# [theirs]
import torch
import tvm_ffi

module = tvm_ffi.load_module(library)
x = torch.ones(3)
out = torch.empty_like(x)  # the caller makes the output
module.scale(x, 2.0, out)
# [/theirs]

# [ours]
import polyop

scale = polyop.operator(
    "ours::scale(Tensor x, float factor) -> Tensor",
    f"{library}:scale",
    infer="x",  # the output is like x, and polyop makes it
    dtypes=["float32"],
    gradient=lambda x, factor, y, dy: (scale(dy, factor), None),
)
y = scale(x, 2.0)
# [/ours]

assert out.tolist() == y.tolist() == [2.0, 2.0, 2.0]
t = torch.ones(3, requires_grad=True)
scale(t, 2.0).sum().backward()
assert t.grad.tolist() == [2.0, 2.0, 2.0]
print("both agree")
