"""The code of docs/hosts/jax.md; test_page.py runs it in a new process with four devices."""

import pathlib
import tempfile

# [first]
import jax
import jax.numpy as jnp
import numpy as np

import polyop

SQUARE = """
#include "polyop/abi.h"
int square(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  int64_t count = 1;
  for (int i = 0; i < ndims[0]; ++i) count *= shapes[0][i];
  for (int64_t i = 0; i < count; ++i) ((float *)params[1])[i] = ((float *)params[0])[i] * ((float *)params[0])[i];
  return 0;
}
"""
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "square.c").write_text(SQUARE)

square = polyop.operator(
    "page::square(Tensor x) -> Tensor",
    f"{folder}/square.c:square",
    gradient=lambda x, out, dout: (2 * x * dout,),
    batch="elementwise",
)

x = jnp.arange(4.0)
print(square(x), jax.jit(square)(x))
# [/first]

# [transforms]
print(jax.grad(lambda x: square(x).sum())(x))
print(jax.hessian(lambda x: square(x).sum())(x))
print(jax.jvp(square, (x,), (jnp.ones(4),)))
print(jax.vmap(jax.grad(square))(x))
# [/transforms]
np.testing.assert_array_equal(jax.vmap(jax.grad(square))(x), 2 * x)

# [in_place]
add_to = polyop.operator(
    "page::add_to(Tensor(a!) total, Tensor x) -> ()", lambda total, x: np.add(total, x, out=total)
)

total = jnp.zeros(4)
print(add_to(total, x))  # the new value
print(total)  # the array is what it was
step = jax.jit(add_to, donate_argnums=0)  # JAX may reuse the memory of `total`: nothing is copied
print(step(total, x))
# [/in_place]

# [aten]
positive = polyop.aten("masked_select")
print(jax.jit(lambda x: positive(x, x > 0, size=4, fill_value=-1.0))(x))
noise = polyop.aten("randn")
print(jax.jit(lambda key: noise([2], generator=key))(jax.random.key(0)).shape)
print(polyop.aten("eye")(2, host="jax"))  # no argument shows the framework, so the call names it
# [/aten]
np.testing.assert_array_equal(positive(x, x > 0, size=4, fill_value=-1.0), [1, 2, 3, -1])

# [narrow]
values, places = polyop.aten("topk")(jnp.array([3.0, 1.0, 2.0]), 2)
print(places.dtype)  # int32, as of jax.lax.top_k
# [/narrow]
assert places.dtype == jax.lax.top_k(values, 2)[1].dtype

# [export]
import jax.export  # noqa: E402

made = jax.export.export(jax.jit(square), disabled_checks=polyop.jax_export_checks())(
    jax.ShapeDtypeStruct((4,), "float32")
)
(folder / "square.jax").write_bytes(made.serialize())

# in another process, which has defined the same operator and called polyop.jax_export_checks():
again = jax.export.deserialize(bytearray((folder / "square.jax").read_bytes()))
print(again.call(x))
# [/export]
np.testing.assert_array_equal(again.call(x), x**2)

# [shard]
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

mesh = jax.make_mesh((jax.device_count(),), ("batch",), axis_types=(AxisType.Auto,))
rows = jax.device_put(np.ones((8, 3), np.float32), NamedSharding(mesh, P("batch")))
print(jax.jit(square)(rows).sharding)  # elementwise: each device runs the kernel on its rows

total = polyop.operator(
    "page::total(Tensor x) -> Tensor", lambda x: x.sum(0), dims="m n -> n", parallel="n", sum="m"
)
print(jax.jit(total)(rows))  # each device adds its rows; one all-reduce adds those sums

softmax = polyop.operator(
    "page::softmax(Tensor x) -> Tensor", lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), infer="x"
)
by_rows = jax.shard_map(softmax, mesh=mesh, in_specs=P("batch"), out_specs=P("batch"))
print(jax.jit(by_rows)(rows).sharding)
# [/shard]
np.testing.assert_allclose(jax.jit(by_rows)(rows), np.full((8, 3), 1 / 3), rtol=1e-6)
np.testing.assert_array_equal(jax.jit(total)(rows), np.full(3, 8, np.float32))
