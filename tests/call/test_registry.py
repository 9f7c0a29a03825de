"""Names of operators: a look-up makes nothing, and what polyop derives keeps its names for itself."""

import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.call.registry import find
from polyop.core.errors import SchemaError

DEFINE = """
import numpy as np
import polyop
from polyop import Custom
from polyop.call import registry
from polyop.core.errors import SchemaError

@polyop.kernel
def f(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y

@polyop.kernel
def f__backward(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 3.0
    return y

@polyop.kernel
def norm(x, w):
    y = output_tensor(x.shape, x.dtype)
    squares = allocate((x.shape[0],), x.dtype)
    factor = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        squares[i] = 0.0
        for j in range(x.shape[1]):
            squares[i] = squares[i] + x[i, j] * x[i, j]
        factor[i] = rsqrt(squares[i] + 1e-6)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor[i] * w[j]
    return y

x = np.ones(3)
"""


@pytest.fixture
def process(tmp_path):
    """Run a program in a process of its own, which must end soon; return what it printed."""

    def run(program):
        path = tmp_path / "program.py"
        path.write_text(DEFINE + program)
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split()

    return run


@pytest.mark.slow
@pytest.mark.parametrize("order", ["f, f__backward", "f__backward, f"])
def test_a_custom_with_the_name_of_a_derived_operator(process, order):
    """Both work, under names of their own, and defining them does not wait for a lock for ever."""
    first, second = order.split(", ")
    printed = process(f"""
one = Custom({first}, func_type="hybrid")
other = Custom({second}, func_type="hybrid")
ops = {{"{first}": one, "{second}": other}}
_, pull = ops["f"].vjp(x)
print(pull(x)[0][0], ops["f__backward"](x)[0])
import importlib.util
if importlib.util.find_spec("torch"):
    import torch
    t = torch.ones(3, requires_grad=True)
    torch.compile(ops["f"], backend="aot_eager")(t).sum().backward()
    assert t.grad.tolist() == [2, 2, 2], t.grad
    assert torch.compile(ops["f__backward"], backend="aot_eager")(t).tolist() == [3, 3, 3]
print(len({{bound.name for bound in (one, other, ops["f"].operator.gradient.backward)}}))
""")
    assert printed == ["2.0", "3.0", "3"]


def test_defining_operators_in_threads_while_parts_are_made(process):
    printed = process("""
import threading
op = Custom(f, func_type="hybrid")
names = []
def define():
    for _ in range(20):
        names.append(Custom(f__backward, func_type="hybrid").name)
threads = [threading.Thread(target=define) for _ in range(4)]
for thread in threads: thread.start()
for _ in range(20): registry.obtain(op.name + "__backward__batched")
for thread in threads: thread.join()
print(len(names), len(set(names)))
""")
    assert printed == ["80", "80"]


def test_a_look_up_makes_nothing(process):
    printed = process("""
op = polyop.operator("registry::f(Tensor x) -> Tensor", f, infer="x")
print(registry.known("registry::f__backward"), op.operator.gradient.parts_made())
part = registry.obtain("registry::f__backward")
print(part.name, registry.known("registry::f__backward") is part)
""")
    assert printed == ["None", "[]", "registry::f__backward", "True"]


def test_parts_of_parts_are_made_from_their_names(process):
    """A process that loads a program has not made them yet; the name of one holds several ``__``."""
    names = [
        "saving_float32_2__float32_1",
        "saving_float32_2__float32_1__backward",
        "batched__backward",
        "tangent",
    ]
    wrong = ["saving_float32_2", "saving_float32_2__backward", "backwards", "f", "batched__backward__"]
    printed = process(f"""
op = polyop.operator("registry::norm(Tensor x, Tensor w) -> Tensor", norm, infer="x")
for suffix in {names + wrong}:
    part = registry.obtain("registry::norm__" + suffix)
    print(None if part is None else part.name.removeprefix("registry::norm__"))
""")
    assert printed == names + ["None"] * len(wrong)


def test_names_that_polyop_derives_are_refused_to_authors(process):
    printed = process("""
def define(name, function, **options):
    return polyop.operator(f"registry::{name}(Tensor x) -> Tensor", function, infer="x", **options)
define("a", f)
define("b__backward", f)
for name in ("a__backward", "a__batched", "b"):
    try:
        define(name, f)
    except SchemaError as problem:
        print(str(problem).splitlines()[0].rpartition(" at ")[0].replace(" ", "_"))
define("c", f, gradient=lambda x, out, dout: (dout,))
define("c__backward", f)  # given, so nothing is derived under that name
""")
    assert printed == [
        "registry::a__backward:_the_name_belongs_to_what_polyop_derives_of_registry::a,_defined",
        "registry::a__batched:_the_name_belongs_to_what_polyop_derives_of_registry::a,_defined",
        "registry::b:_polyop_derives_an_operator_registry::b__backward_of_it,_and_another_of_that_name_is_defined",
    ]


DEFINING = {  # texts that are run twice, as a cell is
    "lambda": "(lambda: operator(schema, f, infer='x'))()",
    "function": "def g():\n    operator(schema, f, infer='x')\ng()",
    "comprehension": "[operator(schema, f, infer='x') for _ in range(1)]",
    "generator": "list(operator(schema, f, infer='x') for _ in range(1))",
}


@pytest.mark.parametrize("how", DEFINING)
def test_only_what_the_code_of_a_module_defines_is_replaced(how):
    name, replaces = f"replaced_in::a_{how}", how in ("comprehension", "generator")
    space = {"operator": polyop.operator, "schema": f"{name}(Tensor x) -> Tensor", "f": lambda x: x + 1}
    exec(DEFINING[how], space)
    space["f"] = lambda x: x + 2
    if replaces:
        exec(DEFINING[how], space)
    else:
        with pytest.raises(SchemaError, match=f"{name}: the name is taken by the operator defined at"):
            exec(DEFINING[how], space)
    assert find(name)(np.zeros(1)).item() == 1 + replaces
