"""Wheels of loop kernels: the arguments of ``LoopExtension``, the build, and the audit."""

import importlib
import json
import re
import shutil
import zipfile

import pytest
from loop_tools import CALLS, FLOAT32, INDEX, ISAS, use
from wheel_tools import build, contents, install, run

from polyop.core.dtypes import dtype
from polyop.core.errors import ArgumentTypeError, ArgumentValueError
from polyop.core.spec import Spec
from polyop.loops.library import shipped
from polyop.wheel import LoopExtension
from polyop.wheel.audit import audit
from polyop.wheel.loop_build import compile_module


@pytest.mark.slow
def test_audit_lists_the_kernels(loop_wheel):
    lines = run("-m", "polyop", "audit", loop_wheel).stdout.splitlines()
    kernels = [line.partition(":")[2].strip() for line in lines if line.startswith("loop kernel:")]
    assert kernels[:2] == [f"softmax(float32[:,:])  [{ISAS}]", f"softmax(float64[:,:])  [{ISAS}]"]
    assert f"scale(float32[:], float)  [{ISAS}]" in kernels
    gradients = [line for line in kernels if line.startswith("scale__backward(bool[], bool[], float")]
    assert len(gradients) == 2 and len(kernels) == 8
    assert any(
        re.fullmatch(r"loop module: +loopops\.kernels, compiled by polyop \S+", line) for line in lines
    )
    assert lines[-1] == "it keeps what its name promises"
    assert not [line for line in lines if line.startswith("note:")]


def spoiled(loop_wheel, folder, change):
    """Return breaches of the wheel with other files, but those of its RECORD."""
    files = contents(loop_wheel)
    change(files)
    path = folder / loop_wheel.name
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return [one for one in audit(path).breaches if "RECORD" not in one]


def with_index(**changed):
    def change(files):
        files[INDEX] = json.dumps({**json.loads(files[INDEX]), **changed}).encode()

    return change


def other_module(files):
    files["loopops/kernels.py"] += b"# more\n"


def other_symbol(files):
    index = json.loads(files[INDEX])
    index["kernels"][0]["symbol"] = "loop_none"
    files[INDEX] = json.dumps(index).encode()


def no_library(files):
    del files["loopops/__polyop__/" + json.loads(files[INDEX])["kernels"][0]["library"]]


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_module, rf"{INDEX} was made from another loopops/kernels\.py: the hashes differ"),
        (lambda files: files.pop("loopops/kernels.py"), "is for loopops.kernels, which is not inside"),
        (other_symbol, r"loopops/__polyop__/softmax-\w+\.so has no function loop_none"),
        (no_library, r"tells of loopops/__polyop__/softmax-\w+\.so, which is not inside"),
        (with_index(abi=7), "has ABI version 7, and this polyop takes 1"),
        (with_index(machine="vax"), "is for vax, and no library is"),
        (with_index(kernels=[{}]), "cannot be read: KeyError"),
    ],
)
def test_audit_finds_broken_information(loop_wheel, tmp_path, change, message):
    breaches = spoiled(loop_wheel, tmp_path, change)
    assert breaches and re.search(message, breaches[0]), breaches


def failure(loop_project, folder, setup=("", ""), module=("", "")):
    """Build the project with other texts in its files; return the finished process."""
    shutil.copytree(loop_project, folder, ignore=shutil.ignore_patterns("build", "dist", "*.egg-info"))
    for path, change in ((folder / "setup.py", setup), (folder / "src/loopops/kernels.py", module)):
        assert change[0] in path.read_text()
        path.write_text(path.read_text().replace(*change))
    return run("-W", "ignore", "setup.py", "-q", "build_ext", "--inplace", cwd=folder, check=False)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("setup", "module", "message"),
    [
        (
            ('"softmax_gradient": ', '"softmax_gradiant": '),
            ("", ""),
            "must name functions of the module, but got 'softmax_gradiant'.*there are softmax, softmax_gradient, scale",
        ),
        (
            ('"scale": "T[:], float"', '"scale": "T[:], T[:]"'),
            ("", ""),
            "takes the tensors x, and 1 numbers after them, but got a signature of 2 tensors and 0 numbers",
        ),
        (
            ('"scale": "T[:], float"', '"scale": "T[:]"'),
            ("factor: float = 2.0", "factor: float"),
            "needs the attribute factor",
        ),
        (('"scale": "T[:], float"', '"scale": "T[], float"'), ("", ""), "x.shape has 0 elements"),
        (
            ("loopops.kernels", "loopops.karnels"),
            ("", ""),
            "must name a module of the project, but got no",
        ),
        (("", ""), ("import polyop", "import poliop"), "cannot be imported: ModuleNotFoundError: .*poliop"),
        (("", ""), ("return y", "return 2 * y"), "loop kernel softmax: the return value .*defined at"),
    ],
)
def test_builds_that_fail(loop_project, tmp_path, setup, module, message):
    done = failure(loop_project, tmp_path / "p", setup, module)
    assert done.returncode == 1 and re.search(message, done.stderr, re.DOTALL), done.stderr


@pytest.mark.slow
def test_a_warning_names_functions_that_are_not_listed(loop_project, tmp_path):
    folder = shutil.copytree(loop_project, tmp_path / "p", ignore=shutil.ignore_patterns("build", "dist"))
    path = folder / "setup.py"
    path.write_text(path.read_text().replace('"softmax_gradient": "T[:,:], T[:,:]",', ""))
    done = run("-W", "ignore:::setuptools", "setup.py", "-q", "build_ext", "--inplace", cwd=folder)
    assert "not listed, so that users need a compiler for them: softmax_gradient" in done.stderr


@pytest.mark.slow
def test_omitted_numbers_have_their_defaults(loop_project, tmp_path, without_compilers):
    setup, module = ('"T[:], float"', '"T[:]"'), ("factor: float = 2.0", "factor=2.0")
    assert failure(loop_project, tmp_path / "p", setup, module).returncode == 0
    [row] = [
        one
        for one in json.loads((tmp_path / "p" / "src" / INDEX).read_text())["kernels"]
        if one["function"] == "scale" and one["signature"].startswith("float32")
    ]
    assert row["signature"] == "float32[:], float"
    assert use(tmp_path / "p" / "src", FLOAT32, **without_compilers).stdout.strip() == "[2. 2.]"


@pytest.mark.slow
def test_options_that_are_kept_as_json(loop_project, tmp_path):
    """As MindSpore's own @kernel leaves them on the function."""
    end = "SMALLEST)\n    return y\n"
    module = (end, end + """scale.compile_attrs = '{"precise": true}'\n""")
    done = failure(loop_project, tmp_path / "p", module=module)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "p" / "src" / INDEX).read_text())["kernels"]
    assert {row["function"] for row in rows if row["precise"]} == {"scale", "scale__backward"}


@pytest.mark.slow
def test_in_place_and_again(loop_project, tmp_path, without_compilers):
    done = failure(loop_project, tmp_path / "p")
    assert done.returncode == 0, done.stderr
    source = tmp_path / "p" / "src"
    assert use(source, FLOAT32, **without_compilers).stdout.strip() == "[2. 2.]"
    before = set((source / "loopops/__polyop__").glob("scale*"))
    path = source / "loopops/kernels.py"
    path.write_text(path.read_text().replace("SMALLEST)", "SMALLEST) + 1"))
    run("-W", "ignore", "setup.py", "-q", "build_ext", "--inplace", cwd=tmp_path / "p")
    after = set((source / "loopops/__polyop__").glob("scale*"))
    assert len(after) == len(before) == 4 and not after & before
    assert use(source, FLOAT32, **without_compilers).stdout.strip() == "[3. 3.]"


@pytest.mark.slow
def test_another_build_folder(loop_project, tmp_path, without_compilers):
    ignored = shutil.ignore_patterns("build", "dist", "*.egg-info", "__polyop__")
    folder = shutil.copytree(loop_project, tmp_path / "p", ignore=ignored)
    before = {path for path in folder.rglob("*") if path.is_file()}
    run("-W", "ignore", "setup.py", "-q", "build_ext", "-b", tmp_path / "out", cwd=folder)
    built = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert {"loopops/__init__.py", "loopops/kernels.py", INDEX} <= built
    assert len([name for name in built if name.endswith(".so")]) == 8
    assert {p for p in folder.rglob("*") if p.is_file() and "egg-info" not in str(p)} == before
    use(tmp_path / "out", CALLS, **without_compilers)


OPERATORS = """
#include <polyop/library.h>
polyop::Tensor same(const polyop::Tensor& x) { return x; }
POLYOP_LIBRARY(loopops_cc, m) { m.def("count(int n) -> Tensor"); }
polyop::Tensor count(int64_t n) { return polyop::empty({n}, polyop::kDouble); }
POLYOP_LIBRARY_IMPL(loopops_cc, CPU, m) { m.impl("count", &count); }
"""


@pytest.mark.slow
def test_beside_operators_in_cxx_that_the_package_imports(loop_project, tmp_path, without_compilers):
    folder = shutil.copytree(loop_project, tmp_path / "p", ignore=shutil.ignore_patterns("build", "dist"))
    (folder / "ops.cpp").write_text(OPERATORS)
    setup = (
        (folder / "setup.py")
        .read_text()
        .replace("import BuildExtension", "import OperatorExtension, BuildExtension")
    )
    setup = setup.replace("ext_modules=[", 'ext_modules=[OperatorExtension("loopops._ops", ["ops.cpp"]),')
    (folder / "setup.py").write_text(setup)
    package = folder / "src/loopops/__init__.py"
    package.write_text("from ._ops import count\n" + package.read_text())
    wheel = build(folder)
    assert wheel.name.startswith("loopops-0.1.0-py3-none-manylinux_")
    assert {"loopops/_ops/libops.so", INDEX} <= set(contents(wheel))
    program = f"{CALLS}\nassert loopops.count(3).shape == (3,)"
    use(install(wheel, tmp_path / "t"), program, **without_compilers)
    assert not audit(wheel).breaches


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("a-b", {"f": "T[:]"}), ArgumentValueError, "must be that of a module, but got 'a-b'"),
        (
            ("a", {}),
            ArgumentTypeError,
            r"LoopExtension a: needs the signatures of its functions, but got \{\}",
        ),
        (("a", ["f"]), ArgumentTypeError, "needs the signatures of its functions"),
        (("a", {"f": "T"}), ArgumentValueError, "a: f: its signature must be one word .*, but got 'T'"),
        (("a", {"f": "T[:;:]"}), ArgumentValueError, "its signature must be"),
        (("a", {"f": "int, T[:]"}), ArgumentValueError, "tensors come first, but got 'int, T"),
        (("a", {"f": "float31[:]"}), ArgumentValueError, "must be one of bool, int8, .* but got 'float31'"),
        (("a", {"f": []}), ArgumentValueError, "needs a signature"),
    ],
)
def test_arguments_that_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        LoopExtension(*arguments)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"dtypes": "float32"}, ArgumentTypeError, "dtypes must be a list, but got 'float32'"),
        ({"gradients": "f"}, ArgumentTypeError, "gradients must be a list, but got 'f'"),
        ({"gradients": ["g"]}, ArgumentValueError, "gradients must name functions of the list, but got 'g'"),
    ],
)
def test_options_that_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        LoopExtension("a", {"f": "T[:]"}, **options)


def test_signatures():
    functions = {"f": ["T[:,:], int64[], float, bool", "bfloat16[:]"], "g": " T[ : , : ,:] "}
    functions["h"] = ["int8[:], None, 'mean', int", 'None, "sum"']
    signatures = LoopExtension("a.b", functions, dtypes=["int8", "uint8"]).signatures
    assert signatures["f"] == [
        ((("int8", 2), ("int64", 0)), (float, bool)),
        ((("uint8", 2), ("int64", 0)), (float, bool)),
        ((("bfloat16", 1),), ()),
    ]
    assert signatures["g"] == [((("int8", 3),), ()), ((("uint8", 3),), ())]
    assert signatures["h"] == [((("int8", 1), None), ("mean", int)), ((None,), ("sum",))]


TOLD = """
import polyop


@polyop.kernel
def picked(x, at):
    y = output_tensor((at.shape[0],), x.dtype)
    for i in range(at.shape[0]):
        y[i] = x[at[i], 0] * 2
    return y


@polyop.kernel
def centred(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] - sum(x[i])
    return y
"""


def test_dimensions_that_uses_tell_need_not_be_written(tmp_path):
    file = tmp_path / "toldops" / "kernels.py"
    file.parent.mkdir()
    file.write_text(TOLD)
    extension = LoopExtension("toldops.kernels", {"picked": "float64[...], int64[...]", "centred": "T[:,:]"})
    assert len(compile_module(extension, file, tmp_path)) == 3
    kernel = importlib.import_module("toldops.kernels").picked.operator.kernels[0]
    typed = kernel.typed([Spec((3, 2), dtype("float64")), Spec((4,), dtype("int64"))], {})
    assert shipped.find(typed, precise=False, checked=False, device="cpu").path
    words = r"centred: nothing says how many dimensions x has, but got float32\[\.\.\.\]"
    with pytest.raises(ArgumentValueError, match=words) as caught:
        compile_module(LoopExtension("toldops.kernels", {"centred": "T[...]"}), file, tmp_path)
    assert "write a colon for each, as in float32[:,:]" in str(caught.value)


CHOICES = """
import polyop


@polyop.kernel
def reduced(x, b=None, mode="mean"):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        y[0] += x[i] * x[i] if b is None else x[i] * b[i]
    if mode != "sum":
        y[0] /= x.shape[0]
    return y
"""


def test_optional_tensors_and_strings_are_compiled_ahead_of_time(tmp_path):
    file = tmp_path / "choiceops" / "kernels.py"
    file.parent.mkdir()
    file.write_text(CHOICES)
    texts = ["float64[:], None, 'mean'", "float64[:], float64[:], 'mean'"]
    extension = LoopExtension("choiceops.kernels", {"reduced": texts}, gradients=["reduced"])
    assert len(compile_module(extension, file, tmp_path)) == 4
    kernel = importlib.import_module("choiceops.kernels").reduced.operator.kernels[0]
    row = Spec((3,), dtype("float64"))
    calls = (((row, None), "mean", True), ((row, row), "mean", True), ((row, row), "sum", False))
    for inputs, mode, there in calls:
        typed = kernel.typed(inputs, {"mode": mode})
        assert bool(shipped.find(typed, precise=False, checked=False, device="cpu").path) == there


SCHEDULES = """
import polyop


@polyop.kernel(
    schedule=polyop.Schedule().tile("i", 2),
    derived_schedules={"backward": polyop.Schedule().tile("i", 4)},
)
def squares(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y
"""


def test_schedules_are_compiled_ahead_of_time_and_belong_to_what_is_shipped(tmp_path):
    file = tmp_path / "scheduleops" / "kernels.py"
    file.parent.mkdir()
    file.write_text(SCHEDULES)
    extension = LoopExtension("scheduleops.kernels", {"squares": ["float64[:]"]}, gradients=["squares"])
    assert len(compile_module(extension, file, tmp_path)) == 2
    squares = importlib.import_module("scheduleops.kernels").squares
    forward, backward = squares.operator.kernels[0], squares.operator.gradient.kernel
    row = Spec((3,), dtype("float64"))
    gradient = squares.operator.gradient.adjoints((row,), {}).adjoint().kernel
    where = {"precise": False, "checked": False, "device": "cpu"}
    for kernel, typed in ((forward, forward.typed((row,), {})), (backward, gradient)):
        found = shipped.find(typed, **where, schedule=kernel.schedule)
        told = [text for rows in found.row["told"].values() for _, text in rows]
        assert f"schedule={kernel.schedule!r}" in {text.partition('.parallel("i')[0] for text in told}
        assert not shipped.find(typed, **where).path, "without its schedule it is another library"
