"""``check`` finds reads of a native kernel outside its tensors, and names the tensor and the sizes."""

import itertools

import numpy as np
import pytest

import polyop
from polyop.testing import check

CODE = """
#include <stdint.h>
#define KERNEL(name) \\
  int name(int n, void **p, int *nd, int64_t **shapes, const char **types, void *stream, void *extra)
static int64_t count(int ndim, const int64_t *shape) {
  int64_t total = 1;
  for (int i = 0; i < ndim; i++) total *= shape[i];
  return total;
}
KERNEL(add) { /* as many elements of each as the output has */
  const float *x = p[0], *y = p[1];
  float *out = p[2];
  for (int64_t i = 0; i < count(nd[2], shapes[2]); i++) out[i] = x[i] + y[i];
  return 0;
}
KERNEL(weigh) { /* rows times a weight per column */
  const float *x = p[0], *w = p[1];
  float *out = p[2];
  const int64_t columns = nd[0] ? shapes[0][nd[0] - 1] : 1;
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) out[i] = x[i] * w[i % columns];
  return 0;
}
KERNEL(looks) { /* refuses what does not fit itself */
  if (nd[0] != nd[1]) return 1;
  for (int i = 0; i < nd[0]; i++) if (shapes[0][i] != shapes[1][i]) return 1;
  const float *x = p[0], *y = p[1];
  float *out = p[2];
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) out[i] = x[i] + y[i];
  return 0;
}
KERNEL(pairs) { /* looks at the element after the last */
  const float *x = p[0];
  float *out = p[1];
  volatile float next = 0;
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) {
    next = x[i + 1];
    out[i] = x[i];
  }
  return 0;
}
KERNEL(before) { /* looks at the element before the first */
  const float *x = p[0];
  float *out = p[1];
  volatile float previous = 0;
  for (int64_t i = 0; i < count(nd[0], shapes[0]); i++) {
    previous = x[i - 1];
    out[i] = x[i];
  }
  return 0;
}
KERNEL(pick) { /* an index is no size */
  const float *x = p[0];
  const int64_t *index = p[1];
  float *out = p[2];
  for (int64_t i = 0; i < count(nd[1], shapes[1]); i++) out[i] = x[index[i]];
  return 0;
}
"""
X, W = np.ones((3, 4), np.float32), np.ones(4, np.float32)
_numbers = itertools.count()


def same(x, y):
    if x.shape != y.shape:
        raise ValueError("shapes differ")
    return x


def columns(x, w):
    if not x.shape or w.shape != x.shape[-1:]:
        raise ValueError("a weight per column")
    return x


TWO = "(Tensor x, Tensor y) -> Tensor"
WEIGHED = "(Tensor x, Tensor w) -> Tensor"
OUT = "beyond its end, but got an access there, called with"
BEFORE = "before its start, but got an access there, called with"
ROWS = [  # function, schema, options, samples, message
    ("add", TWO, {"infer": "x"}, (X, X), f"y: must not be read {OUT} (x float32[3, 4], y float32[1, 4])"),
    ("add", TWO, {"infer": "y"}, (X, X), f"x: must not be read {OUT} (x float32[1, 4], y float32[3, 4])"),
    ("add", TWO, {"infer": "x", "batch": "elementwise"}, (X, X), None),
    ("add", TWO, {"infer": same}, (X, X), None),
    ("add", "(Tensor[] xs) -> Tensor", {"infer": lambda xs: xs[0]}, ([X, X],), f"xs[1]: must not be read {OUT}"),
    ("weigh", WEIGHED, {"infer": "x"}, (X, W), f"w: must not be read {OUT} (x float32[3, 4], w float32[1])"),
    ("weigh", WEIGHED, {"infer": columns}, (X, W), None),
    ("looks", TWO, {"infer": "x"}, (X, X), None),
    ("pairs", "(Tensor x) -> Tensor", {"infer": "x"}, (X,), f"x: must not be read {OUT} (x float32[3, 4])"),
    ("before", "(Tensor x) -> Tensor", {"infer": "x"}, (X,), f"x: must not be read {BEFORE} (x float32[3, 4])"),
    (
        "pick",
        "(Tensor x, Tensor index) -> Tensor",
        {"infer": lambda x, index: polyop.Spec(index.shape, x.dtype)},
        (W, np.array([3, 0], np.int64)),
        None,
    ),
]  # fmt: skip


@pytest.mark.slow(2)
@pytest.mark.parametrize(("function", "schema", "options", "samples", "message"), ROWS)
def test_reads_beyond_a_tensor(function, schema, options, samples, message):
    kernel = polyop.source(function=function, code=CODE, language="c")
    op = polyop.operator(f"beyond::op{next(_numbers)}{schema}", kernel, **options)
    report = check(op, *samples, hosts=["numpy"], raise_on_failure=False)
    (row,) = (result for result in report.results if result.check == "reads inside")
    if message is None:
        assert row.status == "passed", row.detail
        return
    assert row.status == "failed" and message in row.detail
    way_out = "it must raise for those that the kernel cannot run on (infer= a function"
    assert (way_out in row.detail) == (len(samples) > 1 or "xs" in message)


def test_the_page_of_the_documents_is_safe():
    """The pattern of the README, with a second input."""
    kernel = polyop.source(function="add", code=CODE, language="c")
    op = polyop.operator(
        "beyond::leaky(Tensor x, Tensor y, float slope=0.01) -> Tensor",
        kernel,
        dtypes=["float32"],
        infer="x",
        batch="elementwise",
    )
    assert check(op, hosts=["numpy"]).ok
    with pytest.raises(polyop.PolyopError, match="all tensors must have one shape"):
        op(np.ones(50_000_000, np.float32), np.ones(1, np.float32))


def test_kernels_that_cannot_run_in_fenced_memory_are_reported():
    op = polyop.operator("beyond::python(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    (row,) = (r for r in check(op, hosts=["numpy"]).results if r.check == "reads inside")
    assert row.status == "not run" and "is no C function" in row.detail
