"""The steps of test_torchair.py, run in another process: it prints a JSON object with an entry per step."""

import itertools
import json
import pathlib
import sys
import traceback

import torch
from google.protobuf import json_format

import polyop
from polyop.graph import torchair as converters
from polyop.graph.vocabulary import ATTRIBUTE_TYPES, DTYPE_NUMBERS, NAMED_SETS

table = converters.rehearse()
from torchair.ge import DataType, TensorSpec  # noqa: E402 - torchair can be imported from here on
from torchair.ge._ge_graph import Data, GeGraph, default_ge_graph  # noqa: E402

EVERY = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(EVERY.parent))
STEPS = {}


def step(function):
    STEPS[function.__name__] = function
    return function


def nodes(build):
    """Return the nodes that ``build`` adds to an empty graph, after those for its inputs."""
    graph = GeGraph()
    with default_ge_graph(graph):
        index = itertools.count()
        build(lambda dtype=0: Data(index=next(index), dtype=dtype, shape=[2, 3], placement="NPU"))
    read_back = type(graph._model)()
    read_back.ParseFromString(graph.SerializeToString())
    operations = json_format.MessageToDict(read_back.graph[0], preserving_proto_field_name=True)["op"]
    return [op for op in operations if op["type"] != "Data"]


def error(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "no error"


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


@step
def vocabulary():
    """Return the names that only torchair has, or only the tables."""
    from torchair.ge import attr
    from torchair.ge._ge_graph import TensorType

    numbers = {name: value for name, value in vars(DataType).items() if name.startswith("DT_")}
    sets = {name for name in vars(TensorType) if name.startswith("TT_")} - {"TT_UNKNOWN"}
    builders = {name for name, value in vars(attr).items() if type(value).__name__ == "_Attr"}
    return {
        "dtypes": sorted(numbers.items() ^ DTYPE_NUMBERS.items()),
        "sets": sorted(sets ^ set(NAMED_SETS.values())),
        "builders": sorted(builders ^ ({row.builder for row in ATTRIBUTE_TYPES.values()} - {""})),
    }


@step
def generated():
    import every_macro as ops

    def build(data):
        x = data()
        ops.Tensors(x, None, x, [x, x])
        ops.Tensors(x, xs=[x], index=[0, 1], mask=x, bias=2.5, node_name="chosen", dependencies=[x])
        ops._Lists([x, x], size_of_ys=2, sizes=[3, 4])
        ops.Attributes(x, last=1, name="n")
        ops.Attributes(
            x, last=2, name='q"', axis=3, eps=0.0, slope=0.5, flag=False, mode="m", dst=DataType.DT_BF16,
            wide=DataType.DT_INT8, ints=[7], none=[8], floats=[1e-8], flags=[False], words=["w"],
            dtypes=[DataType.DT_BOOL], table=[[5]], weights=[[0.5], []], lambda_changed_as_is_python_key=2.0,
            x_changed_as_duplicate_with_input=9,
        )  # fmt: skip

    return nodes(build)


@step
def missing_inputs():
    import every_macro as ops

    return [
        error(nodes, lambda data: ops.Tensors(data())),
        error(nodes, lambda data: ops.Tensors(data(), None, data(), [1])),
        error(nodes, lambda data: ops._Lists([data()], sizes=[1])),
    ]


def defined(schema, infer):
    return polyop.operator(f"graph_tests::{schema}", lambda *arguments: arguments[0], infer=infer)


def convert(overload, *arguments, outputs, **named):
    return overload._ge_converter(*arguments, meta_outputs=outputs, **named)


@step
def converter_by_hand():
    from torchair.ge_concrete_graph.fx2ge_converter import register_fx_node_ge_converter
    from torchair.ge_concrete_graph.utils import dtype_promote

    op = defined("by_hand(Tensor self, Tensor other) -> Tensor", "self")
    add_custom = converters.load_header(str(EVERY.parent / "add_custom.h"))["AddCustom"]

    @register_fx_node_ge_converter(torch.ops.graph_tests.by_hand.default)
    def convert_custom_op(input1, input2, out=None, meta_outputs=None):
        input1, input2 = dtype_promote(input1, input2, target_dtype=meta_outputs.dtype)
        return add_custom(input1, input2)

    first = nodes(
        lambda data: convert(op.torch_overload, data(), 2.5, outputs=meta(2, 3, dtype=torch.float16))
    )

    @converters.register_fx_node_ge_converter(op)
    def again(input1, input2, meta_outputs=None):
        assert isinstance(meta_outputs, TensorSpec)
        return add_custom(*converters.dtype_promote(input1, input2, target_dtype=meta_outputs.dtype))

    second = nodes(
        lambda data: convert(op.torch_overload, data(), 2.5, outputs=meta(2, 3, dtype=torch.float16))
    )
    return [first, second]


@step
def converter_of_a_schema():
    op = defined(
        "many(Tensor x, Tensor? bias, Tensor[] xs, int n, ScalarType dtype, *, float eps=1e-8, int[] lambda_=[1]) "
        "-> (Tensor, Tensor)",
        lambda *arguments: (arguments[0], arguments[0]),
    )
    many = converters.register(op, promote=["bias"])

    def build(data):
        x, half = data(), data(DataType.DT_FLOAT16)
        outputs = [meta(2, 3), meta(2, 3)]
        results = convert(op.torch_overload, x, half, [x, x], 5, torch.bfloat16, eps=0.25, outputs=outputs)
        assert isinstance(results, tuple) and len(results) == 2
        many(x, None, [x], 1, torch.int32)

    return nodes(build)


@step
def converter_of_a_list():
    op = defined("pieces(Tensor x) -> Tensor[]", lambda x: [x, x])
    converters.register(op, "Pieces")
    return nodes(lambda data: convert(op.torch_overload, data(), outputs=[meta(2), meta(2), meta(2)]))


@step
def converter_with_names_in_the_way():
    op = defined(
        "clash(Tensor[] y, Tensor[] attr, *, int node_name=1) -> Tensor[]", lambda y, attr, n: list(y)
    )
    converters.register(op, promote=["attr"])

    def build(data):
        x, half = data(), data(DataType.DT_FLOAT16)
        convert(op.torch_overload, [x, x], [half], node_name=4, outputs=[meta(2), meta(2)])

    return nodes(build)


@step
def exported_model():
    op = defined("exported(Tensor x, Tensor y, float k=1.0) -> Tensor", lambda x, y, k: x)
    converters.register(op, "AddCustom", promote=("y",))

    class Model(torch.nn.Module):
        def forward(self, a, b):
            return torch.ops.graph_tests.exported(a, b, 2.5)

    x = torch.rand(2, 3)
    table.dynamo_export(x, x.half(), model=Model(), export_path="exported", dynamic=False)
    return (pathlib.Path("exported") / "dynamo.pbtxt").read_text()


@step
def refusals():
    op = defined("refused(Tensor x, int n) -> Tensor", lambda x, n: x)
    converter = converters.register(op)
    malformed = pathlib.Path("malformed.h")
    malformed.write_text("REG_OP(A)\n.GRAPH(g).OP_END_FACTORY_REG(A)")
    return {
        "symbolic": error(nodes, lambda data: converter(data(), data(DataType.DT_INT64))),
        "promote": error(converters.register, op, promote=["n"]),
        "no operator": error(converters.register_fx_node_ge_converter, "graph_tests::refused"),
        "skipped": error(converters.load_header, str(malformed)),
    }


def result(function):
    try:
        return function()
    except Exception:
        return {"failed": traceback.format_exc()}


if __name__ == "__main__":
    print("RESULTS " + json.dumps({name: result(function) for name, function in STEPS.items()}))
