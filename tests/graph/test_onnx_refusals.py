"""Operators that ONNX cannot hold, and nodes that do not fit an operator: errors name the operator and the rule."""

import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.call.operator import Operator
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from polyop.core.parse import parse
from polyop.graph.onnx_attributes import arguments_of, inputs_and_attributes, refusal

REFUSED = [  # schema, words
    ("f(Tensor x, complex c) -> Tensor", "argument c: ONNX attributes are ints, floats, bools, strings and "),
    ("f(Tensor x, Device d) -> Tensor", "argument d: ONNX attributes are ints, floats, bools, strings and "),
    ("f(Tensor x, int[][] rows) -> Tensor", "argument rows: ONNX attributes are at most lists of values"),
    ("f(Tensor x, int?[] rows) -> Tensor", "argument rows: a list attribute of ONNX has no None in it"),
    ("f(Tensor?[] xs) -> Tensor", "argument xs: ONNX inputs are tensors, optional tensors and lists of"),
    ("f(Tensor(a!) x) -> ()", "argument x: values of an ONNX graph are never written in place"),
    ("f(Tensor x) -> Tensor[]", "results: a node of ONNX has a fixed number of outputs"),
]


@pytest.mark.parametrize(("schema", "message"), REFUSED)
def test_schemas_that_onnx_cannot_hold(schema, message):
    operator = Operator(parse(f"onnx_refused::{schema}"), lambda *_: (), (), origin="ops.py:3")
    refused = refusal(operator)
    assert isinstance(refused, UnsupportedError)
    assert f"onnx_refused::f: {message}" in str(refused) and "defined at ops.py:3" in str(refused)


@pytest.fixture(scope="session")
def op():
    schema = "onnx_refused::g(Tensor x, Tensor? b, Tensor[] more, int n, bool t=True, Scalar s=1) -> Tensor"
    return polyop.operator(schema, lambda x, *_: x, infer="x").operator


@pytest.mark.parametrize(
    ("n", "s", "kind", "message"),
    [
        (1, True, ArgumentValueError, "g: argument s: ONNX has no bool, and a Scalar does not say"),
        ("a", 1, ArgumentTypeError, "g: argument n: must be int, but got 'a'"),
    ],
)
def test_values_that_onnx_cannot_hold(op, n, s, kind, message):
    with pytest.raises(kind, match=message):
        inputs_and_attributes(op, ("x", None, [], n, True, s))


def test_arguments_survive_the_conversion_to_a_node(op):
    inputs, node_attributes = inputs_and_attributes(op, ("x", "b", ["m", "k"], 3, False, 0.1))
    assert inputs == ["x", "b", "m", "k"]
    assert node_attributes | {"s": 0} == {"b": 1, "more": 2, "n": 3, "t": 0, "s": 0}
    assert node_attributes["s"].dtype == np.float64 and node_attributes["s"] == 0.1
    assert arguments_of(op, {**node_attributes, "s": 0.1}, 4) == [1, 1, [1, 1], 3, False, 0.1]


@pytest.mark.parametrize(
    ("node_attributes", "inputs", "message"),
    [
        ({"b": 0, "more": 0}, 1, "the node must have an attribute n, int, but got a node without it"),
        ({"more": 0, "n": 1}, 1, "an attribute b that says how many inputs it takes, but got no such"),
        ({"b": 2, "more": 0, "n": 1}, 3, "an attribute b that says how many inputs it takes, but got 2"),
        ({"b": 0, "more": -1, "n": 1}, 1, "an attribute more that says how many inputs it takes, but got -1"),
        ({"b": 1, "more": 1, "n": 1}, 2, "takes 3 tensors with these attributes, but got a node with 2 inp"),
        ({"b": 0, "more": 0, "n": 1.5}, 1, "argument n: must be int, but got 1.5"),
        ({"b": 0, "more": 0, "n": 1, "t": 3}, 1, "argument t: must be bool, but got 3"),
    ],
)
def test_nodes_that_do_not_fit(op, node_attributes, inputs, message):
    with pytest.raises(ArgumentTypeError) as caught:
        arguments_of(op, node_attributes, inputs)
    assert message in str(caught.value) and "onnx_refused::g" in str(caught.value)


@pytest.fixture(scope="session")
def multiply():
    return polyop.operator("onnx_refused::h(Tensor x, int n) -> Tensor", lambda x, n: x * n, infer="x")


def test_without_onnx_runtime():
    program = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from polyop.graph.onnx import session_options\n"
        "session_options()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "HostError: onnxruntime: could not be imported" in done.stderr
    assert "pip install onnxruntime" in done.stderr


class TestSessions:
    """Errors as ONNX Runtime and PyTorch's exporter show them."""

    @pytest.fixture(autouse=True)
    def installed(self):
        for name in ("onnx", "onnxscript", "onnxruntime", "torch"):
            pytest.importorskip(name, reason=f"not run: {name} is not installed")

    def session(self, op, name="h", inputs=("x",), **attributes):
        import onnx
        import onnxruntime as ort

        from polyop.graph.onnx import session_options

        node = onnx.helper.make_node(name, list(inputs), ["y"], domain="onnx_refused", **attributes)
        kind = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [None])
        values = [onnx.helper.make_value_info(each, kind) for each in ("x", "y")]
        graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
        imports = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("onnx_refused", 1)]
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        return ort.InferenceSession(model.SerializeToString(), session_options(options))

    def test_an_attribute_that_the_schema_does_not_have_is_ignored(self):
        op = polyop.operator("onnx_refused::u(Tensor x, int n=2) -> Tensor", lambda x, n: x * n, infer="x")
        [output] = self.session(op, "u", N=5).run(None, {"x": np.ones(2, np.float32)})
        assert output.tolist() == [2, 2]

    @pytest.mark.parametrize(
        ("node", "message"),
        [
            ({}, "polyop: ArgumentTypeError: onnx_refused::h: the node must have an attribute n, int"),
            ({"n": "a"}, "argument n: must be int, but got 'a'"),
            ({"inputs": ("x", "x"), "n": 1}, "takes 1 tensors with these attributes, but got a node with 2"),
        ],
    )
    def test_a_node_that_does_not_fit(self, multiply, node, message):
        with pytest.raises(Exception, match=message):
            self.session(multiply, **node)
        [output] = self.session(multiply, n=3).run(None, {"x": np.ones(2, np.float32)})
        assert output.tolist() == [3, 3]

    def test_a_kernel_that_fails(self, tmp_path):
        source = tmp_path / "fails.c"
        source.write_text(
            "#include <stdint.h>\n"
            "int fails(int n, void **p, int *d, int64_t **s, const char **t, void *stream, void *extra) {\n"
            "  (void)n; (void)p; (void)d; (void)s; (void)t; (void)stream; (void)extra;\n"
            "  return 17;\n}\n"
        )
        op = polyop.operator("onnx_refused::k(Tensor x) -> Tensor", f"{source}:fails", infer="x")
        running = self.session(op, "k")
        with pytest.raises(Exception, match=r"polyop: KernelError: onnx_refused::k: .*17"):
            running.run(None, {"x": np.ones(2, np.float32)})

    def test_an_infer_rule_that_fails(self):
        def infer(x):
            if x.shape[0] > 2:
                raise ValueError("at most two, please")
            return x

        op = polyop.operator("onnx_refused::i(Tensor x) -> Tensor", lambda x: x, infer=infer)
        running = self.session(op, "i")
        with pytest.raises(Exception, match="InferError: onnx_refused::i: .*at most two, please"):
            running.run(None, {"x": np.ones(3, np.float32)})

    def test_export_of_a_size_as_attribute(self):
        from onnxscript import ir

        from polyop.graph.onnx import translation_table

        schema = "onnx_refused::s(Tensor x, SymInt[] n) -> Tensor"
        op = polyop.operator(schema, lambda x, n: x * n[0], infer="x")
        translate = translation_table(op)[op.torch]
        message = "onnx_refused::s: argument n: must be known when the model is exported: ONNX attributes are"
        with pytest.raises(ArgumentValueError, match=message):
            translate(ir.Value(name="x"), [ir.Value(name="n")])

    def test_the_table_takes_operators_that_onnx_can_hold(self):
        from polyop.graph.onnx import translation_table

        op = polyop.operator("onnx_refused::c(Tensor x, int[][] c) -> Tensor", lambda x, c: x, infer="x")
        with pytest.raises(
            UnsupportedError, match="onnx_refused::c: argument c: ONNX attributes are at most"
        ):
            translation_table(op)
        assert op.torch not in translation_table()
        with pytest.raises(ArgumentTypeError, match="translation_table: takes operators, but got <built-in"):
            translation_table(len)
