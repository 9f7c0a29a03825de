"""A notebook cell that is run again defines another operator, even if the digests are equal."""

import functools
import linecache

import numpy as np
import pytest

import polyop
from polyop.call import foreign
from polyop.core.errors import HostError

jax = pytest.importorskip("jax", reason="JAX is not installed")
CELL = "op = polyop.operator('redefined::{}(Tensor x) -> Tensor', {}, infer='x')"
FORMS = {
    "default": "lambda x, k=np.float32(K): x * k",
    "closure": "(lambda k: lambda x: x * k)(np.float32([K]))",
    "object": "Scale(K)",
    "partial": "functools.partial(np.multiply, np.float32(K))",
    "method": "Scale(K).times",
}


class Scale:
    def __init__(self, k):
        self.k = np.float32(k)

    def __call__(self, x):
        return x * self.k

    def times(self, x):
        return self(x)


LOOPS = {
    "body": "x[i] * {}.0",
    "variable": "x[i] * K",
}
LOOP = """
@polyop.kernel
def kernel(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = {}
    return y

"""


@pytest.mark.parametrize("form", FORMS)
def test_new_programs_run_the_new_one_and_old_ones_the_old(form):
    names = {"functools": functools, "polyop": polyop, "np": np, "Scale": Scale, "K": 2}
    x = jax.numpy.ones(3, "float32")
    programs = []
    for k in (2, 3):
        names["K"] = k
        exec(compile(CELL.format(form, FORMS[form]), f"<cell {k}>", "exec"), names)
        programs.append(jax.jit(names["op"]))
        assert programs[-1](x).tolist() == names["op"](x).tolist() == [k] * 3
    assert programs[0](x).tolist() == [2] * 3


@pytest.mark.parametrize("form", LOOPS)
def test_loop_kernels(form):
    names = {"polyop": polyop}
    x = jax.numpy.ones(3, "float32")
    programs = []
    for k in (2, 3):
        names["K"] = float(k)
        file = f"<cell {form} {k}>"
        text = LOOP.format(LOOPS[form].format(k)) + CELL.format(f"loop_{form}", "kernel")
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # as IPython does
        exec(compile(text, file, "exec"), names)
        programs.append(jax.jit(names["op"]))
        assert programs[-1](x).tolist() == names["op"](x).tolist() == [k] * 3
    assert programs[0](x).tolist() == [2] * 3


def test_a_text_of_another_process_needs_the_same_content():
    op = polyop.operator("redefined::other(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
    text = foreign.call_text(op, (np.ones(2),))
    name, content, rest = text.split(",", 2)
    elsewhere = ",".join((name, f'{content[:-1]}.7"', rest))  # the seventh alike, in that process
    assert foreign.parse_call_text(elsewhere)[0] is op
    with pytest.raises(HostError, match="made with another definition of the operator"):
        foreign.parse_call_text(f'{name},"0123456789abcdef",{rest}')
