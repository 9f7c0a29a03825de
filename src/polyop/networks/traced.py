"""The operators of a PyTorch network: by ``torch.export``, or by one run of it."""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..core.errors import ArgumentValueError
from ..core.texts import first_line
from .corresponding_expression import TensorArgument, Unknown
from .foreign_operator import FUNCTION

_TORCH = f"{Path(torch.__file__).parent}{os.sep}"
_POLYOP = f"{Path(__file__).parents[1]}{os.sep}"
_INSTALLED = tuple({f"{sysconfig.get_path(one)}{os.sep}" for one in ("purelib", "platlib", "stdlib")})
_CHECKS = ("_assert_", "sym_size", "sym_constrain_range", "sym_stride", "sym_numel")
"""Beginnings of ATen's operators that only check, or only read a size."""
_WRAPPERS = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap", "autograd_function_apply")
"""Higher-order operators that only run their body, whose operators are listed instead."""
_NOT_LISTED = {"torch", "polyop", "numpy", *sys.stdlib_module_names}
"""Packages whose compiled functions are not listed: their work is seen as operators, or is NumPy's."""


class Use(NamedTuple):
    """One call of an operator in a network."""

    name: str
    """``aten::add.Tensor``: the overload ``default`` is left out."""
    arguments: dict[str, Any]
    place: str
    """File and line of the network's author, or nothing where it is not known."""
    module: str
    """The path of the module that calls, as ``encoder.0``; nothing for the network itself."""


class Traced(NamedTuple):
    """The calls of a network, and how they were found."""

    uses: list[Use]
    way: str


def trace(
    network: Any,
    inputs: tuple[Any, ...],
    keywords: dict[str, Any],
    decompositions: Any = None,
    *,
    export: bool = True,
) -> Traced:
    """Return the operators that a network calls. ``network`` is a module, or a program of ``torch.export``.

    With PyTorch's table of ``decompositions`` an exported program is split by it before. Without ``export`` a
    module is run once: a loop over the elements of a tensor, written in Python, keeps ``torch.export`` busy
    for minutes.

    Raises ``ArgumentValueError`` where the network neither can be exported nor run.
    """
    if isinstance(network, torch.export.ExportedProgram):
        return Traced(list(_exported(network, decompositions)), "a program of torch.export")
    if not export:
        return Traced(_run(network, inputs, keywords), "one run of it")
    try:
        with _every_frame():
            program = torch.export.export(network, inputs, keywords, strict=False)
    except Exception as problem:  # noqa: BLE001 - its errors have no common class
        first = first_line(problem)
        why = f"torch.export raised {type(problem).__name__}: {first}"
        return Traced(_run(network, inputs, keywords), f"one run of it, as {why}")
    return Traced(list(_exported(program, decompositions)), "torch.export")


@contextlib.contextmanager
def _every_frame() -> Iterator[None]:
    """Let ``torch.export`` keep the frames of functions that a ``forward`` calls: it drops them otherwise."""
    tracer = torch.fx.proxy.TracerBase
    name = "_filter_traceback_frames"
    before = getattr(tracer, name, None)
    if before is None:  # another version of PyTorch: places are lines of a forward then
        yield
        return
    setattr(tracer, name, lambda _, stack: traceback.StackSummary.from_list(_from_forward(stack)))
    try:
        yield
    finally:
        setattr(tracer, name, before)


def _from_forward(stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Return the frames from the first ``forward`` on; those before it are the tracer's."""
    first = next((number for number, frame in enumerate(stack) if frame.name == "forward"), len(stack))
    return stack[first:]


def _exported(program: Any, decompositions: Any) -> Iterator[Use]:
    """Yield the calls of a program, and those in the bodies of its branches and loops."""
    if decompositions is not None:
        with warnings.catch_warnings():  # of PyTorch to itself
            warnings.simplefilter("ignore", FutureWarning)
            program = program.run_decompositions(decompositions)
    for graph in program.graph_module.modules():
        for node in graph.graph.nodes if isinstance(graph, torch.fx.GraphModule) else ():
            if node.op != "call_function":
                continue
            place = _place_in(node.meta.get("stack_trace") or "")
            stack = list((node.meta.get("nn_module_stack") or {}).values())
            path = stack[-1][0].removeprefix("L['self']").lstrip(".") if stack else ""
            yield from _use(node.target, node.args, node.kwargs, _of_node, place, path)


def _use(
    target: Any, args: Any, keywords: Any, read: Callable[[Any], Any], place: str, path: str
) -> Iterator[Use]:
    """Yield the call of an operator; Python's own functions, such as ``getitem``, are none."""
    if isinstance(target, torch._ops.HigherOrderOperator):  # noqa: SLF001 - no public name
        if target.name() not in _WRAPPERS:
            yield Use(f"higher_order::{target.name()}", {}, place, path)
    elif isinstance(target, torch._ops.OpOverload):  # noqa: SLF001
        if target.namespace == "aten" and target._opname.startswith(_CHECKS):  # noqa: SLF001
            return
        name = f"{target.namespace}::{target._opname}.{target._overloadname}".removesuffix(".default")  # noqa: SLF001
        yield Use(name, bound(target._schema, args, keywords, read), place, path)  # noqa: SLF001


def bound(schema: Any, args: Any, keywords: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, with defaults; ``self`` is called ``x``.

    A single number for an ``int[2]`` becomes a list, and a dtype its name.
    """
    found = {}
    for number, argument in enumerate(schema.arguments):
        given = args[number] if number < len(args) else keywords.get(argument.name, argument.default_value)
        found["x" if argument.name == "self" else argument.name] = _as_declared(read(given), argument)
    return found


def _as_declared(value: Any, argument: Any) -> Any:
    """Return a value as its schema declares it: lists of the declared length, names of dtypes."""
    if argument.N and value is not None:
        value = list(value) if isinstance(value, (list, tuple)) else [value]
        value = value * argument.N if len(value) == 1 else value
    if "ScalarType" in str(argument.real_type) and type(value) is int:  # a default of the schema
        return None
    return value


def _of_node(value: Any) -> Any:
    """Return an argument of a node: what is known of a tensor, else the value."""
    return _plain(value.meta.get("val") if isinstance(value, torch.fx.Node) else value, _of_node)


def of_run(value: Any) -> Any:
    """Return an argument of a call: what is known of a tensor, else the value; a dtype is its name."""
    return _plain(value, of_run)


def _plain(value: Any, inner: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        sizes = tuple(size if type(size) is int else Unknown() for size in value.shape)
        return TensorArgument(sizes, str(value.dtype).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return [inner(one) for one in value]
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    return Unknown()


def _place_in(text: str) -> str:
    """Return the last line of a stack that is the author's: of no installed package, else of no PyTorch."""
    frames = []
    for line in text.splitlines():
        if line.strip().startswith('File "'):
            file, _, rest = line.strip().removeprefix('File "').partition('", line ')
            frames.append((file, rest.partition(",")[0]))
    return _place(frames)


def _place(frames: list[tuple[str, Any]]) -> str:
    outside = [frame for frame in frames if not frame[0].startswith((_TORCH, _POLYOP))]
    own = [frame for frame in outside if not frame[0].startswith(_INSTALLED)]
    chosen = (own or outside)[-1:]
    return "".join(f"{file}:{line}" for file, line in chosen)


def _run(network: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> list[Use]:
    """Return the operators of one run, in inference mode: with gradients PyTorch splits ``linear`` before.

    It is the user's network: batch norm in training mode updates its statistics.
    """
    recorder = _Recorder()

    def leave(*_: object) -> None:  # what else a hook returns takes the place of the module's result
        recorder.path.pop()

    with contextlib.ExitStack() as hooks:
        for path, module in network.named_modules() if isinstance(network, torch.nn.Module) else ():
            entering = module.register_forward_pre_hook(lambda *_, path=path: recorder.path.append(path))
            leaving = module.register_forward_hook(leave, always_call=True)
            hooks.callback(entering.remove)
            hooks.callback(leaving.remove)
        hooks.callback(sys.setprofile, sys.getprofile())
        with torch.inference_mode(), recorder:
            sys.setprofile(recorder.called)
            try:
                network(*inputs, **keywords)
            except Exception as problem:  # whatever the network raises
                where = _place([(f.filename, f.lineno) for f in traceback.extract_tb(problem.__traceback__)])
                hint = "are the inputs right? A dictionary is keywords; one argument that is one is ({...},)"
                rule = f"raised {type(problem).__name__}: {problem}"
                raise ArgumentValueError("the network", rule, where=where or None, hint=hint) from problem
    return recorder.uses


class _Recorder(TorchDispatchMode):  # type: ignore[misc] # PyTorch's classes are untyped here
    def __init__(self) -> None:
        super().__init__()
        self.uses: list[Use] = []
        self.path = [""]

    def called(self, frame: FrameType, event: str, function: Any) -> None:
        """Record the call of a compiled function of a package, which is no operator of PyTorch.

        Python calls it at each event of a profile.
        """
        module = getattr(function, "__module__", None) if event == "c_call" else None
        if isinstance(module, str) and module.partition(".")[0] not in _NOT_LISTED:
            frames = [(one.filename, one.lineno) for one in traceback.extract_stack(frame)]
            self.uses.append(
                Use(f"{FUNCTION}::{module}.{function.__name__}", {}, _place(frames), self.path[-1])
            )

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        frames = [(frame.filename, frame.lineno) for frame in traceback.extract_stack()]
        self.uses += _use(function, args, kwargs or {}, of_run, _place(frames), self.path[-1])
        return function(*args, **(kwargs or {}))
