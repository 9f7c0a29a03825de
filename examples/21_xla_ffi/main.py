"""XLA FFI handlers, as written for JAX, called from NumPy, PyTorch and JAX."""

# [define]
import pathlib

import numpy as np

import polyop

here = pathlib.Path(__file__).parent

rms_norm = polyop.operator(
    "xla::rms_norm(Tensor x, float eps=1e-6) -> Tensor",
    polyop.xla_ffi(f"{here / 'rms_norm.cc'}:RmsNorm", types={"eps": "float32"}, dtypes=["float32"]),
    dims="... n -> ... n",
    parallel="...",
)
x = np.array([[3, 4], [6, 8]], np.float32)
print(rms_norm(x))
# [/define]

# [jax]
import jax  # noqa: E402

print(jax.jit(rms_norm)(x))  # the plain custom call of the handler
print(jax.vmap(rms_norm)(x))
# [/jax]

# [torch]
import torch  # noqa: E402

print(rms_norm(torch.tensor(x)))
fast = torch.compile(lambda t: rms_norm(t) + 1, fullgraph=True, backend="aot_eager")
print(fast(torch.tensor(x)))
# [/torch]

# [lapack]
from jaxlib.cpu import _lapack  # noqa: E402

_lapack.initialize()  # jaxlib takes LAPACK's functions from SciPy
handlers = _lapack.registrations()

cholesky = polyop.operator(
    "xla::cholesky(Tensor x) -> (Tensor, Tensor)",
    [
        polyop.xla_ffi(handlers["lapack_spotrf_ffi"], dtypes=["float32"]),
        polyop.xla_ffi(handlers["lapack_dpotrf_ffi"], dtypes=["float64"]),
    ],
    infer=lambda x: (x, polyop.Spec(x.shape[:-2], "int32", x.device)),
    attributes={"uplo": np.uint8(ord("U"))},  # matrices of LAPACK are column-major: the lower triangle here
)
matrix = np.array([[4.0, 2.0], [2.0, 5.0]])
factor, info = cholesky(matrix)
print(np.tril(factor), info)
# [/lapack]

expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
np.testing.assert_allclose(rms_norm(x), expected, rtol=1e-6)
np.testing.assert_allclose(jax.jit(rms_norm)(x), expected, rtol=1e-6)
np.testing.assert_allclose(jax.vmap(rms_norm)(x), expected, rtol=1e-6)
np.testing.assert_allclose(fast(torch.tensor(x)), expected + 1, rtol=1e-6)
np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix))
