"""Several threads call one operator in JAX: XLA's handler and its table of prepared calls are shared."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import polyop

SCALE = """#include "polyop/abi.h"
int scale(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  (void)nparam, (void)dtypes, (void)stream;
  double by = 0;
  if (polyop_get_float(extra, "by", &by)) return 1;
  const float *x = params[0];
  float *y = params[1];
  int64_t n = 1;
  for (int i = 0; i < ndims[0]; ++i) n *= shapes[0][i];
  for (int64_t i = 0; i < n; ++i) y[i] = (float)by * x[i];
  return 0;
}
"""


@pytest.mark.slow
def test_threads_call_one_operator(tmp_path):
    (tmp_path / "scale.c").write_text(SCALE)
    schema = "jax_threads::scale(Tensor x, float by=2.0) -> Tensor"
    scale = polyop.operator(schema, f"{tmp_path / 'scale.c'}:scale", infer="x")
    wrong = []
    jitted = jax.jit(lambda x: scale(x) + 1)

    def many(start):
        for size in range(start, start + 60):  # the threads meet at some sizes and not at others
            x = np.full((size,), size, np.float32)
            result = jitted(jnp.asarray(x)) + scale(jnp.asarray(x), by=3.0)
            wrong.extend([] if np.array_equal(result, 5 * x + 1) else [size])

    threads = [threading.Thread(target=many, args=(start,)) for start in (1, 20, 40)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
