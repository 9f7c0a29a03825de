"""The code of docs/coming-from/jax-ffi.md: a handler of XLA, called by jax.ffi and by polyop."""

import pathlib
import subprocess
import tempfile

import jax
import numpy as np

import polyop

here = pathlib.Path(__file__).parents[1] / "21_xla_ffi"
library = pathlib.Path(tempfile.mkdtemp()) / "rms_norm.so"
flags = ["-std=c++17", "-O2", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}"]
subprocess.run(["c++", *flags, here / "rms_norm.cc", "-o", library], check=True)

# [theirs]
import ctypes
import functools

import jax

handler = ctypes.CDLL(str(library)).RmsNorm
jax.ffi.register_ffi_target("rms_norm", jax.ffi.pycapsule(handler), platform="cpu")


def call(x, eps):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.ffi.ffi_call("rms_norm", like, vmap_method="broadcast_all")(x, eps=np.float32(eps))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def their_norm(x, eps):
    return call(x, eps)


def forward(x, eps):
    return call(x, eps), x


def backward(eps, x, dy):
    _, pull = jax.vjp(lambda x: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + eps), x)
    return pull(dy)


their_norm.defvjp(forward, backward)
# [/theirs]

# [ours]
import polyop


def gradient(x, eps, y, dy):
    xp = polyop.array_namespace(x)
    scale = 1 / xp.sqrt(xp.mean(x * x, -1, keepdims=True) + eps)
    return scale * (dy - y * xp.mean(y * dy, -1, keepdims=True)), None


norm = polyop.operator(
    "ours::rms_norm(Tensor x, float eps=1e-6) -> Tensor",
    polyop.xla_ffi(f"{library}:RmsNorm", types={"eps": "float32"}, dtypes=["float32"]),
    dims="... n -> ... n",
    parallel="...",
    gradient=gradient,
)
# [/ours]

x = jax.numpy.asarray(np.random.default_rng(0).normal(size=(3, 4)), "float32")
for transform in (lambda f: f, jax.jit, jax.vmap):
    np.testing.assert_allclose(
        transform(lambda x: their_norm(x, 1e-6))(x), transform(lambda x: norm(x, 1e-6))(x), rtol=1e-5
    )
slopes = [jax.grad(lambda x, f=f: (f(x, 1e-6) ** 3).sum())(x) for f in (their_norm, norm)]
np.testing.assert_allclose(*slopes, rtol=1e-3, atol=1e-4)
print("both agree")
