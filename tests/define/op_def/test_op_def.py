"""op_def and op_doc files: what they say, what is wrong with one, and what is written from them."""

import pathlib
import re

import pytest

from polyop.core.errors import ArgumentValueError
from polyop.define.module.builder import CustomOpBuilder
from polyop.define.op_def.read import read_op_defs, read_op_docs, with_docs
from polyop.define.op_def.write import classes, definitions, functions

pytest.importorskip("yaml", reason="PyYAML is not installed")
SOURCES = pathlib.Path(__file__).parents[2] / "sources"
FILES = [str(SOURCES / name) for name in ("graph_add.yaml", "graph_norm.yaml", "graph_loop.yml")]
DOC = str(SOURCES / "graph_add_doc.yaml")


def defined():
    found = read_op_defs(FILES)
    return with_docs(found, read_op_docs([DOC], [one.name for one in found]))


def schema(text):
    """The schema of the only operator of a file with these lines, in which x is a tensor."""
    path = pathlib.Path("one.yaml")
    path.write_text(text)
    (one,) = read_op_defs([str(path)])
    return str(one.schema)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def operator(args="x: {dtype: tensor}", rest="", returns="y: {dtype: tensor}"):
    return f"op:\n  args:\n    {args}\n  returns:\n    {returns}\n  {rest}\n"


def test_schemas():
    assert [str(one.schema) for one in defined()] == [
        "add4(Tensor input, Tensor other, Scalar alpha=1) -> Tensor",
        "add_three(Tensor input, Tensor other, Scalar alpha=1) -> Tensor",
        (
            "batch_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor? running_mean=None, "
            "Tensor? running_var=None, bool training=False, float momentum=0.1, float eps=1e-05) "
            "-> (Tensor, Tensor, Tensor)"
        ),
        "inplace_add(Tensor(a!) input, Tensor other) -> Tensor(a!)",
        'rows(Tensor x, int[] lengths, float? scale=None, str mode="sum") -> Tensor',
        "total(Tensor[] xs) -> Tensor[]",
        "first(Tensor x, Tensor count) -> Tensor",
        "mix(Tensor x, Tensor y) -> Tensor",
    ]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("n: {dtype: int}", "int n"),
        ("n: {dtype: 'tuple[int]', default: '(1, 2)'}", "int[] n=[1, 2]"),
        ("n: {dtype: 'list[float]', default: None}", "float[]? n=None"),
        ("n: {dtype: tuple}", "Scalar[] n"),
        ("n: {dtype: 'list[tensor]', type_cast: 'tuple[tensor], tensor'}", "Tensor[] n"),
        ("n: {dtype: bool, default: True, prim_init: True}", "bool n=True"),
        ("n: {dtype: str, default: half}", 'str n="half"'),
        ("n: {dtype: int, arg_handler: dtype_to_type_id}", "ScalarType n"),
        ("n: {dtype: 'tuple[int]', arg_handler: to_kernel_size, default: 2}", "int[2] n=2"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_arguments(entry, expected):
    found = schema(operator(f"x: {{dtype: tensor}}\n    {entry}"))
    assert found == f"op(Tensor x, {expected}) -> Tensor"


@pytest.mark.usefixtures("folder")
def test_a_definition_of_mindspore_with_all_keys_is_read():
    rest = """args_signature: {}
  function: {name: op}
  class: {name: Op}
  view: False
  graph_view: False
  dispatch: {enable: True, Ascend: OpAscend}
  labels: {side_effect_mem: False}
  bprop_expander: True"""
    assert schema(operator(rest=rest)) == "op(Tensor x) -> Tensor"


@pytest.mark.usefixtures("folder")
def test_what_is_written_is_marked():
    text = operator(
        "x: {dtype: tensor}\n    y: {dtype: tensor}",
        "args_signature: {rw_write: 'y, x'}",
        "p: {dtype: tensor, inplace: y}\n    q: {dtype: tensor}",
    )
    assert schema(text) == "op(Tensor(a!) x, Tensor(b!) y) -> (Tensor(b!), Tensor)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op: 3", ": op: must be a mapping of names, but got 3"),
        ("op: {returns: {}}", "op: needs the key 'args'"),
        (
            operator(rest="retuns: 1"),
            r"op.retuns: is not a key here; allowed are args, .*\n  did you mean returns?",
        ),
        (operator("x: {}"), "op.args.x: needs the key 'dtype'"),
        (operator("x: {dtype: tensr}"), "op.args.x.dtype: must be one of int, .*tensor.*but got 'tensr'"),
        (operator("x: {dtype: tensor, type_cast: str}"), "x.type_cast: must be one of .*but got 'str'"),
        (operator("x: {dtype: tensor, prim_init: 1}"), "x.prim_init: must be True or False, but got 1"),
        (operator("x: {dtype: tensor, arg_handler: f}"), "x.arg_handler: must be one of dtype_to_type_id"),
        (operator("1x: {dtype: tensor}"), "op.args.1x: must be a Python identifier"),
        (operator("class: {dtype: tensor}"), "op.args.class: must be a Python identifier"),
        (operator("x: {dtype: int}"), "op.args: needs a tensor"),
        (
            operator("x: {dtype: tensor}\n    n: {dtype: int, default: half}"),
            "n.default: must be a value of int",
        ),
        (operator("x: {dtype: tensor}\n    n: {dtype: int, default: 1.5}"), "op: gives no valid signature"),
        (operator("x: {dtype: tensor, default: None}\n    n: {dtype: int}"), "'n' without a default"),
        (operator(returns="y: {dtype: int}"), "op.returns.y.dtype: must be one of tensor"),
        (operator(returns="y: {dtype: tensor, inplace: z}"), "y.inplace: must be one of x, but got 'z'"),
        (
            operator(returns="y: {dtype: 'tuple[tensor]'}\n    z: {dtype: tensor}"),
            "op.returns.y: must be the only return",
        ),
        (operator(rest="args_signature: {rw_write: z}"), "op.args_signature.rw_write: must be one of x"),
        (
            operator("x: {dtype: tensor}\n    n: {dtype: int}", "args_signature: {rw_write: n}"),
            "op.args_signature.rw_write: must name tensors, but got 'n'",
        ),
        (operator(rest="args_signature: {dtype_group: 'x'}"), r"dtype_group: must be groups .* as \(a, b\)"),
        (
            operator(rest="args_signature: {dtype_group: '(x, z)'}"),
            "dtype_group: must be one of x, but got 'z'",
        ),
        (operator(rest="view: True"), "op.view: must be False"),
        (operator(rest="dispatch: {NPU: F}"), "dispatch.NPU: is not a key here; allowed are enable"),
        (operator(rest="function: {name: 'a b'}"), "op.function.name: must be a Python identifier"),
        (
            operator() + operator().replace("op:", "other:") + "  function: {name: op}\n",
            "its function 'op' is also that of",
        ),
        ("op: [", "is not valid YAML"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_name_file_operator_and_key(text, message):
    pathlib.Path("one.yaml").write_text(text)
    with pytest.raises(ArgumentValueError, match=f"(?s)one.yaml.*{message}"):
        read_op_defs(["one.yaml"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add: {description: f}", "add: is not an operator of the op_def files; they have op$"),
        ("op: {descripton: f}", "op.descripton: is not a key here"),
        ("op: {description: 3}", "op.description: must be a text"),
        ("op: {args: {x: 3}}", "op.args: must be a text, or a text for each name"),
        (operator(), "op: is the definition of an operator: pass this file as op_def"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_of_texts(text, message):
    pathlib.Path("doc.yaml").write_text(text)
    with pytest.raises(ArgumentValueError, match=f"doc.yaml: {message}"):
        read_op_docs(["doc.yaml"], ["op"])


@pytest.mark.parametrize("argument", ["op_def", "op_doc"])
@pytest.mark.usefixtures("folder")
def test_a_file_that_is_no_yaml_or_is_not_there(argument):
    with pytest.raises(ValueError, match=f"'{argument}': Invalid file extension.*but got 'ops.txt'"):
        CustomOpBuilder("op", "a.cc", **{argument: "ops.txt"}).get_sources()
    with pytest.raises(FileNotFoundError, match=f"'{argument}': there is no such file, but got 'ops.yaml'"):
        CustomOpBuilder("op", "a.cc", **{argument: ["ops.yaml"]}).get_sources()


def test_the_three_files(tmp_path, golden):
    builder = CustomOpBuilder("op", "a.cc", op_def=FILES, op_doc=DOC, build_dir=str(tmp_path))
    (source,) = builder._get_op_def()
    assert builder.get_sources() == ["a.cc", source]
    written = sorted(tmp_path.rglob("*.*"))
    assert [str(path.relative_to(tmp_path)) for path in written] == [
        f"op_auto_generate/{name}" for name in ("gen_custom_ops_def.cc", "gen_ops_def.py", "gen_ops_prim.py")
    ]
    for path in written:
        golden(f"define/{path.name}", path.read_text())
    before = [path.stat().st_mtime_ns for path in written]
    builder._get_op_def()
    assert before == [path.stat().st_mtime_ns for path in written]


@pytest.mark.usefixtures("folder")
def test_disabled_functions_and_classes_are_left_out():
    pathlib.Path("one.yaml").write_text(operator(rest="function: {disable: True}\n  class: {disable: True}"))
    found = read_op_defs(["one.yaml"])
    assert "def op" not in functions("m", found)
    assert "class Op" not in classes(found)
    assert re.search(r'/\*function\*/ "op"', definitions("m", found))
