"""Operators in other processes: pickled by definition, found by name, or refused with what to do."""

import multiprocessing
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import polyop

X = np.arange(4.0)

MODULE = '''
import polyop
from polyop import Custom

@polyop.kernel
def scaled(x, by: float = {factor}):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * by
    return y

def make(k):
    return Custom(lambda x: x * k, lambda x: x, lambda x: x, "pyfunc")

named = polyop.operator("pickled_ops::named(Tensor x) -> Tensor", lambda x: x * {factor}, infer="x")
first, second = make(2.0), make({factor})
several = Custom(lambda *xs: xs[0] * {factor}, lambda *xs: xs[0], lambda *xs: xs[0], "pyfunc")
loops = Custom(scaled, func_type="hybrid")
source = polyop.operator(
    "pickled_ops::source(Tensor x) -> Tensor",
    polyop.source(function="twice", language="c", code="""
int twice(int n, void **p, int *nd, long long **shapes, const char **types, void *stream, void *extra) {{
  for (long long i = 0; i < shapes[0][0]; ++i) ((double *)p[1])[i] = {factor} * ((double *)p[0])[i];
  return 0;
}}"""),
    infer="x",
)
'''
OPERATORS = ("scaled", "named", "second", "several", "loops", "source")
LOAD = "import pickle, sys; op = pickle.load(sys.stdin.buffer); import numpy; print(op(numpy.arange(4.0)).tolist())"


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pickled")
    (folder / "pickled_ops.py").write_text(MODULE.format(factor="3.0"))
    sys.path.insert(0, str(folder))
    import pickled_ops

    yield pickled_ops
    sys.path.remove(str(folder))


def loaded(data, folder, program=LOAD):
    """Run a program in a process of its own, with the pickle as its input and ``folder`` for imports."""
    path = f"import sys; sys.path.insert(0, {str(folder)!r}); "
    return subprocess.run(
        [sys.executable, "-c", path + program], input=data, capture_output=True, check=False
    )


@pytest.mark.slow(4)
@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
@pytest.mark.parametrize("name", OPERATORS)
def test_another_process_imports_the_module(module, name, used):
    op = getattr(module, name)
    if used:
        assert op(X).tolist() == (3 * X).tolist()
    data = pickle.dumps(op)
    assert pickle.loads(data) is op
    done = loaded(data, pathlib.Path(module.__file__).parent)
    assert done.stdout.decode().strip() == str((3 * X).tolist()), done.stderr.decode()


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", OPERATORS)
def test_another_definition_is_refused(module, name, tmp_path):
    (tmp_path / "pickled_ops.py").write_text(MODULE.format(factor="4.0"))
    data = pickle.dumps(getattr(module, name))
    done = loaded(data, tmp_path)
    text = done.stderr.decode()
    digest = pickle.loads(data).__reduce__()[1][1]
    assert done.returncode == 1 and f"the pickled operator has the digest {digest}" in text, text
    assert "in this process has the digest" in text and "use the same module pickled_ops" in text


def test_a_module_that_cannot_be_imported_is_named(module, tmp_path):
    text = loaded(pickle.dumps(module.scaled), tmp_path).stderr.decode()
    assert "pickled_ops::scaled: the pickled operator, of the digest " in text
    assert "is not defined in this process" in text
    assert "it was defined in the module pickled_ops, which cannot be imported here: No module named" in text


def test_a_derived_operator(module):
    module.scaled.vjp(X)
    backward = module.scaled.gradient.backward
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).name)"
    done = loaded(pickle.dumps(backward), pathlib.Path(module.__file__).parent, program)
    assert done.stdout.decode().strip() == "pickled_ops::scaled__backward", done.stderr.decode()


def test_a_definition_that_was_replaced(module, tmp_path):
    """It is found in its own process; another process has the last definition, and says so."""
    text = MODULE.format(factor="5.0").replace("pickled_ops", "pickled_twice")
    first, marker, rest = text.partition("def make")
    again = first.replace("5.0", "6.0").replace("import polyop", "old = scaled\nold.schema", 1)
    (tmp_path / "pickled_twice.py").write_text(first + again + marker + rest)
    sys.path.insert(0, str(tmp_path))
    try:
        import pickled_twice
    finally:
        sys.path.remove(str(tmp_path))
    old, last = pickled_twice.old, pickled_twice.scaled
    assert old(X).tolist() == (5 * X).tolist() and last(X).tolist() == (6 * X).tolist()
    assert pickle.loads(pickle.dumps(old)) is old and pickle.loads(pickle.dumps(last)) is last
    done = loaded(pickle.dumps(last), tmp_path)
    assert done.stdout.decode().strip() == str((6 * X).tolist()), done.stderr.decode()
    assert "the pickled operator" in loaded(pickle.dumps(old), tmp_path).stderr.decode()


TWICE = """
import polyop

@polyop.kernel
def scaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
    return y

first = scaled

@polyop.kernel
def scaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 3.0
    return y
"""


def test_a_kernel_without_the_name_is_found_before_its_first_use(tmp_path):
    (tmp_path / "pickled_first.py").write_text(TWICE)
    program = "import sys, pickle; import pickled_first as m; m.first.schema; sys.stdout.buffer.write(pickle.dumps(m.first))"
    data = loaded(b"", tmp_path, program).stdout
    assert b"scaled_2" in data
    done = loaded(data, tmp_path)
    assert done.stdout.decode().strip() == str((2 * X).tolist()), done.stderr.decode()


SCRIPT = """
import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import polyop

@polyop.kernel
def scaled(x, by: float = 2.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * by
    return y

squared = polyop.Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc")

def call(op):
    return op(np.arange(3.0)).tolist()

if __name__ == "__main__":
    @polyop.kernel
    def late(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i]
        return y

    print(scaled.name, scaled(np.arange(3.0)).tolist())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(call, [scaled, squared]))
    child = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    done = subprocess.run([sys.executable, "-c", child], input=pickle.dumps(late), capture_output=True)
    print(done.stderr.decode())
"""


def test_a_script_with_spawned_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        "main::scaled [0.0, 2.0, 4.0]",
        "[[0.0, 2.0, 4.0], [0.0, 1.0, 4.0]]",
    ]
    assert "main::late: the pickled operator, of the digest" in done.stdout
    assert "it was defined in the script: define it outside of functions" in done.stdout


def call(op):
    return op(X).tolist()


@polyop.kernel
def doubled(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
    return y


@pytest.mark.slow
def test_a_pool_of_spawned_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(call, (doubled,)) == (2 * X).tolist()
