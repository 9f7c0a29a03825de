"""What ``import polyop`` must not import."""

import subprocess
import sys

HEAVY = (
    "torch",
    "jax",
    "mindspore",
    "paddle",
    "dask",
    "xarray",
    "pyopencl",
    "onnxruntime",
    "rich",
    "filelock",
    "platformdirs",
    "array_api_compat",
    "yaml",
    "setuptools",
)
PROGRAM = "import sys; {first}; import polyop; print(*[n for n in {heavy} if n in sys.modules])"


def imported(first="pass"):
    program = PROGRAM.format(first=first, heavy=HEAVY)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()


def test_import_loads_no_framework_and_no_heavy_module():
    assert imported() == []


def test_the_check_can_fail():
    assert imported("import rich") == ["rich"]


def test_numpy_calls_import_no_framework():
    program = (
        "import sys, numpy as np, polyop\n"
        "op = polyop.operator('imports::f(Tensor x) -> Tensor', lambda x: x + 1, infer='x')\n"
        "print(op(np.zeros(1)), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[1.]", "False"]


def test_a_decorated_kernel_loads_no_compiler():
    program = (
        "import sys, polyop\n"
        "def f(x):\n    return x\n"
        "kernel = polyop.kernel(f)\n"
        "print(kernel, *[n for n in sys.modules if n.startswith('polyop.loops') or n.startswith('polyop.rules')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    compiler = ("parse", "pipeline", "loops.schedule", "emit", "derive", "library", "polyop.rules")
    assert done.stdout.startswith("<polyop operator main::f(x)>")
    assert [word for word in compiler if word in done.stdout] == []


def test_operators_without_loops_load_no_compiler(tmp_path):
    (tmp_path / "twice.cc").write_text(
        "#include <cstdint>\n"
        'extern "C" int twice(int, void **data, int *, int64_t **shapes, const char **, void *, void *) {\n'
        "  for (int64_t i = 0; i < shapes[0][0]; i++) ((double *)data[1])[i] = 2 * ((double *)data[0])[i];\n"
        "  return 0;\n}\n"
    )
    program = (
        "import sys, numpy as np, polyop\n"
        "def loaded():\n    return [n for n in sys.modules if n.startswith('polyop.loops')]\n"
        "print(loaded())\n"
        f"op = polyop.operator('imports::twice(Tensor x) -> Tensor', '{tmp_path}/twice.cc:twice', dims='n -> n',\n"
        "                     parallel='n', gradient=lambda x, out, dout: (2 * dout,))\n"
        "print(op(np.ones(1)), loaded())\n"
        "custom = polyop.Custom(lambda x: x + 1, lambda x: x, lambda x: x, 'pyfunc')\n"
        "print(custom(np.ones(1)), loaded())\n"
        "import torch\n"
        "x = torch.ones(1, dtype=torch.float64, requires_grad=True)\n"
        "op(x).sum().backward()\n"
        "print(x.grad.item(), torch.vmap(op)(x.detach()[None]).item(), loaded())\n"
        "polyop.Schedule, print(len(loaded()) > 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[2.] []", "[2.] []", "2.0 2.0 []", "True"]
