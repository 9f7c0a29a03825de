"""Derived loops as text: the golden files that docs/guides/loop-gradients.md shows, and the text's own meaning."""

import importlib.util
import pathlib
from dataclasses import replace

import numpy as np
import pytest

from polyop import Custom
from polyop.loops.derive.forms import adjoint, batched
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import shown
from polyop.loops.ir.verify import violations

HERE = pathlib.Path(__file__).parents[3] / "examples" / "15_loop_gradients"
spec = importlib.util.spec_from_file_location("gradient_kernels", HERE / "kernels.py")
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
CASES = {
    "stencil": (kernels.burgers, ((7,),)),
    "norm": (kernels.rms_norm, ((3, 5), (5,))),
    "scan": (kernels.filtered, ((3, 5), (5,))),
    "own": (kernels.log_sum_exp, ((3, 5),)),
}


@pytest.mark.parametrize("name", CASES)
def test_derived_loops_are_as_shown(name, request):
    function, shapes = CASES[name]
    text = Custom(function, func_type="hybrid").gradient.loops(*map(np.ones, shapes))
    golden = HERE / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("name", CASES)
def test_the_text_of_a_kernel_is_a_kernel_again(name, tmp_path):
    function, shapes = CASES[name]
    arrays = [np.random.default_rng(0).standard_normal(s) for s in shapes]
    signature = [(a.dtype.name, a.ndim) for a in arrays]
    typed = parse(function, signature, {})
    path = tmp_path / "again.py"
    path.write_text("import math\n\n" + shown(typed).replace("float64)", '"float64")', 1))
    found = importlib.util.spec_from_file_location(f"again_{name}", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    again = parse(getattr(module, typed.name), signature, {})
    for one, other in zip(interpret(typed, arrays), interpret(again, arrays), strict=True):
        np.testing.assert_array_equal(one, other)


def doubled_or_not(x, flag):
    y = np.empty(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] if flag[()] else 3.0 * x[i]
    return y


def test_a_bool_without_dimensions_is_a_parameter_where_it_is_read():
    kernel = parse(doubled_or_not, [("float32", 1), ("bool", 0)], {})
    gradient = adjoint(kernel, (True,)).kernel
    assert gradient.parameters == ("x", "flag", "y", "d_y")
    assert [gradient.buffers[name].absent for name in gradient.parameters] == [False, False, True, False]
    assert shown(gradient).startswith("def doubled_or_not__backward(x, flag, d_y):\n")
    assert violations(gradient) == []
    hidden = replace(gradient.buffers["flag"], absent=True)
    read = violations(replace(gradient, buffers={**gradient.buffers, "flag": hidden}))
    assert set(read) == {"flag: it is absent, and read"}


def test_an_absent_tensor_gets_no_axis_of_samples():
    gradient = adjoint(parse(doubled_or_not, [("float32", 1), ("bool", 0)], {}), (True,)).kernel
    batch = batched(gradient, [0, None, 0, 0])
    assert batch.buffers["y"].absent and violations(batch) == []
    assert shown(batch).startswith("def doubled_or_not__backward__batched(x, flag, d_y):\n")
    alone = batched(gradient, [None, None, 0, None])  # it tells how many samples there are
    assert not alone.buffers["y"].absent and violations(alone) == []
