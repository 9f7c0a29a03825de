"""Find where an operator that is not PyTorch's own comes from, and the line that brings it elsewhere."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

import torch
from torch._library import custom_ops

from ..core.errors import SchemaError
from ..core.parse import parse
from ..define.operator import checked_schema
from .corresponding import IGNORED

FUNCTION = "function"
"""The namespace of a compiled function that a network calls beside PyTorch's operators."""
NOTHING = "nothing: write one, polyop new my-operators"
_TRITON = "polyop.operator(schema, kernel, grid=...) with the function of @triton.jit"
HIGHER_ORDER = {f"higher_order::triton_kernel_wrapper_{one}": _TRITON for one in ("mutation", "functional")}
"""Operators that call a function of the network's own -> the line that makes an operator of it."""
_CAUSAL = "27_moved_networks/state_space_kernels.py:causal_convolution"
EXAMPLES = {
    "torchvision::nms": "25_detector/kernels.py:nms",
    "torchvision::roi_align": "25_detector/kernels.py:roi_align",
    "torch_sparse::spmm_sum": "27_moved_networks/graph_kernels.py:sparse_product",
    f"{FUNCTION}::selective_scan_cuda.fwd": "27_moved_networks/state_space_kernels.py:selective_scan",
    f"{FUNCTION}::causal_conv1d_cuda.causal_conv1d_fwd": _CAUSAL,
    "DaoAILab::_causal_conv1d_fwd_cpp": _CAUSAL,
    "flash_attn::_flash_attn_forward": "23_sequences/kernels.py:attention",
    "aten::_weight_int4pack_mm": "24_int4/kernels.py:matmul",
    "aten::dropout": "22_random/kernels.py:dropout",
    "aten::native_dropout": "22_random/kernels.py:dropout",
}
"""Operators -> the loop kernel among polyop's examples that computes the like, with arguments of its own."""


def attribute(name: str) -> str:
    """Return the attribute of ``torch.ops`` that an operator is.

    >>> attribute("aten::add.Tensor"), attribute("torchvision::nms")
    ('aten.add.Tensor', 'torchvision.nms.default')
    """
    namespace, _, rest = name.partition("::")
    return f"{namespace}.{rest if '.' in rest else f'{rest}.default'}"


def overload(name: str) -> Any:
    """Return the operator of PyTorch that has a name."""
    namespace, base, variant = attribute(name).split(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), variant)


def without_writing(name: str) -> str:
    """Return the operator that returns what another writes in place, where PyTorch has it; else the name.

    >>> without_writing("aten::add_.Tensor"), without_writing("aten::random_")
    ('aten::add.Tensor', 'aten::random')
    """
    base, dot, variant = name.partition(".")
    other = f"{base.removesuffix('_')}{dot}{variant}"
    try:
        same = len(overload(other)._schema.arguments) == len(overload(name)._schema.arguments)  # noqa: SLF001
    except AttributeError:
        return name
    return other if same else name


def line(name: str) -> str:
    """Return the line that calls an operator of a package in other frameworks."""
    package = package_of(name)
    by_name = f'polyop.aten("{name}")'
    library = next((one for one in sorted(torch.ops.loaded_libraries) if _holds(one, name)), "")
    if library and not package:
        return f'polyop.load_library("{library}"), or {by_name}'
    if package:
        return f"import {package}; {by_name}"
    module = next((one for one, value in sys.modules.items() if _is_file(value, place(name))), "")
    return f"import {module}; {by_name}" if module else by_name


def skeleton(name: str) -> str:
    """Return the line that defines an operator of the same signature by a function of one's own, or nothing.

    Arguments about where a result lies are left out.

    >>> skeleton("aten::median")
    'polyop.operator("my::median(Tensor self) -> Tensor", your_function, infer=your_shapes)'
    """
    if name.partition("::")[0] in (FUNCTION, "higher_order"):
        return ""
    schema = overload(without_writing(name))._schema  # noqa: SLF001 - PyTorch has no public name
    left = [a for a in schema.arguments if not (a.name in IGNORED and a.has_default_value())]
    plain = torch._C.FunctionSchema(schema.name, "", left, schema.returns, False, False)  # noqa: SLF001
    own = schema.name.partition("::")[2] + (f"_{schema.overload_name}" if schema.overload_name else "")
    text = f"my::{own}{str(plain).removeprefix(schema.name)}"
    try:
        checked_schema(parse(text), {}, None)
    except SchemaError:
        return ""
    quoted = f'"{text}"' if '"' not in text else repr(text)
    return f"polyop.operator({quoted}, your_function, infer=your_shapes)"


def reason(name: str) -> str:
    """Return where an operator comes from."""
    package = package_of(name)
    if package:
        return f"an operator of {_with_version(package)}"
    return f"an operator registered at {place(name) or '?'}"


def of_function(name: str) -> str:
    """Return the package of a compiled function, with its version."""
    return _with_version(name.partition(".")[0])


def _with_version(package: str) -> str:
    names = importlib.metadata.packages_distributions().get(package, [package])
    try:
        return f"{package} {importlib.metadata.version(names[0])}"
    except importlib.metadata.PackageNotFoundError:
        return package


def place(name: str) -> str:
    """Return the file and line that registered the schema of an operator, or nothing if none is known."""
    defined = custom_ops.OPDEFS.get(name.partition(".")[0])
    if defined is not None:
        code = defined._init_fn.__code__  # noqa: SLF001 - the function under torch.library.custom_op
        return f"{code.co_filename}:{code.co_firstlineno}"
    dump = torch._C._dispatch_dump(name.partition(".")[0])  # noqa: SLF001 - there is no public way to ask
    found = re.search(r"^debug: registered at (.*:\d+)$", dump, re.MULTILINE)
    return found[1] if found else ""


def _is_file(module: Any, where: str) -> bool:
    return getattr(module, "__file__", None) == where.rpartition(":")[0]


def _holds(library: str, name: str) -> bool:
    """Return whether a library that PyTorch has loaded holds the namespace and the name of an operator."""
    namespace, _, rest = name.partition("::")
    data = Path(library).read_bytes()
    return namespace.encode() in data and rest.partition(".")[0].encode() in data


def package_of(name: str) -> str:
    """Return the package to import for an operator, or nothing if none is known.

    It is that of its namespace, else the one whose folder has the file or the library that registers it.
    """
    namespace = name.partition("::")[0]
    if getattr(sys.modules.get(namespace), "__path__", None):
        return namespace
    libraries = [one for one in torch.ops.loaded_libraries if _holds(one, name)]
    files = [place(name).rpartition(":")[0], *libraries]
    for package, module in sorted(sys.modules.items()):
        for folder in getattr(module, "__path__", ()) if package != "torch" and "." not in package else ():
            if any(file.startswith(f"{folder}/") for file in files):
                return package
    return ""
