"""One side of the comparison: runs every call on one package and writes what came out, as JSON.

python tests/support/mindspore_calls/side.py mindspore|polyop.mindspore RESULTS.json [part of a name]
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
import tempfile
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from mindspore_calls import calls, rows


def described(ms, value):  # noqa: PLR0911 - one return for each kind of value
    """Return a result as JSON: structure, dtype, shape and values."""
    if isinstance(value, ms.Parameter):
        return ["parameter", value.name, value.requires_grad, described(ms, value.value())]
    if isinstance(value, ms.Tensor):
        array = np.asarray(value.asnumpy())
        real = array.astype(np.float64) if array.dtype.kind != "c" else array.view(array.real.dtype)
        return ["tensor", str(value.dtype), list(value.shape), real.reshape(-1).tolist()]
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), list(value.shape), value.astype(np.float64).reshape(-1).tolist()]
    if isinstance(value, (tuple, list)):  # a namedtuple is a tuple
        return [("list", "tuple")[isinstance(value, tuple)], *(described(ms, item) for item in value)]
    if isinstance(value, dict):
        return ["dict", *([str(k), described(ms, v)] for k, v in value.items())]
    if value is None or isinstance(value, (bool, int, float, str)):
        return [type(value).__name__, value]
    return ["other", str(value)]


def first_tensor(ms, value):
    while isinstance(value, (tuple, list)):
        value = value[0]
    return value


def gradient(ms, code, names, inputs):
    """Return the gradients of the first output for all inputs of floats, times a fixed cotangent."""
    floats = [name for name, value in inputs.items() if value.dtype in FLOATS]
    if not floats:
        return None

    def function(*tensors):
        return first_tensor(ms, eval(code, {**names, **inputs, **dict(zip(floats, tensors, strict=True))}))

    given = [inputs[name] for name in floats]
    output = function(*given)
    if not isinstance(output, ms.Tensor) or output.dtype not in FLOATS:
        return None
    number = int(np.prod(output.shape))
    cotangent = np.cos(np.arange(number)).reshape(output.shape).astype(str(output.dtype).lower())
    rule = ms.ops.GradOperation(get_all=True, sens_param=True)(function)
    return described(ms, rule(*given, ms.Tensor(cotangent)))


def outcome(ms, call, names):
    """Return (result, gradient) of a call; an error is its text."""
    arrays = {n: calls.values(*form, n) for n, form in call.inputs.items()}
    fresh = {n: ms.Tensor(a) for n, a in arrays.items()}
    try:
        if "result" in call.text:
            space = {**names, "__name__": "__main__"}  # MindSpore asks functions for their module
            program = pathlib.Path(tempfile.mkdtemp(), "program.py")  # MindSpore reads the text of functions
            program.write_text(call.text)
            exec(compile(call.text, str(program), "exec"), space)
            return described(ms, space["result"]), None
        code = compile(call.text, call.text, "eval")
        value = described(ms, eval(code, {**names, **fresh}))
    except Exception as problem:
        return ["error", f"{type(problem).__name__}: {str(problem).strip().splitlines()[0][:200]}"], None
    if not call.gradient:
        return value, None
    try:
        return value, gradient(ms, code, names, {n: ms.Tensor(a) for n, a in arrays.items()})
    except Exception as problem:
        return value, ["error", f"{type(problem).__name__}: {str(problem).strip().splitlines()[0][:200]}"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    package, file, *part = sys.argv[1:]
    ms = importlib.import_module(package)
    names = {
        "ms": ms,
        "np": np,
        "Tensor": ms.Tensor,
        "Parameter": ms.Parameter,
        **{n: importlib.import_module(f"{package}.{n}") for n in ("ops", "nn")},
        "initializer": importlib.import_module(f"{package}.common.initializer").initializer,
    }
    FLOATS = (ms.float16, ms.float32, ms.float64)
    found = {}
    for row in rows.ROWS:
        for call in calls.calls_of(row):
            if not part or part[0] in row.names:
                found[str(call)] = outcome(ms, call, names)
    pathlib.Path(file).write_text(json.dumps(found))
