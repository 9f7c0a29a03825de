"""Loop kernels compiled ahead of time: used without a compiler, and what happens to kernels that do not fit."""

import importlib.util
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from loop_tools import CALLS, FLOAT32, INDEX, ISAS, use
from wheel_tools import SOURCE, contents, run

import polyop._core
from polyop.loops.ir.grammar import (
    BOOL,
    INT,
    Assign,
    Buffer,
    Const,
    For,
    If,
    Kernel,
    Load,
    Op,
    Size,
    Store,
    Type,
    Var,
)
from polyop.loops.library import shipped
from polyop.loops.targets import isa

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "13_loop_wheel"
FLOAT16 = "import numpy as np, loopops; print(loopops.scale(np.ones(2, np.float16)))"


@pytest.fixture
def copy(loop_installed, tmp_path):
    """Another installation, for tests that spoil it."""
    return shutil.copytree(loop_installed, tmp_path / "copy")


@pytest.fixture(scope="session")
def empty_python(tmp_path_factory, loop_wheel):
    """A new environment with polyop, the two packages that it always imports, and the wheel."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    for package in (np, ml_dtypes):
        source = pathlib.Path(package.__file__).parent
        for path in (source, source.with_name(f"{source.name}.libs")):
            if path.is_dir():
                (site / path.name).symlink_to(path)
    copied = shutil.copytree(
        pathlib.Path(SOURCE) / "polyop", site / "polyop", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    core = pathlib.Path(polyop._core.__file__)  # an editable install has it elsewhere
    (copied / core.name).symlink_to(core)
    with zipfile.ZipFile(loop_wheel) as archive:
        archive.extractall(site)
    return folder / "bin" / "python"


def test_one_wheel_for_every_python(loop_project, loop_wheel):
    assert re.fullmatch(r"loopops-0\.1\.0-py3-none-manylinux_2_\d+_\w+\.whl", loop_wheel.name)
    files = contents(loop_wheel)
    names = sorted(name for name in files if ".dist-info" not in name and not name.endswith(".so"))
    assert names == ["loopops/__init__.py", INDEX, "loopops/kernels.py"]
    libraries = [name for name in files if name.endswith(".so")]
    assert len(libraries) == 8
    assert all(
        re.fullmatch(r"loopops/__polyop__/(scale(__backward)?|softmax(_gradient)?)-\w{12}\.so", n)
        for n in libraries
    )
    for name, content in files.items():
        assert str(loop_project).encode() not in content, name


def test_an_empty_environment_with_no_compiler(empty_python, tmp_path):
    environment = {"PATH": "", "POLYOP_CACHE_DIR": str(tmp_path / "cache")}
    left_out = """
import importlib.util, shutil
assert not [n for n in ("islpy", "torch", "jax", "setuptools", "filelock") if importlib.util.find_spec(n)]
assert not [n for n in ("cc", "gcc", "clang") if shutil.which(n)]
"""
    command = [str(empty_python), "-W", "error", "-c", left_out + CALLS]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "cache").exists()
    done = subprocess.run(
        [str(empty_python), str(EXAMPLE / "use.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "[0. 3. 6.]" in done.stdout, done.stderr


@pytest.mark.slow
def test_pytorch_and_jax_with_no_compiler(loop_installed, without_compilers):
    program = """
import sys
sys.modules["islpy"] = None
import numpy as np, loopops, torch, jax
jax.config.update("jax_enable_x64", True)
for dtype in ("float32", "float64"):
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(dtype)
    a, b = (torch.tensor(x, requires_grad=True) for _ in range(2))
    weights = torch.arange(15.0, dtype=a.dtype).reshape(3, 5)
    (loopops.softmax(a) * weights).sum().backward()
    (torch.softmax(b, 1) * weights).sum().backward()
    torch.testing.assert_close(a.grad, b.grad)
    gradient = jax.jit(jax.grad(lambda v: (loopops.softmax(v) * weights.numpy()).sum()))(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, b.grad, rtol=1e-4, atol=1e-6)
"""
    use(loop_installed, program, **without_compilers)
    assert not pathlib.Path(without_compilers["POLYOP_CACHE_DIR"]).exists()


GRADIENT = """
import numpy as np, loopops
for dtype in (np.float32, np.float64):
    x = np.arange(5, dtype=dtype)
    gradients = loopops.scale.vjp(x, factor=3.0)[1](x)
    assert gradients[0].dtype == dtype and gradients[0].tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_gradient_that_is_derived_needs_no_compiler(loop_installed, without_compilers, seed):
    use(loop_installed, GRADIENT, PYTHONHASHSEED=seed, **without_compilers)


@pytest.mark.slow
def test_gradients_that_were_not_listed(loop_installed, without_compilers):
    program = GRADIENT.replace("np.float32, np.float64", "np.float16,")
    done = use(loop_installed, program, check=False, **without_compilers)
    assert "loop kernel scale" in done.stderr and "no C compiler was found" in done.stderr
    program = """
import numpy as np, polyop, loopops
op = polyop.operator("derived::softmax(Tensor x) -> Tensor", loopops.kernels.softmax)
print(op.vjp(np.ones((1, 2)))[1](np.ones((1, 2)))[0])
"""
    done = use(loop_installed, program, check=False, **without_compilers)
    assert (
        "loop kernel softmax__backward: this derived gradient was not compiled ahead of time; "
        "there are (none): LoopExtension(gradients=[...]) lists them" in done.stderr
    )
    assert use(loop_installed, program).stdout.strip() == "[[0. 0.]]"


@pytest.mark.parametrize("name", isa.available())
def test_each_instruction_set_of_a_library(loop_installed, name):
    if len(isa.family()) == 1:
        pytest.skip(f"{name} is the only instruction set of this family: the library has one function")
    [library] = index_of(loop_installed, "softmax", "float32[:,:]")
    program = f"""
import numpy as np, polyop
op = polyop.Custom("{library}:loop_softmax__{name}", lambda x: x, lambda x: x, func_type="aot")
x = np.random.default_rng(1).normal(size=(5, 37)).astype(np.float32)
e = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(op(x), e / e.sum(1, keepdims=True), rtol=1e-5)
"""
    use(loop_installed, program)


def index_of(loop_installed, function, signature):
    index = json.loads((loop_installed / INDEX).read_text())
    rows = [r for r in index["kernels"] if (r["function"], r["signature"]) == (function, signature)]
    return [loop_installed / "loopops" / "__polyop__" / row["library"] for row in rows]


def test_another_dtype_is_compiled_with_one_warning(loop_installed, tmp_path):
    program = f"""{FLOAT16}
import polyop
again = polyop.operator("again::scale(Tensor x, *, float factor=2.0) -> Tensor", loopops.kernels.scale)
print(again(np.ones(2, np.float16), factor=3.0))
"""
    done = use(loop_installed, program, POLYOP_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout == "[2. 2.]\n[3. 3.]\n"
    assert done.stderr.count("FallbackWarning") == 1
    listed = "there are (float32[:], float; float64[:], float)"
    warning = f"is compiled here: (float16[:], float) was not compiled ahead of time; {listed}"
    assert warning in done.stderr and f"{loop_installed}/loopops/kernels.py" in done.stderr


def test_another_dtype_with_no_compiler(loop_installed, without_compilers):
    done = use(loop_installed, FLOAT16, check=False, **without_compilers)
    assert "BuildError: loop kernel scale: (float16[:], float) was not compiled ahead of time" in done.stderr
    assert "there are (float32[:], float; float64[:], float)" in done.stderr
    assert "no C compiler was found (tried cc, gcc, clang)" in done.stderr
    assert f"{loop_installed}/loopops/kernels.py" in done.stderr


CHANGES = [
    (("SMALLEST)", "SMALLEST) + 1"), "its file has changed since it was compiled", "[3. 3.]"),
    (("SMALLEST = 1e-6", "SMALLEST = 5.0"), "its file has changed since it was compiled", "[5. 5.]"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "message", "gives"), CHANGES)
def test_a_function_that_was_edited_is_compiled_with_a_warning(
    copy, change, message, gives, without_compilers
):
    path = copy / "loopops" / "kernels.py"
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    done = use(copy, FLOAT32)
    assert done.stdout.strip() == gives and message in done.stderr
    done = use(copy, FLOAT32, check=False, **without_compilers)
    assert message in done.stderr and "no C compiler was found" in done.stderr
    use(copy, "import numpy as np, loopops; loopops.softmax(np.ones((2, 2)))", **without_compilers)


@pytest.mark.slow
def test_a_number_that_was_changed_from_outside(copy):
    program = f"import loopops.kernels; loopops.kernels.SMALLEST = 4.0; {FLOAT32}"
    done = use(copy, program)
    assert done.stdout.strip() == "[4. 4.]"
    assert "a number that it reads, its schedule, or polyop, has changed since it was compiled" in done.stderr


INDEX_CHANGES = [
    ({"format": 9}, "the index has format 9, and here it is 1"),
    ({"meaning": 9}, f"compiled by another polyop, at level 9, and here it is {shipped.MEANING}"),
    ({"abi": 9}, "compiled for ABI version 9, and here it is 1"),
    ({"machine": "vax"}, f"compiled for vax, and here it is {platform.machine()}: build its package again"),
    ({"kernels": 5}, "cannot be read (ValueError"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "message"), INDEX_CHANGES)
def test_an_index_that_does_not_fit(copy, change, message, without_compilers):
    path = copy / INDEX
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    done = use(copy, FLOAT32, check=False, **without_compilers)
    assert done.returncode == 1 and message in done.stderr and "Traceback" in done.stderr
    done = use(copy, FLOAT32)
    assert done.stdout.strip() == "[2. 2.]" and message in done.stderr


@pytest.mark.slow
def test_a_damaged_library_is_not_opened(copy):
    [library] = index_of(copy, "scale", "float32[:], float")
    library.write_bytes(library.read_bytes()[:-8] + b"damaged!")
    done = use(copy, FLOAT32)
    assert done.stdout.strip() == "[2. 2.]"
    assert f"{library} is missing or damaged: install its package again" in done.stderr
    library.unlink()
    assert "is missing or damaged" in use(copy, FLOAT32).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("POLYOP_LOOPS_DEBUG", "1", "debug mode is not compiled ahead of time"),
        ("POLYOP_LOOPS_ISA", isa.available()[-1], "is set, and a package ships portable libraries only"),
    ],
)
def test_an_explicit_compilation_gives_no_warning(
    loop_installed, without_compilers, variable, value, message
):
    done = use(loop_installed, FLOAT32, **{variable: value})
    assert done.stdout.strip() == "[2. 2.]" and not done.stderr
    done = use(loop_installed, FLOAT32, check=False, **{variable: value}, **without_compilers)
    assert message in done.stderr and "no C compiler was found" in done.stderr
    assert (
        use(loop_installed, FLOAT32, POLYOP_LOOPS_ISA="portable", **without_compilers).stdout.strip()
        == "[2. 2.]"
    )


def test_it_works_from_any_place(loop_installed, tmp_path, without_compilers):
    folder = shutil.copytree(loop_installed, tmp_path / "with a space" / "päth")
    assert use(folder, FLOAT32, **without_compilers).stdout.strip() == "[2. 2.]"


def explained(loop_installed, dtype, **environment):
    arguments = ("explain", "loopops", "loopops::softmax", "--input", f"{dtype}[8,128]")
    return run("-m", "polyop", *arguments, PYTHONPATH=str(loop_installed), **environment).stdout


def test_explain_names_the_origin_of_a_library(loop_installed, without_compilers):
    [library] = index_of(loop_installed, "softmax", "float32[:,:]")
    text = explained(loop_installed, "float32", **without_compilers)
    assert f"shipped: {library}, compiled ahead of time for {ISAS}, by the same passes" in text
    assert "12: for i in range(x.shape[0]):\n            loop i: parallel: on all threads" in text
    here = explained(loop_installed, "float16")
    assert "compiled here: (float16[:,:]) was not compiled ahead of time" in here
    rows = [line.strip() for line in here.splitlines() if "loop " in line and "kernel" not in line]
    assert rows and all(row in text for row in rows)  # what the index keeps is what the passes decide


DIGESTS = """
import importlib.util, json, sys, types
src, file = sys.argv[1:]
polyop = sys.modules["polyop"] = types.ModuleType("polyop")  # without its compiled part
polyop.__path__, polyop.kernel = [src + "/polyop"], lambda function: function
polyop._core = types.SimpleNamespace(check_interpreter=lambda: None)
spec = importlib.util.spec_from_file_location("kernels", file)
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
from polyop.loops.frontend import parse
from polyop.loops.library import shipped
kernels = [
    parse.parse(module.softmax, [("float32", 2)], {}),
    parse.parse(module.scale, [("float64", 1)], {"factor": float}),
]
print(json.dumps([shipped.digest(one, precise=False) for one in kernels]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.10", "3.13"])
def test_another_python_finds_the_same_libraries(loop_installed, tmp_path, version, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    tool = importlib.util.spec_from_file_location("wheel_tool", ROOT / "tools" / "wheel.py")
    tool.loader.exec_module(module := importlib.util.module_from_spec(tool))
    other = module.find(version)
    if other is None:
        pytest.skip(f"not run: there is no Python {version} here")
    subprocess.run([other, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    got = subprocess.run(
        [python, "-m", "pip", "install", "-q", "numpy", "ml_dtypes"],
        capture_output=True,
        text=True,
        check=False,
    )
    if got.returncode:
        pytest.skip(f"not run: NumPy for Python {version} cannot be had: {got.stderr[-300:]}")
    command = [python, "-B", "-c", DIGESTS, SOURCE, loop_installed / "loopops" / "kernels.py"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((loop_installed / INDEX).read_text())["kernels"]
    assert {row["digest"] for row in rows}.issuperset(json.loads(done.stdout))


def test_a_digest_is_of_the_meaning_alone():
    kernel = Kernel("f", ("x",), {}, {"x": Buffer("x", "int8", (), "inplace", 3)}, ("x",), (), "/a/k.py")
    digest = shipped.digest(kernel, precise=False)
    assert digest == shipped.digest(replace(kernel, file="/b/k.py"), precise=False)
    others = [
        replace(kernel, name="g"),
        replace(kernel, source={3: "def f(x):"}),
        replace(kernel, buffers={"x": Buffer("x", "int16", (), "inplace", 3)}),
        replace(kernel, body=(Assign("t", Const(1, Type("int64"))),)),
        replace(kernel, body=(Assign("t", Const(True, Type("int64"))),)),
    ]
    digests = [shipped.digest(one, precise=False) for one in others]
    assert len({digest, shipped.digest(kernel, precise=True), *digests}) == 7


def test_another_text_of_the_same_kernel_needs_another_level():
    """Shipped libraries are found by it: whoever changes it raises ``MEANING``, and then this digest."""
    size = Size("x", 0)
    few = Op("<=", (size, Const(2, INT)), BOOL)
    y = Buffer("y", "float32", (size,), "output", 2, zeroed=True, zeroed_if=few)
    i, kind = Var("i", INT), Type("float32")
    store = Store("y", (i,), Op("+", (Load("x", (i,), kind, 4), Const(1.0, kind)), kind), line=4)
    loop = For("i", Const(0, INT), size, (If(few, (store,), line=4),), 3)
    buffers = {"x": Buffer("x", "float32", (size,)), "y": y}
    kernel = Kernel("f", ("x", "n"), {"n": INT}, buffers, ("y",), (loop,), source={3: "for"}, derived=True)
    assert (shipped.MEANING, shipped.digest(kernel, precise=False)) == (4, "e834963eceebbe70600facc2")
