"""What ``@kernel`` is told: by the decorator, and by what another has left on the function."""

import functools

import pytest

import polyop
from polyop import Custom


def copied(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


OPTIONS = [
    ({"compile_attrs": 3}, "The input 'compile_attrs' of @kernel must be a dict"),
    ({"compile_attrs": {"precise": "no"}}, "kernel: 'precise' must be True or False, but got 'no'"),
    ({"compile_attrs": {"tape": [1]}}, r"kernel: 'tape' must be one of .*, but got \[1\]"),
    ({"compile_attrs": {1: 2}}, "The keys of 'compile_attrs' must be of type str"),
    ({"reg_info": 3}, "The input 'reg_info' of @kernel must be a str, dict or tuple"),
]


@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_options_of_the_decorator(options, words):
    with pytest.raises(polyop.PolyopError, match=words):
        polyop.kernel(copied, **options)
    with pytest.raises(polyop.PolyopError, match="must decorate a function, but got int"):
        polyop.kernel(compile_attrs={})(3)


MARKED = [  # what MindSpore's own @kernel leaves, and what others may
    ('{"tape": "all"', "kernel copied: 'compile_attrs' is no JSON: .*column 15"),
    ("", "kernel copied: 'compile_attrs' is no JSON: .*, but got ''"),
    ("[" * 100_000, "kernel copied: 'compile_attrs' is no JSON: "),
    ("[1]", r"kernel copied: 'compile_attrs' must be a dict, or one in JSON, but got \[1\]"),
    (3, "kernel copied: 'compile_attrs' must be a dict, or one in JSON, but got 3"),
    ('{"tape": "bogus"}', "kernel copied: 'tape' must be one of .*, but got 'bogus'"),
    ({"precize": True}, "kernel copied: 'compile_attrs' has no such option.*\n  did you mean 'precise'"),
]


@pytest.mark.parametrize(("told", "words"), MARKED)
def test_options_of_a_function_that_was_marked_elsewhere(told, words):
    def marked(x):
        return copied(x)

    functools.update_wrapper(marked, copied).compile_attrs = told
    with pytest.raises(polyop.PolyopError, match=words):
        Custom(marked, func_type="hybrid")
    with pytest.raises(polyop.PolyopError, match=words):
        polyop.operator("options_elsewhere::op(Tensor x) -> Tensor", marked)
    with pytest.raises(polyop.PolyopError, match=words):
        polyop.kernel(marked)


@pytest.mark.parametrize("told", [{"precise": True, "tape": "all"}, '{"precise": true, "tape": "all"}'])
def test_a_function_that_is_marked_twice_keeps_what_it_was_told(told):
    once = polyop.kernel(copied)
    once.compile_attrs = told
    assert polyop.kernel(once).compile_attrs == {"precise": True, "tape": "all"}
    again = polyop.kernel(once, compile_attrs={"precise": False})
    assert again.compile_attrs == {"precise": False, "tape": "all"}
