"""Every operator, in every framework and mode, returns the same as in NumPy."""

import importlib.util
import inspect
import os
import pkgutil
import re

import cases
import numpy as np
import pytest
import xfails

import polyop.kernels
import polyop.providers
from polyop.testing import frameworks


def compare(name, label, array, other):
    """Assert that two arrays have one dtype and shape, and values within the dtype's tolerance."""
    case = cases.all_members()[name].case
    rtol, atol = case.tolerance(other.dtype)
    assert array.dtype == other.dtype, f"{label}: {array.dtype}, not {other.dtype}"
    assert array.shape == other.shape, f"{label}: shape {array.shape}, not {other.shape}"
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    kind = array.dtype if array.dtype.kind in "biu" else wide
    np.testing.assert_allclose(
        array.astype(kind), other.astype(kind), rtol=max(rtol, 1e-12), atol=max(atol, rtol), err_msg=label
    )


def test_case(host, mode, name, record):
    results = cases.result_of(host, mode, name)
    expected = cases.expected(name, cases.MODES[mode][1])
    for label, array in results.items():
        if label in expected:
            compare(name, label, array, expected[label])
        else:
            assert not array.any(), f"{label}: NumPy has no gradient"
    assert set(expected) <= set(results), f"missing: {set(expected) - set(results)}"
    for other, label, array in cases.peers().get((name, cases.MODES[mode][1]), ()):
        if label in results:
            compare(name, f"{label}, {other} elsewhere", cases.plain(results[label]), array)
    record(host, mode, name, results)


MISFITS = [  # of an elementwise operator: the shapes of x and y
    ((2, 3), (1, 3)),
    ((4, 3), (3,)),
    ((3,), (7,)),
    ((3,), ()),
]


@pytest.mark.slow(4)
@pytest.mark.parametrize(("x_shape", "y_shape"), MISFITS, ids=str)
@pytest.mark.parametrize("host", frameworks.HOSTS)
def test_shapes_that_do_not_fit(host, x_shape, y_shape):
    """No framework runs an elementwise kernel on tensors of different shapes, in any mode."""
    reason = frameworks.absent(host)
    if reason:
        pytest.skip(f"not run: {reason}")
    shapes = {"x": x_shape, "y": y_shape}
    case = cases.all_members()["contract::add"].case
    case = case.mapped(lambda name, value: np.ones(shapes[name], value.dtype))
    message = f"dimensions ... are {y_shape} in argument y and {x_shape} in argument x"
    for mode in {"eager", "compiled", "batched"} - cases.ABSENT_MODES.get(host, set()):
        with pytest.raises(Exception, match=re.escape(message)):
            cases.MODES[mode][0](frameworks.load(host), case)


MISFITS_OF_DIMS = [  # member, the shapes that differ from the sample's, words of the error
    ("linear", {"w": (4, 4)}, "dimension i is 4 in argument w and 3 in argument x"),
    ("linear", {"bias": (5,)}, "dimension o is 5 in argument bias and 4 in argument w"),
    ("linear", {"w": (3,)}, "argument w has 1 dimension (3,), but its entry 'i o' has 2"),
    ("linear", {"x": (2, 2, 3)}, "argument x has 3 dimensions (2, 2, 3), but its entry 'b i' has 2"),
    # a tracer's symbols are not compared with 0: PyTorch itself refuses a negative one
    (
        "window",
        {"w": (7,)},
        "output 0: the size n-k+1 is -1, for n=5, k=7|Trying to create tensor with negative dimension",
    ),
    ("window", {"x": ()}, "argument x has 0 dimensions (), but its entry '... n' has at least 1"),
    ("halves", {"x": (4, 5, 3)}, "dimension n is 4 and 5 in argument x"),
    ("halves", {"x": (4, 4, 2)}, "dimension 2 of argument x is 2, but must be 3"),
    ("halves", {"ys[1]": (5, 2)}, "dimension n is 5 in argument ys[1] and 4 in argument x"),
    ("halves", {"ys[0]": (4, 3)}, "dimension k is 3 in argument ys[0] and 2 in attribute k"),
    (
        "halves",
        {"x": (3, 3, 3), "ys[0]": (3, 2), "ys[1]": (3, 2)},
        "output 0: the size n/2 is not whole: 3 / 2, for n=3",
    ),
]


@pytest.mark.slow(11)
@pytest.mark.parametrize(("name", "shapes", "message"), MISFITS_OF_DIMS, ids=str)
@pytest.mark.parametrize("host", frameworks.HOSTS)
def test_shapes_that_contradict_dims(host, name, shapes, message):
    """No framework runs a kernel on sizes that do not fit ``dims=``, in any mode; the words are the same."""
    reason = frameworks.absent(host)
    if reason:
        pytest.skip(f"not run: {reason}")
    case = cases.all_members()[f"contract::dims_{name}"].case
    case = case.mapped(lambda tensor, value: np.ones(shapes.get(tensor, value.shape), value.dtype))
    for mode in {"eager", "compiled", "batched"} - cases.ABSENT_MODES.get(host, set()):
        with pytest.raises(Exception, match="|".join(map(re.escape, message.split("|")))):
            cases.MODES[mode][0](frameworks.load(host), case)


def test_every_kind_of_kernel_has_a_member():
    kinds = set()
    for package in (polyop.kernels, polyop.providers):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if ".aten" in info.name and frameworks.absent("torch"):
                continue
            if ".triton" in info.name and importlib.util.find_spec("triton") is None:
                continue
            if ".opencl" in info.name:  # tests/hosts/pyopencl: its arrays are of no framework here
                continue
            module = __import__(info.name, fromlist=["_"])
            kinds |= {
                kind
                for kind in vars(module).values()
                if inspect.isclass(kind)
                and hasattr(kind, "refuse")
                and hasattr(kind, "native")
                and not getattr(kind, "_is_protocol", False)
                and not hasattr(kind, "base")  # derived of another: tests/loops/derive
            }
    operators = [member.case.operator for member in cases.all_members().values()]
    for rule in [operator.gradient for operator in operators]:
        parts = [getattr(rule, part, None) for part in ("saving", "backward")]  # of a module's gradient
        operators += [part.operator for part in parts if hasattr(part, "operator")]
    covered = {type(kernel) for operator in operators for kernel in operator.kernels}
    assert len(kinds) >= 5
    missing = {kind.__name__ for kind in kinds if not any(issubclass(c, kind) for c in covered)}
    assert not missing


def test_the_list_of_cases_is_that_of_the_operators(golden):
    golden("contract/members.txt", cases.members_and_modes())


@pytest.mark.parametrize("host", frameworks.HOSTS)
def test_known_failures_are_cases(host):
    unknown = set(xfails.read(host)) - set(cases.of_host(host))
    assert not unknown, f"xfail/{host}.txt has lines that match no case: {sorted(unknown)}"


def test_a_known_failure_needs_a_reason(tmp_path):
    (tmp_path / "jax.txt").write_text("# a comment\neager contract::cube: because\neager contract::add\n")
    with pytest.raises(ValueError, match=r"jax.txt:3: needs 'mode member: reason'"):
        xfails.read("jax", tmp_path)


def test_other_environments_have_results():
    folder = os.environ.get("POLYOP_CONTRACT_PEER")
    if not folder:
        pytest.skip("not run: POLYOP_CONTRACT_PEER names no results of another environment")
    hosts = {host for rows in cases.peers().values() for host, _, _ in rows}
    assert "numpy" in hosts
    for host in hosts:
        print(f"{host}: compared with {folder}")
