"""What a C++ Function keeps and marks between Forward and Backward, and what is refused with a message."""

import gc
import pathlib
import weakref

import numpy as np
import pytest

from polyop.define.module.builder import CustomOpBuilder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "module_gradients.cpp"
LABEL = 'a "label" é'


@pytest.fixture(scope="session")
def ops():
    return CustomOpBuilder("module_gradients", [str(SOURCE)], backend="CPU").load()


def graph(function):
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@pytest.fixture(params=[lambda f: f, graph], ids=["eager", "compiled"])
def mode(request):
    return request.param


def leaf(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


ONE = [
    # name, call, formula
    ("square", lambda ops, x: ops.square(x), lambda x: x * x),
    ("exp_times", lambda ops, x: ops.exp_times(x), lambda x: x.exp() * x),
    ("exp_times, loop", lambda ops, x: ops.exp_times(x, by_loop=True), lambda x: x.exp() * x),
    ("exp_times, no input", lambda ops, x: ops.exp_times(x, keep_input=False), lambda x: x.exp() * x),
    ("sigmoid", lambda ops, x: ops.sigmoid(x), lambda x: x.sigmoid()),
    ("state", lambda ops, x: ops.state(x, 3, [2, 5], LABEL), lambda x: 30 * x + 0.5),
    ("bias", lambda ops, x: ops.bias(x), lambda x: x),
    ("sum_list", lambda ops, x: ops.sum_list([x, x * x, x]), lambda x: 2 * x + x * x),
    ("sum_list of one", lambda ops, x: ops.sum_list([x]), lambda x: x),
    ("wide_gradient", lambda ops, x: ops.wide_gradient(x), lambda x: 4 * x),
]


@pytest.mark.slow(3)
@pytest.mark.parametrize(("call", "formula"), [row[1:] for row in ONE], ids=[row[0] for row in ONE])
def test_value_and_gradient(ops, mode, call, formula):
    x = leaf(0.5, -1.25, 2.0)
    weight = torch.tensor([1.0, 10.0, -3.0])
    out = mode(lambda a: call(ops, a))(x)
    torch.testing.assert_close(out, formula(x))
    (grad,) = torch.autograd.grad((out * weight).sum(), x)
    (expected,) = torch.autograd.grad((formula(x) * weight).sum(), x)
    assert grad.dtype == x.dtype
    torch.testing.assert_close(grad, expected)


NUMPY = [
    ("square", (), lambda x: 2 * x),
    ("exp_times", (True, False), lambda x: np.exp(x) * (1 + x)),
    ("sigmoid", (), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    ("state", (3, [2, 5], LABEL), lambda x: np.full_like(x, 30)),
]


@pytest.mark.parametrize(("name", "more", "derivative"), NUMPY, ids=[row[0] for row in NUMPY])
def test_gradient_on_numpy(ops, name, more, derivative):
    x = np.array([[0.5, -1.25], [2.0, 0.0]])
    _, pull = getattr(ops, name).vjp(x, *more)
    for weight in (np.ones_like(x), np.array([[1.0, 2], [3, 4]])):
        grads = pull(weight)
        assert len(grads) == 1 + len(more) and all(g is None for g in grads[1:])
        np.testing.assert_allclose(grads[0], derivative(x) * weight)


def test_several_outputs(ops, mode):
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    product, total = mode(lambda a, b: ops.both(a, b))(x, y)
    np.testing.assert_array_equal(product.detach(), [10, 21])
    np.testing.assert_array_equal(total.detach(), [7, 10])
    (product.sum() + 10 * total.sum()).backward()
    np.testing.assert_array_equal(x.grad, [15, 17])
    np.testing.assert_array_equal(y.grad, [12, 13])


@pytest.mark.parametrize(
    ("used", "expected"), [(0, ([5, 7], [2, 3])), (1, ([1, 1], [1, 1]))], ids=["first", "second"]
)
@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_of_unused_outputs(ops, mode, used, expected, materialize):
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    mode(lambda a, b: ops.both(a, b, materialize=materialize)[used])(x, y).sum().backward()
    np.testing.assert_array_equal(x.grad, expected[0])
    np.testing.assert_array_equal(y.grad, expected[1])


def test_unused_outputs_are_zeros_or_absent(ops):
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    for materialize, count in [(True, 0), (False, 1)]:
        ops.both(x, y, materialize)[1].sum().backward()
        assert ops.seen("absent") == count


def test_an_output_marked_without_a_gradient(ops, mode):
    x = leaf(1.0, 2.0)
    first, second = mode(lambda a: ops.marked(a))(x)
    np.testing.assert_array_equal(second.detach(), [3, 6])
    assert first.requires_grad and not second.requires_grad
    first.sum().backward()
    np.testing.assert_array_equal(x.grad, [2, 2])


def test_a_returned_input_marked_without_a_gradient(ops):
    x, y = leaf(2.0), leaf(5.0)
    product, same = ops.marked_input(x, y)
    assert not same.requires_grad and same.item() == 5
    assert y.requires_grad and same is not y
    product.backward()
    assert (x.grad.item(), y.grad.item()) == (5, 2)


def test_integer_outputs_have_no_gradient(ops, mode):
    x = leaf(0.5, 1.5)
    real, index = mode(lambda a: ops.with_index(a))(x)
    assert index.dtype == torch.int64 and not index.requires_grad
    np.testing.assert_array_equal(index, [5, 15])
    real.sum().backward()
    np.testing.assert_array_equal(x.grad, [2, 2])


RETURNED = [
    # how, the first output, the second
    ("twice", lambda x: x * x, lambda x: x * x),
    ("argument", lambda x: x * 1, lambda x: x * x),
    ("view", lambda x: x.reshape(-1), lambda x: (x * x).reshape(-1)),
    ("between", lambda x: 2 * x * x, lambda x: x * x),
]


@pytest.mark.parametrize(("how", "first", "second"), RETURNED, ids=[row[0] for row in RETURNED])
def test_outputs_that_forward_may_return(ops, mode, how, first, second):
    x = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
    outputs = mode(lambda a: ops.returned(a, how))(x)
    for output, formula, factor in zip(outputs, (first, second), (1, 10), strict=True):
        torch.testing.assert_close(output, formula(x))
        (grad,) = torch.autograd.grad((factor * output).sum(), x, retain_graph=True)
        torch.testing.assert_close(grad, torch.autograd.grad((factor * formula(x)).sum(), x)[0])
    (grad,) = torch.autograd.grad(outputs[0].sum() + 10 * outputs[1].sum(), x)
    expected = torch.autograd.grad(first(x).sum() + 10 * second(x).sum(), x)[0]
    torch.testing.assert_close(grad, expected)
    array = np.float32([[1, -2], [3, 0.5]])
    outputs, pull = ops.returned.vjp(array, how)
    assert not any(np.shares_memory(output, array) for output in outputs)
    grads = pull([np.ones_like(outputs[0]), 10 * np.ones_like(outputs[1])])
    np.testing.assert_allclose(grads[0], expected)


def test_the_gradient_of_a_part_of_a_result_is_refused_with_a_message(ops):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    parts = ops.returned(x, "parts")
    np.testing.assert_array_equal(parts[1].detach(), [9, 16])
    with pytest.raises(RuntimeError, match="output 1 is not known"):
        parts[1].sum().backward()


def test_apply_inside_of_forward_and_backward(ops, mode):
    x = leaf(1.0, -2.0)
    out = mode(lambda a: ops.nested(a))(x)
    np.testing.assert_array_equal(out.detach(), [2, 2])
    out.sum().backward()
    np.testing.assert_array_equal(x.grad, [3, -3])


def test_optional_tensors(ops, mode):
    x, bias = leaf(1.0, 2.0), leaf(10.0, 20.0)
    out = mode(lambda a, b: ops.bias(a, b))(x, bias)
    np.testing.assert_array_equal(out.detach(), [11, 22])
    out.sum().backward()
    np.testing.assert_array_equal(bias.grad, [1, 1])
    np.testing.assert_array_equal(ops.bias(np.float32([1]), bias=None), [1])
    _, pull = ops.bias.vjp(np.float32([1]))
    assert pull(np.float32([3]))[1] is None


def test_lists_item_by_item(ops, mode):
    items = [leaf(float(k), 1.0) for k in range(3)]
    out = mode(lambda *all_: ops.sum_list(list(all_)))(*items)
    (out * torch.tensor([1.0, 10.0])).sum().backward()
    for item in items:
        np.testing.assert_array_equal(item.grad, [1, 10])
    _, pull = ops.sum_list.vjp([np.float32([1]), np.float32([2])])
    (grads,) = pull(np.float32([4]))
    assert [g.tolist() for g in grads] == [[4], [4]]


def test_a_list_given_to_apply_is_refused_where_a_gradient_is_needed(ops):
    with torch.no_grad():
        assert ops.of_list([leaf(1.0), leaf(2.0)]).item() == 3
    with pytest.raises(
        RuntimeError, match="Function has no gradients for lists: pass the tensor as an argument"
    ):
        ops.of_list([leaf(1.0), leaf(2.0)])


@pytest.mark.parametrize(("x_needed", "y_needed"), [(True, False), (False, True), (True, True)])
def test_which_gradients_are_needed(ops, x_needed, y_needed):
    x, y = torch.ones(2, requires_grad=x_needed), torch.ones(2, requires_grad=y_needed)
    out = ops.needs(x, y)
    bits = x_needed + 2 * y_needed
    assert ops.seen("forward") == bits + 4 * bits
    out.sum().backward()
    assert ops.seen("backward") == bits
    assert ((x.grad is not None), (y.grad is not None)) == (x_needed, y_needed)


def test_nothing_is_needed_without_gradients(ops):
    ops.needs(torch.ones(2), torch.ones(2))
    assert ops.seen("forward") == 0
    with torch.no_grad():
        ops.needs(leaf(1.0), leaf(1.0))
    assert ops.seen("forward") == 0


WRONG = [
    ("too few", "Backward of Wrong returned an incorrect number of gradients .expected 2, got 1."),
    ("too many", "Backward of Wrong returned an incorrect number of gradients .expected 2, got 3."),
    ("of a text", "returned a gradient at position 1, but the corresponding forward input was not a Tensor"),
    ("shape", r"gradient has shape \(7,\), and should be broadcast to the input's shape \(2,\)"),
    ("throws", "Backward of Wrong: Backward does not like this"),
    ("throws an int", "Backward of Wrong: it threw an exception that is no std::exception"),
    ("index", "tensor index out of range"),
]


@pytest.mark.slow(5)
@pytest.mark.parametrize(("how", "words"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_backward(ops, mode, how, words):
    x = leaf(1.0, 2.0)
    (out,) = mode(lambda a: ops.wrong(a, how))(x)
    np.testing.assert_array_equal(out.detach(), [2, 4])
    with pytest.raises(RuntimeError, match=words):
        out.sum().backward()
    assert x.grad is None
    _, pull = ops.wrong.vjp(np.float32([1, 2]), how)
    with pytest.raises(RuntimeError, match=f"module_gradients::wrong.*{words}"):
        pull([np.ones(2, np.float32)])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no output", "The output list must not be empty"),
        ("throws early", "Forward does not like this"),
        ("throws an int early", "no std::exception"),
    ],
)
def test_a_wrong_forward(ops, how, words):
    with pytest.raises(RuntimeError, match=f"module_gradients::wrong.*{words}"):
        ops.wrong(leaf(1.0, 2.0), how)
    if how != "no output":
        with pytest.raises(RuntimeError, match=f"module_gradients::wrong.*{words}"):
            ops.wrong(np.ones(2, np.float32), how)


def test_in_place_that_is_not_marked(ops):
    with pytest.raises(RuntimeError, match="MarkDirty|modified inplace must all be outputs of the Function"):
        ops.silent_write(leaf(1.0) * 1).backward()


def test_marking_a_tensor_that_is_not_returned(ops):
    with pytest.raises(RuntimeError, match="The dirty tensors must all be outputs of the forward function"):
        ops.dirty_elsewhere(leaf(1.0) * 1)


def test_two_arguments_in_place_and_a_new_output(ops):
    x, y = np.float32([1, 2]), np.float32([10, 20])
    a, new, b = ops.two_in_place(x, y)
    assert a is x and b is y
    np.testing.assert_array_equal(x, [2, 4])
    np.testing.assert_array_equal(y, [12, 24])
    np.testing.assert_array_equal(new, [36, 72])
    a, new, b = ops.two_in_place(x, y)  # learned by now
    assert a is x and b is y and y[0] == 16 and new[0] == 48
    first, second = leaf(1.0, 2.0), leaf(10.0, 20.0)
    u, v = first * 1, second * 1
    a, new, b = ops.two_in_place(u, v)
    assert a is u and b is v
    (a.sum() + 10 * new.sum() + 100 * b.sum()).backward()
    np.testing.assert_array_equal(first.grad, [2 * (1 + 30 + 100)] * 2)
    np.testing.assert_array_equal(second.grad, [130, 130])


@pytest.mark.parametrize("name", ["plain_loop", "plain_loop_before", "launched_beside"])
def test_the_gradient_of_plain_loops_over_data_is_refused_with_a_message(ops, name):
    x = leaf(1.0, 2.0)
    function = getattr(ops, name)
    assert torch.no_grad()(function)(x)[0].item() in (2, 3)
    with pytest.raises(RuntimeError, match="outside of the Apply of a Function"):
        function(x).sum().backward()


def test_plain_loops_beside_apply(ops):
    x = leaf(1.0, 2.0)
    good, bad = ops.plain_loop_beside(x)
    np.testing.assert_array_equal(bad.detach(), [2, 4])
    good.sum().backward()
    np.testing.assert_array_equal(x.grad, [2, 2])
    with pytest.raises(RuntimeError, match="outside of the Apply of a Function"):
        ops.plain_loop_beside(x)[1].sum().backward()


def test_constants_of_plain_loops_are_constants(ops):
    x = leaf(1.0, 2.0)
    ops.constant_before(x).sum().backward()
    np.testing.assert_array_equal(x.grad, [1, 1])


def test_forward_may_read_data_eagerly(ops):
    x = leaf(1.0, 4.0)
    out = ops.by_maximum(x)
    np.testing.assert_array_equal(out.detach(), [4, 16])
    out.sum().backward()
    np.testing.assert_array_equal(x.grad, [4, 4])
    _, pull = ops.by_maximum.vjp(np.float32([1, 3]))
    np.testing.assert_array_equal(pull(np.float32([1, 1]))[0], [3, 3])


def test_backward_twice_over_one_graph(ops):
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    out = ops.both(x, y)[0].sum() + ops.sigmoid(x).sum() + ops.state(x, 3, [2, 5], LABEL).sum()
    out.backward(retain_graph=True)
    first = x.grad.clone()
    x.grad = None
    out.backward()
    torch.testing.assert_close(x.grad, first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_saved_outputs_and_own_tensors_are_guarded(ops):
    x = leaf(2.0) * 1
    x.retain_grad()
    out = ops.sigmoid(x)
    with torch.no_grad():
        out.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.slow
def test_memory_is_freed(ops):
    inner = leaf(1.0, 2.0) * 1
    alive = weakref.ref(inner)
    out = ops.exp_times(inner)
    del inner
    gc.collect()
    out.sum().backward()
    del out
    gc.collect()
    assert alive() is None
    array = np.float32([1, 2])
    alive = weakref.ref(array)
    _, pull = ops.square.vjp(array)
    del array
    np.testing.assert_array_equal(pull(np.float32([1, 1]))[0], [2, 4])
    del pull
    gc.collect()
    assert alive() is None
