"""What an operator shows: signature, names, attributes, repr, the table of notebooks, and the stubs of wheels."""

import dataclasses
import html.parser
import inspect

import numpy as np
import pytest

import polyop
from polyop.core.annotations import Tensor
from polyop.wheel.information import Described
from polyop.wheel.wrappers import stubs


def scale(x, factor, axes):
    """Multiply by a factor.

    The axes are ignored.
    """
    return x * factor


scaled = polyop.operator(
    "presented::scaled(Tensor x, float factor=2.0, *, int[]? axes=None) -> Tensor",
    scale,
    dims="... -> ...",
    gradient=lambda x, factor, axes, out, dout: (dout * factor,),
)
SCHEMAS = [
    "presented::one(Tensor x) -> Tensor",
    "presented::several(Tensor[] xs, Tensor? y=None, *, str mode='mean') -> (Tensor, Tensor)",
    "presented::nothing(int[2] n=[1, 2], bool flag=False) -> ()",
    "presented::made(SymInt n, Scalar by=1) -> Tensor",
]


@polyop.kernel
def doubled(x, times: "int" = 1):
    """Double it."""
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
    return y


def test_the_signature_follows_from_the_schema():
    signature = inspect.signature(scaled)
    assert list(signature.parameters) == ["x", "factor", "axes"]
    assert signature.parameters["x"].annotation is Tensor and signature.return_annotation is Tensor
    assert signature.parameters["factor"].default == 2.0
    assert signature.parameters["axes"].kind is inspect.Parameter.KEYWORD_ONLY
    bound = signature.bind(np.ones(3), factor=3.0)
    assert (scaled(*bound.args, **bound.kwargs) == 3).all()


def test_the_signature_of_an_operator_that_returns_a_tuple_of_one():
    packed = polyop.BoundOperator(dataclasses.replace(scaled.operator, returns_tuple=True), register=False)
    assert inspect.signature(packed).return_annotation == tuple[Tensor]
    assert len(packed(np.ones(3))) == 1
    assert type(packed(np.ones(3))) is tuple


def test_a_kernel_has_the_signature_of_its_function():
    assert inspect.signature(doubled) == inspect.signature(doubled.__wrapped__)


def test_names_and_documents():
    assert (scaled.__name__, scaled.__qualname__, scaled.__module__) == ("scaled", "scaled", __name__)
    assert inspect.getdoc(scaled) == inspect.getdoc(scale)
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Double it.")
    other = polyop.operator("presented::other(Tensor x) -> Tensor", lambda x: x, infer="x", docs="Its own.")
    assert other.__doc__ == "Its own."


def test_the_class_can_be_inspected():
    assert "operator" in inspect.signature(polyop.BoundOperator).parameters


@pytest.mark.parametrize("one", [scaled, doubled], ids=["operator", "kernel"])
def test_dir_holds_what_users_call(one):
    listed = {name for name in dir(one) if not name.startswith("__")}
    own = {"compile_attrs", "python"} if one is doubled else set()
    used = {
        "communication",
        "gradient",
        "mindspore_graph",
        "name",
        "origin",
        "report",
        "schema",
        "source",
        "torch",
        "vjp",
    }
    assert listed == used | own
    assert own | used <= {*vars(one), *(name for cls in type(one).__mro__ for name in vars(cls))}


def test_the_text_has_two_lines():
    first, second = repr(scaled).splitlines()
    assert first == f"<polyop operator {scaled.schema}>"
    assert second.startswith("  gradient given; batching derived; defined at ")
    assert "test_presented.py" in second


class Texts(html.parser.HTMLParser):
    """Collects the texts of a page, and the tags that are open."""

    def __init__(self):
        super().__init__()
        self.texts, self.open = [], []

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        self.open += [] if tag == "br" else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_table_of_notebooks():
    page = Texts()
    page.feed(scaled._repr_html_())
    assert page.open == []
    assert str(scaled.schema) in page.texts and "Multiply by a factor." in page.texts
    assert page.texts[page.texts.index("gradient") + 1] == "given"


@pytest.mark.parametrize("text", SCHEMAS)
def test_stubs_agree_with_signatures(text):
    """The stubs of a wheel have the parameters, defaults and annotations of the operator itself."""
    one = polyop.operator(text, lambda *args: None, infer=lambda *args: ())
    names = {}
    exec(stubs("lib.so", [Described(one.schema, one.schema.name, {"CPU": ""}, "")], {}), names)
    stub = inspect.signature(names[one.schema.name])
    assert str(stub).replace("~_Tensor", "~Tensor") == str(inspect.signature(one))
