import dataclasses
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyop.core.errors import SchemaError
from polyop.core.parse import parse
from polyop.core.schema import MISSING, Argument, Return, Schema, Type, format_default


@pytest.mark.parametrize(
    "text",
    [
        "demo::f(Tensor x) -> Tensor",
        "demo::f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        "f() -> ()",
        'n::f(Tensor? x=None, int[2] k=[3, 3], float alpha=1.0, bool b=True, str s="a\\"b", int[] z=[1, 2]) -> (Tensor out, Tensor)',
        "n::f(Tensor[] xs, Tensor?[] ys, int[][] rows, ScalarType? dtype=None, float eps=1e-08) -> Tensor",
        "n::f(Tensor(a) x, Tensor(a|b) y, Tensor(b!)[] z) -> Tensor(a)",
        "n::f(Tensor(a!) x, Tensor(aa!) y) -> (Tensor(aa!), Tensor(a!))",
        "n::f(Tensor(a0!) x, Tensor(a1!) y) -> (Tensor(a1!), Tensor(a0!))",
    ],
)
def test_text_round_trips(text):
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(Tensor x, Tensor x) -> Tensor", "names two arguments 'x'"),  # PyTorch accepts it
        ("f(int b=0x10) -> ()", "has a number that is not decimal"),  # PyTorch reads 0
        ("f(Tensor lambda) -> Tensor", "Python keyword 'lambda'"),  # PyTorch accepts it
        ("f(Tensor x", "needs ',' or '\\)'"),
        ("f(Tensor x,) -> Tensor", "without an argument"),
        ("f(Tensor x) -> Tensor more", "ends before this"),
        ("f(Foo x) -> Tensor", "does not know the type 'Foo'"),
        (
            "f(Tensor x, double a) -> Tensor",
            "does not know the type 'double', which is float here",
        ),
        ("f(float a=inf) -> Tensor", "needs a default value"),
        ("f(Tensor x) -> int", "returns tensors"),
        ("f(Tensor x=1) -> Tensor", "only None is possible"),
        ("f(int x=None) -> Tensor", "not optional"),
        ("f(Tensor x, *, *, int y) -> Tensor", "second '\\*'"),
        ("f(int a=1, int b) -> Tensor", "'b' without a default after 'a'"),
        ("f(bool a=1.5) -> Tensor", "gives bool the default 1.5"),
        ("f(Tensor x) -> Tensor(a!)", "of no argument"),
        ("f(Tensor(A!) x) -> Tensor", "not of the form"),
        ("f(Tensor(a b!) x) -> Tensor", "not of the form"),
        ("f(Tensor(a!) x) -> Tensor(aa!)", "of no argument"),
        ("f(Tensor(a!) x) -> Tensor(a0!)", "of no argument"),
        ("f(Tensor x; int y) -> Tensor", "character that no schema has"),
        ("", "needs the operator's name"),
    ],
)
def test_errors_say_why_and_where(text, message):
    with pytest.raises(SchemaError, match=message) as excinfo:
        parse(text)
    assert "^" in str(excinfo.value).splitlines()[-1]


def test_parts():
    schema = parse("n::f.o(Tensor(a!) x, Tensor[] ys, *, float alpha=2) -> (Tensor(a!), Tensor)")
    assert (schema.namespace, schema.name, schema.overload) == ("n", "f", "o")
    assert schema.mutates and schema.fresh == (1,) and schema.alias_of(0) == 0
    assert schema.tensor_positions == (0, 1)
    assert schema.arguments[2] == Argument("alpha", Type("float"), 2.0, keyword_only=True)
    assert schema.arguments[0].default is MISSING


names = st.text(string.ascii_lowercase + "_", min_size=1, max_size=6).filter(
    lambda s: s.isidentifier() and not __import__("keyword").iskeyword(s)
)
scalars = {
    "int": st.integers(-(2**40), 2**40),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "str": st.text(
        string.printable.replace("\n", "").replace("\r", "").replace("\x0b", "").replace("\x0c", ""),
        max_size=8,
    ),
}


@st.composite
def schemas(draw):
    chosen = draw(st.lists(names, max_size=5, unique=True))
    keyword_from = draw(st.integers(0, len(chosen)))
    defaults_from = draw(st.integers(0, len(chosen)))
    arguments = []
    for i, name in enumerate(chosen):
        keyword_only = i >= keyword_from
        base = draw(st.sampled_from(["Tensor", *scalars]))
        has_default = i >= defaults_from or (keyword_only and draw(st.booleans()))
        if base == "Tensor":
            suffixes = ("?",) if has_default else draw(st.sampled_from([(), ("?",), ("[]",), ("?", "[]")]))
            arguments.append(
                Argument(name, Type("Tensor", suffixes), None if has_default else MISSING, keyword_only)
            )
            continue
        is_list = draw(st.booleans())
        value = (
            draw(st.lists(scalars[base], max_size=3).map(tuple) if is_list else scalars[base])
            if has_default
            else MISSING
        )
        arguments.append(Argument(name, Type(base, ("[]",) if is_list else ()), value, keyword_only))
    returns = tuple(
        Return(Type("Tensor"), draw(st.sampled_from(["", "out"])) if n == 1 else "")
        for n in [draw(st.integers(0, 3))]
        for _ in range(n)
    )
    return Schema(draw(names), draw(names), tuple(arguments), returns)


@given(schemas())
def test_printing_then_parsing_gives_the_same_schema(schema):
    assert parse(str(schema)) == schema


@given(schemas())
def test_pytorch_accepts_what_polyop_accepts(schema):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    # without defaults: PyTorch takes none for lists of strings, and no denormal numbers
    bare = dataclasses.replace(
        schema, arguments=tuple(dataclasses.replace(a, default=MISSING) for a in schema.arguments)
    )
    parsed = torch._C.parse_schema(str(bare))
    assert [a.name for a in parsed.arguments] == [a.name for a in schema.arguments]


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_raises_schema_error(text):
    try:
        schema = parse(text)
    except SchemaError as problem:
        assert "schema: " in str(problem)
    else:
        assert parse(str(schema)) == schema


def test_strings_are_quoted_so_that_they_parse_back():
    assert format_default('a"b\\') == '"a\\"b\\\\"'
