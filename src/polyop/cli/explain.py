"""``polyop explain``: show which kernel an operator takes for some inputs, and why not the others."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..build.show import progress
from ..call.bound import BoundOperator
from ..call.explain import arguments_of, explain
from ..call.ranks import example, ranks_of
from ..core.dtypes import dtype
from ..core.errors import ArgumentValueError
from ..core.spec import Spec
from ..kernels.base import LoopKernelBase
from .explain_facts import drawing, facts
from .load import add_target, find_operator, load, operators, target
from .terminal import say, say_json

if TYPE_CHECKING:
    from ..loops.program import Program
    from ..loops.runner import Pass
    from ..sharding.communication import Communication


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    verb = verbs.add_parser("explain", help="say which kernel an operator takes, and why not the others")
    add_target(verb, without="; all of the module's without it")
    verb.add_argument(
        "--input", action="append", default=[], help="a spec per tensor, as float32[4,4] or cuda:float32[4]"
    )
    verb.add_argument(
        "--attribute",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of an attribute, as factor=2.0",
    )
    verb.add_argument(
        "--print-after",
        metavar="PASS",
        help='print the loops of a loop kernel after this pass, after several (A,B), or after "all"',
    )
    verb.add_argument(
        "--time-passes", action="store_true", help="print what each pass of the loop compiler took"
    )
    verb.add_argument(
        "--derived",
        metavar="FORM",
        default="",
        help="with --print-after or --time-passes: the passes of a derived form, backward, checkpointed, "
        "saving, tangent or batched, then those of its kernel",
    )
    verb.add_argument(
        "--mesh",
        metavar="AXIS=DEVICES,...",
        help="also print what a call and its gradient move on a mesh, as data=4,model=2",
    )
    verb.add_argument(
        "--layout",
        action="append",
        default=[],
        metavar="AXIS,...",
        help="with --mesh, for each --input the mesh axis that splits each dimension, - for none, as data,-",
    )
    verb.add_argument("--json", action="store_true", help="print a list of facts about each operator as JSON")
    verb.set_defaults(verb="explain")


def run(options: argparse.Namespace) -> int:
    """Print the explanation of one operator, or of all that the module defines; return 0."""
    file, name = target(options)
    module = load(file)
    bound = [find_operator(name, module)] if name else operators(module)
    inputs = tuple(map(parse_spec, options.input))
    attributes = dict(map(parse_attribute, options.attribute))
    names = {argument.name for operator in bound for _, argument in operator.schema.attributes()}
    if set(attributes) - names:
        rule = f"must name an attribute: {', '.join(sorted(names)) or 'there are none'}"
        raise ArgumentValueError("--attribute", rule, repr(min(set(attributes) - names)))
    if options.json:
        with progress("running the passes"):
            rows = [facts(operator, inputs, attributes) for operator in bound]
        say_json(rows)
        return 0
    for number, operator in enumerate(bound):
        if options.print_after or options.time_passes:
            shown = (options.print_after, options.derived)
            for line in passes(operator, inputs, attributes, *shown, timed=options.time_passes):
                say(line)
        else:
            with progress(f"running the passes of {operator.name}"):
                text = explain(operator, inputs, attributes)
                lines = list(drawing(operator, inputs, attributes))
            say("\n".join([("\n" if number else "") + text, *lines]))
        if options.mesh is not None:
            say(f"\n{moved(operator, options.mesh, inputs, options.layout, attributes)}")
    return 0


def moved(
    bound: BoundOperator,
    mesh: str,
    inputs: tuple[Spec, ...],
    layouts: Sequence[str],
    attributes: Mapping[str, Any],
) -> Communication:
    """Return what a call with these inputs moves; a tensor without a layout is whole on each device."""
    if len(layouts) > len(inputs):
        rule = f"takes one for each --input, of which there are {len(inputs)}"
        raise ArgumentValueError("--layout", rule, str(len(layouts)))
    rows = [parse_layout(text) for text in layouts] + [None] * (len(inputs) - len(layouts))
    tensors = bound.schema.tensor_arguments
    absent = [None] * (len(tensors) - len(inputs))
    listed = [argument.type.is_list for argument in tensors]

    def given(values: Sequence[Any]) -> list[Any]:
        return [[x] if flag else x for flag, x in zip(listed, values, strict=False)] + absent

    result: Communication = bound.communication(
        parse_mesh(mesh), shapes=given(inputs), placements=given(rows), **attributes
    )
    return result


def parse_mesh(text: str) -> dict[str, int]:
    """Return the axes of ``name=devices,...``; raises ``ArgumentValueError`` for another text.

    >>> parse_mesh("data=4,model=2")
    {'data': 4, 'model': 2}
    """
    rows = [re.fullmatch(r"\s*(\w+)=(\d+)\s*", part) for part in text.split(",")]
    axes = {row[1]: int(row[2]) for row in rows if row is not None}
    if len(axes) < len(rows):
        raise ArgumentValueError("--mesh", "must have each axis once, as data=4,model=2", repr(text))
    return axes


def parse_layout(text: str) -> tuple[Any, ...]:
    """Return the layout that a text describes as :class:`Communication` prints it.

    >>> parse_layout("data*model,-")
    (('data', 'model'), None)
    """
    words = [word.strip() for word in text.strip("[] ").split(",") if word.strip()]
    return tuple(None if word == "-" else tuple(word.split("*")) for word in words)


def passes(
    bound: BoundOperator,
    inputs: tuple[Spec, ...],
    attributes: Mapping[str, Any],
    names: str | None,
    form: str = "",
    *,
    timed: bool,
) -> list[str]:
    """Return lines with the loops of an operator's loop kernel after the named passes, and with times.

    ``form``: a derived form, whose derivation comes first. Raises ``ArgumentValueError`` for an unknown pass
    or form, and for an operator without a loop kernel.
    """
    from ..loops.derive.pipelines import PIPELINES
    from ..loops.pipeline import PIPELINE
    from ..loops.runner import printer

    if form and form not in PIPELINES:
        raise ArgumentValueError("--derived", f"must be one of {', '.join(PIPELINES)}", repr(form))
    pass_names = [one.name for one in (*PIPELINES.get(form, ()), *PIPELINE)]
    unknown = {name.strip() for name in (names or "").split(",")} - {*pass_names, "all", ""}
    if unknown:
        rule = f"must be a pass ({', '.join(dict.fromkeys(pass_names))}) or all"
        raise ArgumentValueError("--print-after", rule, repr(min(unknown)))
    kernel: Any = next((k for k in bound.operator.kernels if isinstance(k, LoopKernelBase)), None)
    if kernel is None or not inputs:
        rule = "only loop kernels have passes" if kernel is None else "needs a spec for each tensor"
        examples = " ".join(f"--input '{example(rank)}'" for rank in ranks_of(bound.operator).values())
        hint = None if kernel is None else f"give them in order: {examples}"
        raise ArgumentValueError(bound.name, rule, where=bound.operator.origin, hint=hint)
    lines: list[str] = []
    seconds: list[tuple[str, float]] = []
    printing = printer(names or "", lines.append)

    def watch(one: Pass[Any], program: Program, took: float) -> None:
        printing(one, program, took)
        seconds.append((one.name, took))

    tensors, values = bound.schema.tensors_and_attributes(arguments_of(bound, inputs, attributes))
    steps = kernel.compile_watched(tensors, values, watch, form)
    if names and steps is not None:
        lines.append(f"# schedule={steps}")
    if timed:
        total = sum(took for _, took in seconds)
        lines += [f"{took * 1e3:9.2f} ms  {name}" for name, took in (*seconds, ("all passes", total))]
    return lines


def parse_attribute(text: str) -> tuple[str, Any]:
    """Return name and value of ``name=value``; a value that is not a Python literal is a string.

    >>> parse_attribute("sizes=[2, 3]"), parse_attribute("mode=sum")
    (('sizes', [2, 3]), ('mode', 'sum'))
    """
    name, sign, value = text.partition("=")
    if not sign:
        raise ArgumentValueError("--attribute", "must look like factor=2.0", repr(text))
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def parse_spec(text: str) -> Spec:
    """Return the spec that ``[device:]dtype[sizes]`` describes.

    >>> str(parse_spec("float32[2,3]"))
    'float32[2, 3]'
    """
    match = re.fullmatch(r"(?:(\w+):)?(\w+)\[([\d, ]*)\]", text.strip())
    if match is None:
        raise ArgumentValueError("--input", "must look like float32[4,4] or cuda:float32[4]", repr(text))
    sizes = tuple(int(size) for size in match[3].split(",") if size.strip())
    return Spec(sizes, dtype(match[2]), match[1] or "cpu")
