"""Programs that leave the process: jax.export, and the persistent compilation cache."""

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("flatbuffers", reason="flatbuffers is not installed: jax.export cannot write files")

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
DEFINE = f"""
import pathlib, sys, jax, jax.numpy as jnp, numpy as np, polyop
jax.config.update("jax_enable_x64", True)
KERNELS = {str(SOURCES / "kernels.c")!r}
cube = polyop.operator(
    "exported::cube(Tensor x, float a=1.0) -> Tensor", polyop.source(KERNELS, function="cube"), infer="x",
    gradient=lambda x, a, out, dout: (3 * a * x**2 * dout, None), batch="elementwise")
halve = polyop.operator("exported::halve(Tensor x) -> Tensor", lambda x: x / 2, infer="x")
@polyop.kernel
def loop(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2.0
    return y
double = polyop.operator("exported::double(Tensor x) -> Tensor", loop, infer="x")
TABLE = np.ones(3)
def table(values):
    return lambda x: x * values
by_table = polyop.operator("exported::by_table(Tensor x) -> Tensor", table(TABLE), infer="x")
def f(x):
    if x.ndim == 2:
        x = by_table(double(x) / 2)
    return halve(cube(x, 2.0)), jax.grad(lambda x: cube(x).sum())(x)
"""
EXPORT = (
    DEFINE
    + """
import jax.export
from polyop.hosts.jax.emit import export_checks
symbolic = sys.argv[2] == "symbolic"
shape = jax.export.symbolic_shape("n, 3") if symbolic else (2, 3)
made = jax.export.export(jax.jit(f), disabled_checks=export_checks())(jax.ShapeDtypeStruct(shape, "float64"))
pathlib.Path(sys.argv[1]).write_bytes(made.serialize())
"""
)
RUN = """
import jax.export
from polyop.hosts.jax.emit import export_checks
export_checks()  # registers the handler with XLA
made = jax.export.deserialize(bytearray(pathlib.Path(sys.argv[1]).read_bytes()))
for rows in map(int, sys.argv[2:]):
    x = np.arange(rows * 3.0).reshape(rows, 3)
    value, gradient = made.call(x)
    np.testing.assert_array_equal(value, x**3)
    np.testing.assert_array_equal(gradient, 3 * x**2)
print("ran")
"""


@pytest.fixture(scope="session")
def artefact(tmp_path_factory):
    """Return the file of a program that another process exported."""
    folder = tmp_path_factory.mktemp("artefact")
    (folder / "export.py").write_text(EXPORT)
    subprocess.run([sys.executable, folder / "export.py", folder / "fixed", "fixed"], check=True, timeout=300)
    return folder / "fixed"


@pytest.mark.slow
def test_an_exported_program_runs_in_a_fresh_process(process, artefact):
    assert process(DEFINE + RUN, artefact, 2) == "ran\n"


@pytest.mark.slow
def test_symbolic_shapes(process, tmp_path):
    process(EXPORT, tmp_path / "symbolic", "symbolic")
    assert process(DEFINE + RUN, tmp_path / "symbolic", 1, 4, 7) == "ran\n"


@pytest.mark.slow
def test_the_artefact_holds_no_address(process, artefact):
    before = artefact.read_bytes()
    again = artefact.parent / "again"
    subprocess.run([sys.executable, artefact.parent / "export.py", again, "fixed"], check=True, timeout=300)
    assert again.read_bytes() == before  # the same program file in another process


@pytest.mark.slow
def test_without_the_operator_the_error_says_what_to_do(process, artefact):
    bare = "import pathlib, sys, jax, numpy as np, polyop\njax.config.update('jax_enable_x64', True)\n"
    printed = process(bare + RUN, artefact, 2, fails=True)
    assert re.search(r"exported::\w+: this program calls it, and this process has not defined it", printed)
    assert "import the module that defines it before the program runs" in printed


CHANGES = [
    ("kernel", 'function="cube"', 'function="square"'),
    ("schema", "float a=1.0", "float a=2.0"),
    ("loop kernel", "x[i, j] * 2.0", "x[i, j] + 40.0"),
    ("array in a closure", "np.ones(3)", "np.full(3, 2.0)"),
    ("python code", "lambda x: x / 2", "lambda x: x / 3"),
    ("older polyop", "TABLE =", "from polyop.loops.library import shipped; shipped.MEANING -= 1; TABLE ="),
]


@pytest.mark.slow(1)
@pytest.mark.parametrize(("old", "new"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_changed_operator_is_refused(process, artefact, old, new):
    assert old in DEFINE
    printed = process(DEFINE.replace(old, new) + RUN, artefact, 2, fails=True)
    assert "the program was made with another definition of the operator" in printed


CACHED = (
    DEFINE
    + """
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_explain_cache_misses", False)
from jax._src import monitoring
events = []
monitoring.register_event_listener(lambda name, **_: events.append(name))
x = jnp.arange(3.0)
value, gradient = jax.jit(f)(x)
np.testing.assert_array_equal(value, np.arange(3.0) ** 3)
np.testing.assert_array_equal(gradient, 3 * np.arange(3.0) ** 2)
hits = [name for name in events if name.endswith("cache_hits")]
misses = [name for name in events if name.endswith("cache_misses")]
print(len(hits), len(misses))
"""
)


@pytest.mark.slow
def test_the_persistent_cache_serves_a_fresh_process(process, tmp_path):
    folder = tmp_path / "cache"
    hits, misses = map(int, process(CACHED, folder).split())
    assert hits == 0 and misses >= 1
    names = {path.name for path in folder.iterdir()}
    again, missed = map(int, process(CACHED, folder).split())
    assert again == misses and missed == 0
    assert {path.name for path in folder.iterdir() if path.name.endswith("-cache")} <= names


@pytest.mark.slow
def test_a_changed_kernel_is_not_taken_from_the_cache(process, tmp_path):
    process(CACHED, tmp_path / "cache")
    changed = CACHED.replace("lambda x: x / 2", "lambda x: x / 4").replace(
        "np.arange(3.0) ** 3)", "np.arange(3.0) ** 3 / 2)"
    )
    assert int(process(changed, tmp_path / "cache").split()[1]) >= 1
