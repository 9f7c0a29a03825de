"""Operators of aclnn that PyTorch's run by name, beside these called directly with the same named arguments.

Of each name a few samples of PyTorch's test database are bound to the row's prototype, by position as in aclnn.
"""

import collections
import keyword
import operator
import re
import warnings
import zlib

import array_api_compat.numpy as numpy_namespace
import array_api_compat.torch as torch_namespace
import numpy as np
import pytest
import torch

from polyop.providers.aclnn import evaluate, launch
from polyop.providers.aclnn.differences import OTHER_ARGUMENTS, OTHER_NAMES
from polyop.providers.aclnn.registry import builtin, find
from polyop.providers.aclnn.row import DEFAULTS
from polyop.providers.aten.overloads import by_letters, letters

pytest.importorskip("jax", reason="JAX is not installed")  # the helpers import it
pytest.importorskip("expecttest", reason="PyTorch's test database imports expecttest, which is not installed")

PARTS = 8
CALLS = 3
"""At most so many calls of an overload in one dtype."""

PLACES = ("layout", "device", "pin_memory", "memory_format", "non_blocking", "sparse_grad", "implicit")
"""Arguments that change no value: rows do not have them."""


def camel(spelling):
    """Return aclnn's form of one of PyTorch's spellings: ``MaxDim`` of ``max.dim``."""
    return "".join(part[:1].upper() + part[1:] for part in spelling.replace(".", "_").split("_"))


def python_name(name):
    """Return PyTorch's name of an argument; ours has ``_`` after a keyword of Python."""
    return name.removesuffix("_") if keyword.iskeyword(name.removesuffix("_")) else name


def refused(name):
    return letters(name) in map(letters, OTHER_ARGUMENTS)


def named():
    """Return {aclnn's name: PyTorch's spelling} for every name that PyTorch's operators run."""
    taken = {letters(name.removeprefix("aclnn")) for name in builtin()} | {letters(n) for n in OTHER_NAMES}
    others = {camel(s): s for s in by_letters().values() if letters(camel(s)) not in taken}
    found = {}
    for name, spelling in {**OTHER_NAMES, **others}.items():
        if refused(name):
            continue
        try:
            found[name] = find(name) and spelling
        except NotImplementedError:
            continue  # writes an argument, draws random numbers, or has results that are no tensors
    return found


@pytest.fixture(scope="session")
def names():
    return named()


@pytest.fixture(scope="session")
def database():
    """The database; a fixture, because its import takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opinfo import fitted
    return fitted


def overload_of(spelling):
    base, _, overload = spelling.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


# --- prototypes -----------------------------------------------------------------------------------------


@pytest.mark.slow(2)
@pytest.mark.parametrize("part", range(16))
def test_a_prototype_has_the_arguments_of_pytorchs_schema_in_order(names, part):
    """None is dropped but those that change no value; defaults that may be left out are PyTorch's."""
    for name in sorted(names)[part::16]:
        row, schema = find(name), overload_of(names[name])._schema
        expected = [a.name for a in schema.arguments if a.name not in PLACES or not a.kwarg_only]
        if "side" in expected:  # ``right`` says the same
            expected.remove("side")
        ours = [python_name(row.schema.arguments[i].name) for i in row.inputs]
        if "cubeMathType" in ours:
            ours.remove("cubeMathType")
        assert ours == expected, row.prototype
        assert len(row.outputs) == len(schema.returns), row.prototype
        for argument in schema.arguments:
            if argument.name in DEFAULTS and argument.has_default_value():
                assert argument.default_value in (DEFAULTS[argument.name], None), row.prototype


@pytest.mark.parametrize("name", OTHER_ARGUMENTS)
def test_a_name_with_other_arguments_in_cann_is_refused(name):
    message = rf"aclnn{name}: takes other arguments in CANN than in PyTorch.*{OTHER_ARGUMENTS[name][:20]}"
    for written in (name, name.upper()):
        with pytest.raises(
            NotImplementedError, match=rf"(?i){message}.*\n  register it: polyop.register_aclnn"
        ):
            launch(written, [])


# --- values ---------------------------------------------------------------------------------------------


def mapped(function, value):
    """Return a value with the tensors in it, in lists too, replaced."""
    if isinstance(value, (list, tuple)):
        return [mapped(function, item) for item in value]
    return function(value) if isinstance(value, (torch.Tensor, np.ndarray)) else value


def bound(row, arguments):
    """Return the inputs of a row in aclnn's order; a dtype is its name."""
    given = {**arguments, "cubeMathType": 1}
    if arguments.get("side") is not None:
        given["right"] = arguments["side"] == "right"
    values = [given[python_name(row.schema.arguments[i].name)] for i in row.inputs]
    return [str(v).removeprefix("torch.") if isinstance(v, torch.dtype) else v for v in values]


def array(tensor):
    return np.array(tensor.detach().resolve_conj().resolve_neg().numpy())


def check_equal(what, ours, expected, *, values):
    if isinstance(expected, (list, tuple)):
        assert len(ours) == len(expected), what
        for one, other in zip(ours, expected, strict=True):
            check_equal(what, one, other, values=values)
    elif expected is None:
        assert ours is None, what
    else:
        result, want = array(ours) if isinstance(ours, torch.Tensor) else ours, array(expected)
        assert (result.dtype, result.shape) == (want.dtype, want.shape), what
        if values:
            np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5, err_msg=what)


def check_call(name, spelling, arguments, results):
    """Compare a row with PyTorch: new values in two namespaces, given outputs, and in place."""
    row, values = find(name), "empty" not in spelling
    what = row.prototype
    expected = results
    if row.schema.arguments[row.written[0]].type.is_list:
        expected = [results[0] if len(results) == 1 and isinstance(results[0], list) else results]
    tensors = bound(row, arguments)
    arrays = mapped(array, tensors)
    check_equal(what, evaluate(name, mapped(torch.clone, tensors), torch_namespace), expected, values=values)
    check_equal(what, evaluate(name, mapped(np.copy, arrays), numpy_namespace), expected, values=values)
    outputs = mapped(lambda x: np.ones_like(array(x)), expected)
    launch(name, [*mapped(np.copy, arrays), *outputs])
    check_equal(what, outputs, expected, values=values)
    first = arrays[0]
    if not row.inplace or f"aclnnInplace{name}" in builtin():
        return
    if (first.dtype, first.shape) == (outputs[0].dtype, outputs[0].shape):
        written = mapped(np.copy, arrays)
        launch(f"Inplace{name}", written)
        check_equal(what, written[0], expected[0], values=values)


def refusal(spelling, arguments):
    """Return (error, words) of a call that PyTorch takes and polyop does not."""
    numbers = [x for v in arguments.values() for x in (v if isinstance(v, (list, tuple)) else [v])]
    if any(isinstance(x, complex) for x in numbers):
        return TypeError, "must be Scalar, but got .*complex"
    if "batch_norm" in spelling and arguments.get("training") and arguments.get("running_mean") is not None:
        return ValueError, "as its statistics are in training"
    return None


def check_calls(names, calls):
    spelled = collections.defaultdict(list)
    for name, spelling in names.items():
        spelled[spelling].append(name)
    for spelling, arguments, results in sorted(
        calls, key=operator.itemgetter(0)
    ):  # one row at a time is kept
        for name in spelled[spelling]:
            expected = refusal(spelling, arguments)
            if expected is None:
                check_call(name, spelling, arguments, results)
            else:
                outputs = mapped(lambda x: np.ones_like(array(x)), results)
                with pytest.raises(expected[0], match=expected[1]):
                    launch(name, [*mapped(array, bound(find(name), arguments)), *outputs])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PyTorch's samples have calls that it warns of
@pytest.mark.parametrize("part", range(PARTS))
def test_values_are_pytorchs(names, database, part):
    wanted, counts, calls = frozenset(names.values()), collections.Counter(), []
    for entry in database.entries():
        for spelling, dtype, arguments, results in database.calls(entry, wanted):
            counts[spelling, dtype] += 1
            if zlib.crc32(spelling.encode()) % PARTS == part and counts[spelling, dtype] <= CALLS:
                calls.append((spelling, arguments, results))
    assert len(calls) > 100
    check_calls(names, calls)


# --- names without a sample in the database -------------------------------------------------------------


def rows():
    """Return (spelling, arguments, keywords) of operators that CANN has and the database has no sample of."""
    draws = torch.Generator().manual_seed(0)

    def r(*size):
        return torch.rand(size, generator=draws)

    def i(*values):
        return torch.tensor(values)

    scale, zero = r(2) + 0.1, i(1, 2).int()
    return [
        ("cdist", (r(3, 2), r(4, 2), 2.0), {}),
        ("kl_div", (r(3), r(3), 2), {"log_target": True}),
        ("reflection_pad2d", (r(1, 4, 5), [1, 1, 2, 0]), {}),
        ("reflection_pad2d_backward", (r(1, 6, 7), r(1, 4, 5), [1, 1, 2, 0]), {}),
        ("reflection_pad3d", (r(1, 3, 4, 5), [1, 0, 2, 1, 1, 1]), {}),
        ("reflection_pad3d_backward", (r(1, 5, 7, 6), r(1, 3, 4, 5), [1, 0, 2, 1, 1, 1]), {}),
        ("replication_pad3d", (r(1, 3, 4, 5), [1, 0, 2, 1, 1, 1]), {}),
        ("replication_pad3d_backward", (r(1, 5, 7, 6), r(1, 3, 4, 5), [1, 0, 2, 1, 1, 1]), {}),
        ("soft_margin_loss_backward", (r(3), r(3), i(1.0, -1.0, 1.0), 0), {}),
        ("upsample_nearest2d_backward", (r(1, 1, 4, 6), [4, 6], [1, 1, 2, 3]), {}),
        ("upsample_nearest3d", (r(1, 1, 2, 2, 2), [4, 2, 6]), {}),
        ("upsample_nearest3d_backward", (r(1, 1, 4, 2, 6), [4, 2, 6], [1, 1, 2, 2, 2]), {}),
        ("repeat_interleave.Tensor", (i(1, 0, 2),), {"output_size": 3}),
        ("conv_tbc", (r(5, 2, 3), r(3, 3, 4), r(4), 1), {}),
        ("conv_tbc_backward", (r(5, 2, 4), r(5, 2, 3), r(3, 3, 4), r(4), 1), {}),
        ("embedding_bag.padding_idx", (r(4, 2), i(0, 2, 1), i(0, 2), False, 1, False, None, True, 2), {}),
        ("fake_quantize_per_tensor_affine", (r(3), 0.1, 2, -8, 7), {}),
        ("fake_quantize_per_tensor_affine_cachemask", (r(3), 0.1, 2, -8, 7), {}),
        ("fake_quantize_per_channel_affine", (r(2, 3), scale, zero, 0, -8, 7), {}),
        ("fake_quantize_per_channel_affine_cachemask", (r(2, 3), scale, zero, 0, -8, 7), {}),
        ("adaptive_max_pool1d", (r(1, 6), [3]), {}),
        ("affine_grid_generator", (r(1, 2, 3), [1, 1, 2, 2], True), {}),
        ("affine_grid_generator_backward", (r(1, 2, 2, 2), [1, 1, 2, 2], True), {}),
        ("atleast_2d.Sequence", ([r(3), r(1)],), {}),
        ("broadcast_tensors", ([r(3, 1), r(4)],), {}),
        ("cartesian_prod", ([r(2), r(3)],), {}),
        ("chain_matmul", ([r(2, 3), r(3, 2)],), {}),
        ("clip", (r(5), 0.2, 0.6), {}),
        ("conv2d.padding", (r(1, 2, 4, 4), r(3, 2, 3, 3), None, [1, 1], "same", [1, 1], 1), {}),
        ("copy", (r(2, 3), r(3)), {}),
        ("cosine_embedding_loss", (r(2, 3), r(2, 3), i(1, -1), 0.2, 1), {}),
        ("ctc_loss.IntList", (r(4, 1, 3).log_softmax(-1), i(1, 2)[None], [4], [2], 0, 1, False), {}),
        ("cumprod_backward", (r(3), r(3), 0, r(3)), {}),
        ("gather_backward", (r(2, 2), r(2, 3), 1, i(0, 2, 1, 1).reshape(2, 2), False), {}),
        ("glu_jvp", (r(2, 2), r(2, 4), r(2, 4), 1), {}),
        ("gradient.scalararray", (r(4, 3),), {"spacing": 0.5, "dim": [0, 1]}),
        ("grid_sampler", (r(1, 1, 3, 3), r(1, 2, 2, 2), 0, 1, True), {}),
        ("gru_cell", (r(1, 2), r(1, 3), r(9, 2), r(9, 3), r(9), r(9)), {}),
        ("index_select_backward", (r(2, 2), [2, 3], 1, i(0, 2)), {}),
        ("linalg_matrix_norm", (r(2, 3), 1, [0, 1], True), {"dtype": torch.float64}),
        ("margin_ranking_loss", (r(3), r(3), i(1, -1, 1), 0.1, 2), {}),
        ("masked_select_backward", (r(2), r(3), i(True, False, True)), {}),
        ("matrix_H", (r(2, 3),), {}),
        ("max_pool1d_with_indices", (r(1, 6), [2], [2], [0], [1], False), {}),
        ("moveaxis.int", (r(2, 3, 4), 0, 2), {}),
        ("nll_loss_nd", (r(2, 3), i(0, 2), r(3), 2, -100), {}),
        ("norm.ScalarOpt_dim_dtype", (r(2, 3), 1, [1], True), {"dtype": torch.float64}),
        ("norm_except_dim", (r(2, 3), 2, 1), {}),
        ("nuclear_norm", (r(2, 3), True), {}),
        ("pad_sequence", ([r(2), r(3)], True, -1.0), {}),
        ("poisson_nll_loss", (r(3), r(3), True, False, 1e-6, 1), {}),
        ("special_gammainc", (r(3), r(3)), {}),
        ("tensordot", (r(2, 3), r(3, 4), [1], [0]), {}),
        ("to.dtype", (r(3), torch.float64), {}),
        ("trace_backward", (r(), [2, 2]), {}),
        ("type_as", (r(3), i(1)), {}),
        ("unique_dim_consecutive", (i(1, 1, 2), 0, True, True), {}),
        ("unsafe_split_with_sizes", (r(3, 2), [1, 2], 0), {}),
        ("upsample_bilinear2d.vec", (r(1, 1, 2, 2), None, False, [2.0, 1.5]), {}),
        ("value_selecting_reduction_backward", (r(2), 1, i(0, 2), [2, 3], False), {}),
        ("view.dtype", (r(3), torch.int32), {}),
        ("where", (i(True, False, True),), {}),
        ("zero", (r(3),), {}),
    ]  # fmt: skip


NO_SAMPLE = {  # why: regular expression of spellings
    "quantized tensors, which arrays cannot be": r"quantize.*|dequantize.*|empty_quantized|q_per_.*|int_repr|fbgemm_.*"
    r"|choose_qparams_optimized|fake_quantize_.*(_backward|tensor_qparams)",
    "sparse or nested tensors, or complex32, which arrays cannot be": r"(sparse|to_sparse|to_dense|.*(crow|ccol|col|row)_"
    r"indices|values|indices|nested).*|coalesce|hspmm|smm|sspaddmm|copy_sparse_to_sparse|embedding_sparse_backward"
    r"|resize_as_sparse|to_padded_tensor|chalf",
    "of a device or a library that is not here": r"(cudnn|miopen|mps|mkldnn)_.*|to_mkldnn.*|pin_memory|.*\.dtype"
    r"|batch_norm_(elemt|stats|gather_stats|backward_.*)|convolution_(backward_)?overrideable|conv_depthwise3d",
    "changes its argument's storage": r"set.*|resize_as",
    "a form of one that has samples": r".*\.vec|atleast_[13]d\.Sequence|batch_norm_update_stats|conv1d\.padding"
    r"|ctc_loss\.Tensor|data|lift|(un)?flatten_dense_tensors|frobenius_norm\.dim|glu_backward_jvp"
    r"|gradient\..*array.*|infinitely_differentiable_gelu_backward|linalg__powsum|linalg_cond\.p_str"
    r"|linalg_matrix_rank.*|linalg_norm\.ord_str|linear_backward|lstm_cell|rnn_(relu|tanh)_cell|matmul_backward"
    r"|matrix_exp_backward|max_pool2d_backward|cummaxmin_backward|embedding_backward|movedim\.int|numpy_T"
    r"|native_channel_shuffle|native_norm.*|nonzero_numpy|norm\.ScalarOpt_dtype|nuclear_norm\.dim"
    r"|searchsorted\.Scalar|slice_inverse|slow_conv.*|thnn_conv2d|special_gammaincc|to\.other",
}


def check_rows(names, database):
    """Compare the operators of :func:`rows` with PyTorch; return their spellings."""
    calls = []
    for spelling, args, keywords in rows():
        arguments = database.fitted(overload_of(spelling), args, keywords)
        calls.append((spelling, arguments, database.run(overload_of(spelling), arguments)))
    check_calls(names, calls)
    return {spelling for spelling, *_ in calls}


@pytest.mark.filterwarnings("ignore")
def test_values_of_operators_that_the_database_does_not_have(names, database):
    assert len(check_rows(names, database)) == len(rows())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_name_has_a_sample_or_a_reason(names, database):
    wanted = frozenset(names.values())
    covered = {row[0] for entry in database.entries() for row in database.calls(entry, wanted)}
    covered |= {spelling for spelling, *_ in rows()}
    excused = {s for s in wanted for pattern in NO_SAMPLE.values() if re.fullmatch(pattern, s)}
    assert wanted - covered - excused == set()
    assert len(covered) >= 770
    assert len(excused - covered) <= 200
