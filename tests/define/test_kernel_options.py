"""Options of ``@kernel``: from the decorator, and from another decorator's mark on the function."""

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


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_options_of_the_decorator(options, message):
    with pytest.raises(polyop.PolyopError, match=message):
        polyop.kernel(copied, **options)
    with pytest.raises(polyop.PolyopError, match="must decorate a function, but got int"):
        polyop.kernel(compile_attrs={})(3)


class Method:
    def copied(self, x):
        return x


NO_FUNCTIONS = [
    (functools.partial(copied, 1), "must be a function made by def, but got partial"),
    (len, "must be a function made by def, but got builtin"),
    (Method().copied, "must be a function made by def, but got method"),
    (Method, "must be a function made by def, but got type"),
    (functools.lru_cache(max), "must not be wrapped.*but got functools._lru_cache_wrapper"),
]


@pytest.mark.parametrize(
    ("function", "message"), NO_FUNCTIONS, ids=[message[-7:] for _, message in NO_FUNCTIONS]
)
def test_what_is_no_function_made_by_def(function, message):
    with pytest.raises(polyop.PolyopError, match=message):
        polyop.kernel(function)


def in_numpy():
    import numpy as np

    return np.float32([1, 2]), np.float32(1)


def in_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2))


def in_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    return jax.numpy.ones(2), jax.numpy.float32(1)


def in_mindspore():
    mindspore = pytest.importorskip("mindspore", reason="MindSpore is not installed")
    return mindspore.Tensor([1.0, 2]), mindspore.Parameter(mindspore.Tensor([1.0]))


@pytest.mark.parametrize("host", [in_torch, in_jax, in_mindspore])
def test_a_framework_s_tensors_are_refused(host):
    """Plain Python would return NumPy arrays, and the gradient would be lost silently."""
    kernel = polyop.kernel(copied).python
    for value in host():
        for call in (lambda v=value: kernel(v), lambda v=value: kernel(x=v)):
            with pytest.raises(polyop.PolyopError) as excinfo:
                call()
            text = str(excinfo.value)
            assert "the loop kernel copied: as plain Python it runs over NumPy arrays" in text
            assert f"a tensor of {host.__name__.removeprefix('in_')}" in text
            assert "decorate it with @polyop.kernel and call copied" in text
            assert 'polyop.Custom(copied, func_type="hybrid")' in text and __file__ in text


@pytest.mark.filterwarnings("ignore:Dynamo d")  # Dynamo warns while it traces the search for the framework
def test_tracers_are_refused():
    kernel = polyop.kernel(copied).python
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    for call in (jax.jit(kernel), jax.vmap(kernel), jax.grad(lambda x: kernel(x).sum())):
        with pytest.raises(polyop.PolyopError, match="the loop kernel copied: as plain Python"):
            call(jax.numpy.ones((2, 2)))
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for call in (torch.compile(kernel, backend="eager"), torch.vmap(kernel), torch.func.grad(kernel)):
        with pytest.raises(polyop.PolyopError, match="the loop kernel copied: as plain Python"):
            call(torch.ones(2, 2))


def test_arrays_and_numbers_run_as_python():
    array, number = in_numpy()

    @polyop.kernel
    def scaled(x, a):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
        for i in range(x.shape[0]):
            y[i] = x[i] * a
        return y

    for factor in (2, 2.0, number * 2, True + 1):
        assert scaled.python(array, factor).tolist() == scaled.python(array, a=factor).tolist() == [2, 4]


MARKED = [  # marks of MindSpore's own @kernel and of other decorators
    ('{"tape": "all"', "kernel copied: 'compile_attrs' must be valid JSON: .*column 15"),
    ("", "kernel copied: 'compile_attrs' must be valid JSON: .*, but got ''"),
    ("[" * 100_000, "kernel copied: 'compile_attrs' must be valid JSON: "),
    ("[1]", r"kernel copied: 'compile_attrs' must be a dict, or its JSON text, but got \[1\]"),
    (3, "kernel copied: 'compile_attrs' must be a dict, or its JSON text, but got 3"),
    ('{"tape": "bogus"}', "kernel copied: 'tape' must be one of .*, but got 'bogus'"),
    ({"precize": True}, "kernel copied: 'compile_attrs' has no such option.*\n  did you mean 'precise'"),
]


@pytest.mark.parametrize(("compile_attrs", "message"), MARKED)
def test_options_of_a_function_that_was_marked_elsewhere(compile_attrs, message):
    names = {"__name__": "mindspore.ops", "copied": copied}  # a decorator of any other package is refused
    exec("def marked(x): return copied(x)", names)
    marked = functools.update_wrapper(names["marked"], copied)
    marked.compile_attrs = compile_attrs
    with pytest.raises(polyop.PolyopError, match=message):
        Custom(marked, func_type="hybrid")
    with pytest.raises(polyop.PolyopError, match=message):
        polyop.operator("options_elsewhere::op(Tensor x) -> Tensor", marked)
    with pytest.raises(polyop.PolyopError, match=message):
        polyop.kernel(marked)


@pytest.mark.parametrize(
    "compile_attrs", [{"precise": True, "tape": "all"}, '{"precise": true, "tape": "all"}']
)
def test_a_function_that_is_marked_twice_keeps_its_options(compile_attrs):
    once = polyop.kernel(copied)
    once.compile_attrs = compile_attrs
    assert polyop.kernel(once).compile_attrs == {"precise": True, "tape": "all"}
    again = polyop.kernel(once, compile_attrs={"precise": False})
    assert again.compile_attrs == {"precise": False, "tape": "all"}
