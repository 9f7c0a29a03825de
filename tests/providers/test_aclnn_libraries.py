"""Libraries of two-phase operators: an author's on the CPU, CANN's, and rehearsal."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import ml_dtypes
import numpy as np
import pytest

from polyop.build import build
from polyop.core.dtypes import DTYPES
from polyop.core.parse import parse
from polyop.kernels.provider import ProviderKernel
from polyop.providers import aclnn
from polyop.providers.aclnn import acl, cann, launch, names, register_library
from polyop.providers.aclnn.two_phase import pairs

ADD = "aclnnAddCustom(Tensor x, Tensor y, Tensor(a!) z) -> ()"
ADD_IN_PLACE = "aclnnInplaceAddCustom(Tensor(a!) selfRef, Tensor other) -> ()"
MIX = (
    "aclnnMix(Tensor[] xs, Tensor? bias, Scalar factor, int[] shift, bool[] flags, float[] weights, int mode,"
    " float eps, bool negate, str text, ScalarType dtype, Tensor(a!) out, int cubeMathType) -> ()"
)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def _forget():
    """Remove the operators that a test registered."""
    before = set(names())
    yield
    for name in set(names()) - before:
        aclnn.forget(name)


@pytest.fixture(scope="session")
def library(sources_of_session):
    return build([sources_of_session / "two_phase.c", sources_of_session / "two_phase_acl.c"])


@pytest.fixture(scope="session")
def sources_of_session():
    return pathlib.Path(__file__).parents[1] / "sources"


@pytest.fixture
def registered(library):
    """The operators of the library, registered from one line for all tests."""
    assert register_library(library, [ADD, MIX]) == ["aclnnAddCustom", "aclnnMix"]
    opened = ctypes.CDLL(str(library))
    opened.acl_live_objects.restype = ctypes.c_int64
    before = opened.acl_live_objects()
    yield opened
    assert opened.acl_live_objects() == before


def mixed(**changes):
    values = {
        "xs": [X, X + 1], "bias": np.full((2, 3), 10, np.float32), "factor": 0.5, "shift": [1, -4], "flags": [True, False, True],
        "weights": [0.25, 0.5], "mode": 7, "eps": 0.125, "negate": False, "text": "", "dtype": "float32",
        "out": np.zeros((2, 3), np.float32), "cubeMathType": 3,
    }  # fmt: skip
    values.update(changes)
    return list(values.values()), values["out"]


MIXED = 0.5 * (2 * X + 1) + 10 + (1 - 4) + 2 + 0.75 + 7 + 0.125


def test_the_pairs_of_a_library(library):
    assert pairs(library) == ["aclnnAddCustom", "aclnnInplaceAddCustom", "aclnnMix"]


def test_an_operator_of_a_library(registered):
    out = np.zeros((2, 3), np.float32)
    launch("AddCustom", [X, X, out])
    assert out.tolist() == (2 * X).tolist()
    assert "aclnnAddCustom" in names()


def test_tensors_of_any_layout(registered):
    whole, out = np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros((3, 4), np.float32).T
    launch("AddCustom", [whole[:, ::2], whole[::-1, :3], out])
    assert out.tolist() == (whole[:, ::2] + whole[::-1, :3]).tolist()
    backwards = np.zeros(4, np.float32)
    launch("AddCustom", [whole[0, :4], np.broadcast_to(np.float32(5), (4,)), backwards[::-1]])
    assert backwards.tolist() == [8, 7, 6, 5]
    launch("AddCustom", [np.float32(1), np.float32(2), out[0, 0:1].reshape(())])
    assert out[0, 0] == 3
    empty = np.zeros((0, 3), np.float32)
    launch("AddCustom", [empty, empty, empty])


def test_every_kind_of_argument_and_a_workspace(registered):
    values, out = mixed()
    launch("Mix", values)
    np.testing.assert_allclose(out, MIXED)
    values, out = mixed(bias=None, factor=2, negate=True, text="half")
    launch("Mix", values)
    np.testing.assert_allclose(out, -0.5 * (2 * (2 * X + 1) - 3 + 2 + 0.75 + 7 + 0.125))
    values, out = mixed(factor=True)
    launch("Mix", values)
    np.testing.assert_allclose(out, MIXED + 0.5 * (2 * X + 1))


def test_a_phase_that_fails(registered):
    with pytest.raises(
        RuntimeError,
        match=r"aclnnAddCustom: aclnnAddCustomGetWorkspaceSize returned 161002\n  EZ1001: x, y and z must have one",
    ):
        launch("AddCustom", [X, X[:1], np.zeros((2, 3), np.float32)])
    with pytest.raises(RuntimeError, match="EZ1001: x, y and z must be float"):
        launch("AddCustom", [X, X, np.zeros((2, 3))])
    values, _ = mixed(cubeMathType=0)
    with pytest.raises(RuntimeError, match="EZ1001: cubeMathType must be 3"):
        launch("Mix", values)


def test_a_workspace_of_the_caller(registered, library):
    from polyop.providers.aclnn.acl import HostMemory, Symbols
    from polyop.providers.aclnn.two_phase import call

    asked, buffer = [], np.zeros(4096, np.uint8)
    symbols = Symbols([ctypes.CDLL(str(library))], "test")
    values, out = mixed(dtype=next(d for d in DTYPES if d.name == "float32"))
    call(
        parse(MIX),
        values,
        symbols,
        HostMemory(),
        allocator=lambda n: asked.append(n) or buffer.ctypes.data,
        stream=1,
    )
    np.testing.assert_allclose(out, MIXED)
    assert asked == [X.size * 8]
    assert buffer.any()
    with pytest.raises(RuntimeError, match="aclnnMix: aclnnMix returned 361001\n  EZ9999: no workspace"):
        values, _ = mixed(dtype=values[10])
        call(parse(MIX), values, symbols, HostMemory(), allocator=lambda n: 0)


def test_a_native_operator_has_no_array_function(registered):
    import array_api_compat.torch as xp

    with pytest.raises(
        NotImplementedError, match="aclnnAddCustom: is machine code: there is no array function"
    ):
        aclnn.evaluate("AddCustom", [X, X], xp)


def test_dtypes_that_c_has_no_type_for(registered):
    with pytest.raises(
        NotImplementedError,
        match="aclnn: has no dtype float8_e4m3fnuz\n  it has bool, int8, .*, float16, float32",
    ):
        launch("AddCustom", [X.astype(ml_dtypes.float8_e4m3fnuz)] * 2 + [np.zeros((2, 3), np.float32)])


@pytest.mark.parametrize(("prototypes", "error", "message"), [
    ([], ValueError, "needs a prototype for each operator that is to be called; it has aclnnAddCustom, aclnnInplaceAddCustom, aclnnMix\n  as "),
    (["aclnnHalf(Tensor x, Tensor(a!) y) -> ()"], RuntimeError, "has no aclnnHalf of two phases; it has aclnnAddCustom, aclnnInplaceAddCustom, aclnnMix"),
    (["aclnnAddCustom(Tensor x) -> Tensor"], ValueError, "aclnnAddCustom: an aclnn operator writes its outputs"),
    ([ADD], ValueError, r"aclnnAddCustom: the name is taken by the one registered at .*test_aclnn_libraries.py:\d+\n  defined at"),
])  # fmt: skip
def test_errors_of_a_library(registered, library, prototypes, error, message):
    with pytest.raises(error, match=message):
        register_library(library, prototypes)


def test_errors_of_a_file(tmp_path, registered):
    text = tmp_path / "text.so"
    text.write_text("no library")
    with pytest.raises(RuntimeError, match=r"text.so.*must be a shared library"):
        register_library(text, [ADD])
    with pytest.raises(
        RuntimeError, match="must export both aclnn<Name>GetWorkspaceSize and aclnn<Name>.*but got seven"
    ):
        register_library(build(code="int seven(void) { return 7; }", language="c"), [ADD])
    lonely = build(
        code="int aclnnOneGetWorkspaceSize(void) { return 0; } int aclnnOne(void) { return 0; }", language="c"
    )
    register_library(lonely, ["aclnnOne(Tensor x, Tensor(a!) y) -> ()"])
    with pytest.raises(
        RuntimeError, match="has no function aclCreateTensor, and nothing.*\n  link it with .*libnnopbase.so"
    ):
        launch("One", [X, X.copy()])


@pytest.fixture(scope="session")
def home(tmp_path_factory, sources_of_session):
    """A stand-in for CANN as it is installed: runtime, operators, and custom operators in both folders."""
    root = tmp_path_factory.mktemp("cann")
    runtime = build([sources_of_session / "two_phase_acl.c"], flags=["-DWITH_RUNTIME"])
    both = [sources_of_session / "two_phase.c", sources_of_session / "two_phase_acl.c"]
    operators = build(both)
    renamed = [f"-DaclnnAddCustom{end}=aclnnPlus{end}" for end in ("", "GetWorkspaceSize")]
    plus = build(both, flags=renamed)
    empty = build(code="int nothing(void) { return 0; }", language="c")
    for place, file in {
        "home/lib64/libascendcl.so": runtime, "home/lib64/libnnopbase.so": runtime,
        "home/lib64/libopapi_math.so": plus, "home/lib64/libopapi.so": operators,
        "custom/op_api/lib/libcust_opapi.so": empty, "opp/vendors/second/op_api/lib/libcust_opapi.so": empty,
        "opp/vendors/first/op_api/lib/libcust_opapi.so": empty,
    }.items():  # fmt: skip
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, root / place)
    (root / "opp/vendors/config.ini").write_text("load_priority=first, absent,second\n")
    return root


@pytest.fixture
def installed(home, monkeypatch):
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home / "home"))
    monkeypatch.setenv("ASCEND_OPP_PATH", str(home / "opp"))
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", f"{home / 'nowhere'}:{home / 'custom'}:")
    monkeypatch.delenv("POLYOP_ASCEND", raising=False)
    return ctypes.CDLL(str(home / "home/lib64/libascendcl.so"))


def test_libraries_are_searched_in_canns_order(installed, home):
    result = [path.replace(f"{home}/", "") for path in cann.operator_libraries()]
    assert result == [
        "custom/op_api/lib/libcust_opapi.so", "opp/vendors/first/op_api/lib/libcust_opapi.so",
        "opp/vendors/second/op_api/lib/libcust_opapi.so", "home/lib64/libopapi_math.so",
        "home/lib64/libopapi.so", "libopapi.so",
    ]  # fmt: skip
    assert cann.available()
    assert cann.has("aclnnMix")
    assert not cann.has("aclnnHalfway")
    assert aclnn.ascend() == "cann"


def test_an_operator_of_cann_on_device_memory(installed):
    installed.acl_copies.restype = installed.acl_live_blocks.restype = ctypes.c_int64
    before = installed.acl_copies()
    out = np.zeros((3, 2), np.float32).T
    cann.launch(parse(ADD), [X, X[:, ::-1], out])
    assert out.tolist() == (X + X[:, ::-1]).tolist()
    assert installed.acl_copies() - before == 4  # three to the device, one back
    dtype = next(d for d in DTYPES if d.name == "float32")
    values, out = mixed(dtype=dtype)
    cann.launch(parse(MIX), values)
    np.testing.assert_allclose(out, MIXED)
    with pytest.raises(RuntimeError, match="aclnnAddCustomGetWorkspaceSize returned 161002"):
        cann.launch(parse(ADD), [X, X[:1], out])
    assert installed.acl_live_blocks() == 0


def test_an_array_that_is_written_and_read_gets_the_result_on_device_memory(installed):
    for x in (X.copy(), X.copy().T, X[:, ::-1].copy()[:, ::-1]):  # dense, with strides, backwards
        before = x.copy()
        cann.launch(parse(ADD_IN_PLACE), [x, x])
        np.testing.assert_array_equal(x, 2 * before)


def test_an_operator_that_cann_does_not_have(installed):
    with pytest.raises(
        NotImplementedError, match=r"aclnnNo: is not an operator of CANN here\n  searched: .*custom/op_api"
    ):
        cann.launch(parse("aclnnNo(Tensor x, Tensor(a!) y) -> ()"), [X, X.copy()])


def test_memory_that_the_device_does_not_have(installed):
    symbols = acl.Symbols([installed], "CANN")
    cann._start(symbols)
    memory = cann.DeviceMemory(symbols)
    with pytest.raises(
        RuntimeError, match="CANN: aclrtMalloc returned 207001\n  the device has no memory left"
    ):
        memory.workspace(1 << 50)


def specs(*shape, device):
    from polyop.core.spec import Spec

    return Spec(shape, "float32", device)


def test_a_kernel_for_ascend_runs_on_cann(installed):
    """An operator without a prototype: inputs, attributes and outputs in the order of CANN's compiler."""
    schema = parse("custom::add(Tensor x, Tensor y) -> Tensor")
    for kernel, device in ((ProviderKernel("Mine"), "npu"), (ProviderKernel("Mine", for_ascend=True), "cpu")):
        with pytest.raises(NotImplementedError, match="aclnnMine: aclnn operators need CANN"):
            kernel.refuse((specs(2, device=device),), ())
    kernel = ProviderKernel("Plus", for_ascend=True)
    spec = specs(2, 3, device="cpu")
    assert kernel.refuse((spec, spec), (spec,)) is None
    (result,) = kernel.call(schema, [X, X], [spec], {})
    assert result.tolist() == (2 * X).tolist()
    with pytest.raises(
        TypeError, match="aclnnPlus: attribute 'how' must be a number, a text or a list, but got {}"
    ):
        kernel.call(schema, [X, X], [spec], {"how": {}})


def test_without_cann(monkeypatch):
    for name in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "POLYOP_ASCEND"):
        monkeypatch.delenv(name, raising=False)
    assert not cann.available()
    with pytest.raises(
        RuntimeError, match=r"Ascend: CANN is not installed.*\n.*rehearse on the CPU: POLYOP_ASCEND=rehearse"
    ):
        aclnn.ascend()
    with pytest.raises(
        RuntimeError, match="aclnnAddCustom: needs CANN, and libascendcl.so and libopapi.so cannot be opened"
    ):
        cann.launch(parse(ADD), [X, X, X.copy()])
    spec = specs(2, device="npu")
    with pytest.raises(RuntimeError, match="POLYOP_ASCEND=rehearse"):
        ProviderKernel("Mul").refuse((spec, spec), (spec,))


def test_another_value_of_the_switch(monkeypatch):
    for value in ("1", "", "Rehearse"):
        monkeypatch.setenv("POLYOP_ASCEND", value)
        with pytest.raises(
            ValueError, match=f"POLYOP_ASCEND: must be 'rehearse' or unset, but got '{value}'"
        ):
            aclnn.ascend()


def test_rehearsal_warns_once_and_runs_on_the_cpu():
    code = """
        import warnings
        import numpy as np
        from polyop.core.parse import parse
        from polyop.core.spec import Spec
        from polyop.kernels.provider import ProviderKernel
        from polyop.providers.aclnn import ascend

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert ascend() == ascend() == "rehearse"
            x = np.float32([1, 2])
            spec = Spec((2,), "float32", "npu")
            kernel = ProviderKernel("Mul")
            assert kernel.refuse((spec, spec), (spec,)) is None
            (product,) = kernel.call(parse("custom::mul(Tensor x, Tensor y) -> Tensor"), [x, x], [spec], {})
        print(product.tolist(), [(w.category.__name__, str(w.message)) for w in caught])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "POLYOP_ASCEND": "rehearse"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "[1.0, 4.0] [('FallbackWarning', 'POLYOP_ASCEND=rehearse: what is meant for Ascend runs on"
    )
    assert done.stdout.count("FallbackWarning") == 1
