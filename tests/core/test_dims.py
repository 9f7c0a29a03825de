"""``dims=``: the grammar and its errors, what a call is matched with, and the shapes of outputs."""

import dataclasses
import pathlib
import pickle
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyop.core.dims.dims import Dims, elementwise
from polyop.core.dims.entry import Binary, Entry, Name, Number, evaluate
from polyop.core.dims.text import Text, Word
from polyop.core.errors import ArgumentTypeError, InferError, PolyopError, SchemaError
from polyop.core.parse import parse

LINEAR = "ns::f(Tensor x, Tensor w) -> Tensor"
SPLIT = "ns::f(Tensor x, Tensor w) -> (Tensor, Tensor)"
ATTRIBUTES = "ns::f(Tensor x, int k, float a, int[] ks, int? o=None) -> Tensor"
LIST = "ns::f(Tensor[] xs, Tensor? y=None) -> Tensor"


def dims_of(schema, text, **claims):
    return Dims.parse(text, parse(schema), **claims)


@pytest.mark.parametrize(
    ("schema", "text", "claims"),
    [
        (LINEAR, "b i, i o -> b o", {"parallel": "b o", "sum": "i"}),
        (SPLIT, "b n, n -> b n, n", {"sum": "b"}),
        (SPLIT, "b n, m -> b, b", {"max": "n", "min": "m", "parallel": "b"}),
        (LINEAR, "... n, n -> ... n", {"parallel": "..."}),
        (LINEAR, "... n, n ->", {"sum": "... n"}),
        (LINEAR, "h w, 3 _ -> h-2 w*2//3", {"halo": {"h": (0, 2), "w": ("w//2", 1)}}),
        (ATTRIBUTES, "n -> n*k (n-k)//(k+1) n/k n-(k-1) n//(k*2)", {}),
        (ATTRIBUTES, "n k -> n", {"parallel": "n", "halo": {}}),
        (LIST, "... n 1*, -> n", {"parallel": "n"}),
        (LIST, "*, _ ->", {}),
        ("ns::f(Tensor(a!) x, Tensor y) -> Tensor(a!)", "n, k ->", {"parallel": "n"}),
        ("ns::f(int n, SymInt m) -> Tensor", "-> n+m", {}),
        ("ns::f(Tensor x) -> Tensor", "->", {}),
    ],
)
def test_the_text_round_trips(schema, text, claims):
    dims = dims_of(schema, text, **claims)
    assert dims.text == text
    assert dims.claims() == {keyword: value for keyword, value in claims.items() if value}
    written = eval(f"dict({dims})")
    again = dims_of(schema, written.pop("dims"), **written)
    assert again == dims == pickle.loads(pickle.dumps(dims)) and hash(again) == hash(dims)


def test_parts():
    dims = dims_of(
        "ns::f(Tensor x, int k, Tensor[] ws, Tensor(a!) z) -> (Tensor out, Tensor)",
        " ...  b i ,\n i _ 3*, b -> b, b i-k",
        parallel="b",
        sum="i",
        halo={"i": ["k//2", 1]},
    )
    assert dims.inputs == (
        Entry("argument x", (Name("b"), Name("i")), ellipsis=True),
        Entry("argument ws", (Name("i"), None, Number(3)), each=True),
        Entry("argument z", (Name("b"),), written=True),
    )
    assert dims.outputs == (
        Entry("output out", (Name("b"),)),
        Entry("output 1", (Name("b"), Binary("-", Name("i"), Name("k")))),
    )
    assert dims.parallel == ("b",) and dims.reductions == {"i": "sum"} and dims.whole == ("...",)
    assert dims.halo == {"i": (Binary("//", Name("k"), Number(2)), Number(1))}
    assert dims.halo_widths("i", {"i": 9}, {"k": 5}) == (2, 1)
    assert dims.inputs[0].axis("b") == -2 and dims.inputs[0].axis("k") is None
    assert str(dims) == (
        'dims="... b i, i _ 3*, b -> b, b i-k", parallel="b", sum="i", halo={"i": ("k//2", 1)}'
    )


def test_names_are_in_the_order_of_the_entries():
    assert dims_of(LINEAR, "b i, i o -> b o", parallel="o b") == dims_of(
        LINEAR, "b i, i o -> b o", parallel="b o"
    )


def test_elementwise():
    dims = elementwise(parse("ns::f(Tensor a, float s, Tensor[] bs, Tensor? c=None) -> (Tensor, Tensor)"))
    assert str(dims) == 'dims="..., ...*, ... -> ..., ...", parallel="..."'
    sizes = dims.match([(2, 3), [(2, 3), (2, 3)], None])
    assert dims.output_shapes(sizes) == ((2, 3), (2, 3))
    assert str(elementwise(parse("ns::f() -> ()"))) == 'dims="->"'


def test_an_attribute_gives_the_size_of_a_dimension():
    dims = dims_of("ns::f(Tensor x, Tensor w, int k) -> Tensor", "n, k -> n-k+1")
    assert dims.output_shapes(dims.match([(9,), (3,)], {"k": 3}), {"k": 3}) == ((7,),)
    with pytest.raises(InferError, match="dimension k is 4 in argument w and 3 in attribute k"):
        dims.match([(9,), (4,)], {"k": 3})


# text, claims, message; the schema is LINEAR unless the row has another one
ENTRY_ERRORS = [
    (LINEAR, "b i -> b o", "has 1 entry for 2 tensor arguments x, w", 4),
    (LINEAR, "b i, i o, q -> b o", "has 3 entries for 2 tensor arguments x, w", 10),
    (LINEAR, "b i, i o -> b o, b", "has 2 entries for 1 new output", 17),
    (SPLIT, "b i, i o -> b o", "has 1 entry for 2 new outputs", 15),
    ("ns::f() -> Tensor", "n -> 3", "has 1 entry for no tensor arguments", 0),
    (LINEAR, "b i, i o b o", "needs '->' between the entries of arguments and outputs", 12),
    (LINEAR, "b i, i o -> b -> o", "has a second '->'", 14),
    (LINEAR, "b i, i+1 o -> b o", "needs a name, an integer, '_' or '...' here: arithmetic is for outputs", 5),
    (LINEAR, "b é, i o -> b o", "needs a name, an integer, '_' or '...' here: arithmetic is for outputs", 2),
    (LINEAR, "b ... i, i o -> b", "needs '...' in front of the entry", 2),
    (LINEAR, "... ... i, i o -> b", "has '...' twice in one entry", 4),
    (LINEAR, "...i, i o -> b", "needs a blank after '...'", 3),
    (LINEAR, "b i*, i o -> b", "has '*' after the entry of x, which is no Tensor[]", 3),
    (LINEAR, "b* i, i o -> b", "needs ',' or '->' after '*', which ends an entry", 2),
    (LIST, "n, n -> n", "needs '*' after the entry of xs, which is Tensor[]", 1),
    (LINEAR, "b i, i o -> ... b", "has '...' in an output and in no argument", 12),
    (LINEAR, "b i, i o -> b o*", "has '*' after output 0, which is no Tensor[]", 15),
    (LINEAR, "b i, i o -> b _", "has '_' in an output, whose sizes must follow from the arguments", 14),
    (LINEAR, "b i, i o -> b o - 1", "needs a name, an integer or '(' here (arithmetic has no blanks)", 16),
    (LINEAR, "b i, i o -> b o+_", "needs a name, an integer or '(' here (arithmetic has no blanks)", 16),
    (LINEAR, "b i, i o -> b o$", "holds a character that no size has; a size is arithmetic of names and integers", 15),
    (LINEAR, "b i, i o -> b (o", "needs ')' here", 16),
    (LINEAR, "b i, i o -> b o)", "needs an operator or the end of the size here", 15),
    (LINEAR, "b i, i o -> " + "1" * 19, "has a number of more than 18 digits", 12),
    (LINEAR, "b i, i o -> " + "(" * 201, "has a size of more than 200 characters", 12),
    (LINEAR, "b i, i o -> b p", "has the size 'p', which no argument gives", 14, "known are b, i, o"),
    (LINEAR, "_, 3 -> 2*(n-1)", "has the size 'n', which no argument gives", 11, "known are none"),
    (ATTRIBUTES, "n -> n*a", "uses attribute a as a size, and it is float, no int", 5),
    (ATTRIBUTES, "n -> n*ks", "uses attribute ks as a size, and it is int[], no int", 5),
    (ATTRIBUTES, "n -> o", "uses attribute o as a size, and it is int?, no int", 5),
    (ATTRIBUTES, "a -> 1", "uses attribute a as a size, and it is float, no int", 0),
    (
        "ns::f(Tensor x) -> Tensor[]",
        "n -> n*",
        "cannot give an output of type Tensor[], because it does not say how many tensors",
        4,
        "give infer= a function of the specs instead",
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", ENTRY_ERRORS, ids=lambda row: row[1][:24])
def test_wrong_entries_are_refused(row):
    schema, text, rule, position, *hint = row
    with pytest.raises(SchemaError) as caught:
        dims_of(schema, text)
    lines = [f"ns::f: dims: {rule}", f"  {text}", " " * (2 + position) + "^", *(f"  {line}" for line in hint)]
    assert str(caught.value) == "\n".join(lines)


IN_PLACE = "ns::f(Tensor(a!) y, Tensor v) -> ()"
CLAIM_ERRORS = [
    (LINEAR, "b i, i o -> b o", {"parallel": "b q"}, "parallel: has 'q', which is no dimension of an argument", 2, "known are b, i, o"),
    (LINEAR, "b i, i o -> b o", {"parallel": "b,o"}, "parallel: has 'b,o', which is no dimension of an argument", 0, "separate names by blanks"),
    (LINEAR, "b i, i o -> b o", {"max": "i", "min": "_"}, "min: has '_', which is no dimension of an argument", 0, "known are b, i, o"),
    (LINEAR, "b i, i o -> b o", {"halo": {"q": (1, 1)}}, "halo: has 'q', which is no dimension of an argument", 0, "known are b, i, o"),
    (LINEAR, "b i, i o -> b o", {"parallel": "b i"}, "parallel: has 'i', which output 0 lacks", 2, "sum=, max= and min= say how slices are combined in such an output"),
    (IN_PLACE, "m, k ->", {"parallel": "k"}, "parallel: has 'k', which argument y lacks", 0, "sum=, max= and min= say how slices are combined in such an output"),
    (SPLIT, "b i, i o -> b o, o", {"sum": "i o"}, "sum: has 'o', which every output has, so nothing is combined along it", 2, "a dimension whose slices are computed alone is parallel="),
    (LINEAR, "b i, i o -> b o", {"parallel": "b", "sum": "i b"}, "sum: has 'b', which is also in parallel=", 2),
    (LINEAR, "b i, i o -> b o", {"sum": "i", "max": "i"}, "max: has 'i', which is also in sum=", 0),
    (LINEAR, "b i, i o -> b o", {"parallel": "b", "halo": {"b": (1, 1)}}, "halo: has 'b', which is also parallel: with a halo, slices are not computed alone", 0),
    (LINEAR, "n n, m -> n m", {"parallel": "m n"}, "parallel: has 'n', which occurs twice in argument x, so it cannot be parallel", 2),
    (LINEAR, "n m, m -> n n", {"parallel": "n"}, "parallel: has 'n', which occurs twice in output 0, so it cannot be parallel", 0),
    (LINEAR, "n m, m -> n n+1", {"halo": {"n": (1, 1)}}, "halo: has 'n', which occurs twice in output 0, so it cannot be sliced with a halo", 0),
    (LINEAR, "n n, m -> m", {"sum": "n"}, "sum: has 'n', which occurs twice in argument x, so it cannot be summed over slices", 0),
    (LINEAR, "n n, m -> m", {"min": "n"}, "min: has 'n', which occurs twice in argument x, so it cannot be combined over slices", 0),
    (ATTRIBUTES, "n k -> n k", {"parallel": "k"}, "parallel: has 'k', which is also an attribute: slices would have another size than it says", 0),
    (LINEAR, "... n, n -> ... n", {"halo": {"...": (1, 1)}}, "halo: cannot give '...' a halo, because its dimensions have no names", 0),
]  # fmt: skip


@pytest.mark.parametrize("row", CLAIM_ERRORS, ids=lambda row: row[3][:40])
def test_wrong_claims_are_refused(row):
    schema, text, claims, rule, position, *hint = row
    with pytest.raises(SchemaError) as caught:
        dims_of(schema, text, **claims)
    value = claims[rule.partition(":")[0]]
    shown = next(iter(value)) if isinstance(value, dict) else value
    lines = [f"ns::f: {rule}", f"  {shown}", " " * (2 + position) + "^", *(f"  {line}" for line in hint)]
    assert str(caught.value) == "\n".join(lines)


@pytest.mark.parametrize(
    ("widths", "message"),
    [
        (1, "ns::f: halo: 'b' must have two widths, before and after, as in (1, 1), but got 1"),
        (
            (1, 1, 1),
            "ns::f: halo: 'b' must have two widths, before and after, as in (1, 1), but got (1, 1, 1)",
        ),
        ((-1, 1), "ns::f: halo of b: a width is at least 0 and has 64 bits, but got -1"),
        (
            (1, "i z"),
            "ns::f: halo of b: needs one width, an integer or arithmetic without blanks\n  i z\n    ^",
        ),
        ((1, ""), "ns::f: halo of b: needs one width, an integer or arithmetic without blanks\n  \n  ^"),
        (
            (1, "i+z"),
            "ns::f: halo of b: has 'z', which is neither a dimension nor an integer attribute\n  i+z\n  ^",
        ),
        ((1, 0.5), "ns::f: halo of b: must be a text, but got 0.5 (float)"),
        ((True, 1), "ns::f: halo of b: must be a text, but got True (bool)"),
    ],
)
def test_wrong_widths_are_refused(widths, message):
    with pytest.raises(PolyopError) as caught:
        dims_of(LINEAR, "b i, i o -> b o", halo={"b": widths})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "claims", "message"),
    [
        (3, {}, "ns::f: dims: must be a text, but got 3 (int)"),
        ("n, n -> n", {"parallel": ["n"]}, "ns::f: parallel: must be a text, but got ['n'] (list)"),
        (
            "n, n -> n",
            {"halo": "n"},
            "ns::f: halo: must be a mapping from names to two widths, as in {\"n\": (1, 1)}, but got 'n' (str)",
        ),
        ("n, n -> n", {"halo": {1: (1, 1)}}, "ns::f: halo: must be a text, but got 1 (int)"),
    ],
)
def test_other_types_are_refused(text, claims, message):
    with pytest.raises(ArgumentTypeError) as caught:
        dims_of(LINEAR, text, **claims)
    assert str(caught.value) == message


def test_a_long_text_is_refused():
    with pytest.raises(SchemaError, match="ns::f: dims: has at most 20000 characters, but got 20001"):
        dims_of(LINEAR, "n" * 20_001)


# schema, text, shapes, attributes, message; the next line of the message is the text
CALL_ERRORS = [
    (LINEAR, "b i, i o -> b o", [(2, 3), (4, 5)], {}, "dimension i is 4 in argument w and 3 in argument x"),
    (LINEAR, "b i, i o -> b o", [(2, 3), (3,)], {}, "argument w has 1 dimension (3,), but its entry 'i o' has 2"),
    (LINEAR, "b i, -> b i", [(2, 3), (3,)], {}, "argument w has 1 dimension (3,), but its entry '' has 0"),
    (LINEAR, "... b i, i -> i", [(3,), (3,)], {}, "argument x has 1 dimension (3,), but its entry '... b i' has at least 2"),
    (LINEAR, "... i, ... -> i", [(2, 3), (3,)], {}, "dimensions ... are (3,) in argument w and (2,) in argument x"),
    (LINEAR, "... i, ... -> i", [(2, 3), (2, 3)], {}, "dimensions ... are (2, 3) in argument w and (2,) in argument x"),
    (LINEAR, "n n, _ -> n", [(2, 3), (2,)], {}, "dimension n is 2 and 3 in argument x"),
    (LINEAR, "... 3, _ -> 1", [(2, 5, 4), (2,)], {}, "dimension 2 of argument x is 4, but must be 3"),
    (LINEAR, "n, 1 -> n", [(2,), (2,)], {}, "dimension 0 of argument w is 2, but must be 1"),
    (LIST, "n m*, m -> n", [[(2, 3), None, (2, 4)], None], {}, "dimension m is 4 in argument xs[2] and 3 in argument xs[0]"),
    (LIST, "n m*, m -> n", [[(2, 3), (2,)], None], {}, "argument xs[1] has 1 dimension (2,), but its entry 'n m' has 2"),
    (LIST, "n*, m -> m", [[(2,)], None], {}, "output 0: the size m is unknown, because no tensor is passed as argument y"),
    (LIST, "... n*, ... n -> ... n", [[], None], {}, "output 0: the size ... is unknown, because no tensor is passed as argument xs or argument y"),
    (ATTRIBUTES, "n -> n-k+1", [(2,)], {"k": 5}, "output 0: the size n-k+1 is -2, for n=2, k=5"),
    (ATTRIBUTES, "n -> n/k", [(7,)], {"k": 3}, "output 0: the size n/k is not whole: 7 / 3, for n=7, k=3"),
    (LIST, "n*, m -> n//0+m", [[(2,)], None], {}, "output 0: the size n//0+m divides by 0, for n=2"),
    (ATTRIBUTES, "n -> 1 n//(k-1)", [(7,)], {"k": 1}, "output 0: the size n//(k-1) divides by 0, for n=7, k=1"),
]  # fmt: skip


@pytest.mark.parametrize("row", CALL_ERRORS, ids=lambda row: row[4][:50])
def test_calls_that_do_not_fit_are_refused(row):
    schema, text, shapes, attributes, rule = row
    dims = dims_of(schema, text)
    with pytest.raises(InferError) as caught:
        dims.output_shapes(dims.match(shapes, attributes), attributes)
    assert str(caught.value) == f'ns::f: {rule}\n  dims="{text}"'


def test_a_negative_width_is_refused():
    dims = dims_of(ATTRIBUTES, "n -> n", halo={"n": ("k-2", 0)})
    with pytest.raises(InferError, match=re.escape("ns::f: halo of n: the size k-2 is -1, for k=1")):
        dims.halo_widths("n", {"n": 3}, {"k": 1})


NAMES = st.sampled_from("abcdn")
EXPRESSIONS = st.recursive(
    st.builds(Name, NAMES) | st.builds(Number, st.integers(0, 20)),
    lambda inner: st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "/"]), inner, inner),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_expressions_round_trip(expression):
    assert Text(str(expression), "size").expression(Word(str(expression), 0)) == expression


@given(EXPRESSIONS, st.fixed_dictionaries({name: st.integers(0, 9) for name in "abcdn"}))
def test_expressions_have_the_value_that_python_gives(expression, values):
    try:
        expected = eval(re.sub("(?<!/)/(?!/)", "//", str(expression)), {}, values)
    except ZeroDivisionError:
        expected = None
    try:
        value = evaluate(expression, values)
    except ArithmeticError as problem:
        assume("not whole" not in str(problem))
        value = None
    assert value == expected


@st.composite
def written(draw):
    """A schema, and the text and claims of a rule for it."""
    words = st.lists(st.sampled_from(["a", "b", "c", "k", "2", "_"]), max_size=3)
    kinds = draw(st.lists(st.sampled_from(["Tensor", "Tensor?", "Tensor[]"]), max_size=3))
    with_ellipsis = draw(st.booleans())

    def entry(kind, dimensions):
        front = ["..."] if with_ellipsis and draw(st.booleans()) else []
        return " ".join([*front, *dimensions]) + ("*" if kind == "Tensor[]" else "")

    inputs = [entry(kind, draw(words)) for kind in kinds]
    known = sorted({word for text in inputs for word in re.findall("[abck]", text)} | {"k"})
    sizes = st.builds(
        lambda e: re.sub("[abcdn]", lambda m: known["abcdn".index(m[0]) % len(known)], str(e)), EXPRESSIONS
    )
    with_ellipsis = any("..." in text for text in inputs)
    outputs = [entry("Tensor", draw(st.lists(sizes, max_size=3))) for _ in range(draw(st.integers(0, 2)))]
    arguments = ", ".join([*(f"{kind} x{i}" for i, kind in enumerate(kinds)), "int k"])
    schema = f"ns::f({arguments}) -> ({', '.join(['Tensor'] * len(outputs))})"
    claims = {}
    for name in known:
        keyword = draw(st.sampled_from(["", "parallel", "sum", "max", "min", "halo"]))
        if keyword == "halo":
            claims.setdefault("halo", {})[name] = (draw(st.integers(0, 3)), str(draw(sizes)))
        elif keyword:
            claims[keyword] = f"{claims.get(keyword, '')} {name}"
    return schema, f"{', '.join(inputs)} -> {', '.join(outputs)}", claims


@given(written())
def test_generated_rules_round_trip(rule):
    schema, text, claims = rule
    try:
        dims = dims_of(schema, text, **claims)
    except SchemaError:
        dims = dims_of(schema, text)  # a claim was wrong, the entries are not
    arguments = eval(f"dict({dims})")
    assert dims_of(schema, arguments.pop("dims"), **arguments) == dims
    mapped = {"..."} & set(dims.names) if all(entry.ellipsis for entry in dims.outputs) else set()
    assert {*dims.whole, *dims.parallel, *dims.reductions, *dims.halo, *mapped} == set(dims.names)
    assert not mapped & set(dims.whole)


@pytest.mark.slow
@given(
    written(),
    st.fixed_dictionaries({name: st.integers(1, 9) for name in "abck"}),
    st.lists(st.integers(0, 5), max_size=3),
    st.data(),
)
def test_generated_sizes_match(rule, sizes, leading, data):
    dims = dims_of(*rule[:2])
    sizes = {**sizes, "...": tuple(leading), "2": 2}

    def shape(entry):
        front = leading if entry.ellipsis else ()
        return (
            *front,
            *(data.draw(st.integers(0, 9)) if d is None else sizes[str(d)] for d in entry.dimensions),
        )

    shapes = [
        [shape(e) for _ in range(data.draw(st.integers(1, 2)))] if e.each else shape(e) for e in dims.inputs
    ]
    bound = dims.match(shapes, {"k": sizes["k"]})
    assert bound == {name: sizes[name] for name in dims.names}
    for entry in dims.outputs:
        one = dataclasses.replace(dims, outputs=(entry,))
        expected = [evaluate_or_none(size, sizes) for size in entry.dimensions]
        if None in expected:
            with pytest.raises(InferError):
                one.output_shapes(bound, {"k": sizes["k"]})
        else:
            front = leading if entry.ellipsis else ()
            assert one.output_shapes(bound, {"k": sizes["k"]}) == ((*front, *expected),)


def evaluate_or_none(expression, values):
    """Return a size, or None for one that is negative or not whole."""
    try:
        value = evaluate(expression, values)
    except ArithmeticError:
        return None
    return value if value >= 0 else None


@st.composite
def subscripts(draw):
    """Inputs and the output of an einsum, with a size for each letter."""
    inputs = draw(st.lists(st.text("abcde", max_size=3), min_size=1, max_size=3))
    letters = sorted(set("".join(inputs)))
    output = draw(st.permutations(letters).map("".join))
    return inputs, output[: draw(st.integers(0, len(letters)))], {x: draw(st.integers(1, 4)) for x in letters}


@given(subscripts(), st.booleans())
def test_output_shapes_equal_those_of_einsum(expression, with_ellipsis):
    inputs, output, sizes = expression
    front = (2, 3) if with_ellipsis else ()
    arrays = [np.ones((*front, *(sizes[letter] for letter in letters))) for letters in inputs]
    dots = "..." if with_ellipsis else ""
    result = np.einsum(f"{','.join(dots + x for x in inputs)}->{dots}{output}", *arrays)
    schema = f"ns::f({', '.join(f'Tensor x{i}' for i in range(len(inputs)))}) -> Tensor"
    entries = [" ".join([dots, *letters]) for letters in (*inputs, output)]
    dims = dims_of(schema, f"{', '.join(entries[:-1])} -> {entries[-1]}")
    assert dims.output_shapes(dims.match([array.shape for array in arrays])) == (result.shape,)
    for position, letters in enumerate(inputs):
        if letters and sizes[letters[0]] > 1 and "".join(inputs).count(letters[0]) > 1:
            shapes = [array.shape for array in arrays]
            rest = shapes[position][len(front) + 1 :]
            shapes[position] = (*front, sizes[letters[0]] + 1, *rest)
            with pytest.raises(InferError, match=f"dimension {letters[0]} is "):
                dims.match(shapes)


def test_the_rows_of_the_page_parse():
    page = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "dims.md"
    rows = re.findall(r"^\| [^|]+ \| `(\([^|`]+)` \| `([^|]+)` \|", page.read_text(), re.M)
    assert len(rows) == 12
    for schema, arguments in rows:
        claims = eval(f"dict({arguments})")
        dims = dims_of(f"ns::f{schema}", claims.pop("dims"), **claims)
        assert str(dims) == arguments
