"""``polyop bench``: peers in each framework, values that differ, comparison of runs, the picture."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from polyop.bench import comparison
from polyop.bench.peers import find_peer
from polyop.cli.main import main
from polyop.core.errors import ArgumentValueError

TEXT = """
import numpy as np
import polyop


@polyop.kernel(name="benched::silu")
def silu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / (1.0 + exp(-x[i, j]))
    return y


@polyop.kernel(name="benched::rows")
def rows(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i] = total
    return y


def same(x):
    return x / (1 + np.exp(-x))


def other(x):
    return x + np.float32(0.01)


def fails(x):
    raise RuntimeError("no")
"""
INPUT = ["--input", "float32[8,16]", "--rounds", "2"]


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "benched.py"
    path.write_text(TEXT)
    return str(path)


def bench(file, tmp_path, *arguments):
    out = tmp_path / "out.json"
    code = main(["bench", file, *arguments, "--json", str(out)])
    return code, json.loads(out.read_text())["rows"]


@pytest.mark.parametrize("gradient", [False, True])
def test_peers_of_each_framework(file, tmp_path, capsys, gradient):
    peers = ["torch:silu", "jax:jax.nn.silu"] + ([] if gradient else [f"{file}:same"])
    options = [word for peer in peers for word in ("--against", peer)] + ["--gradient"] * gradient
    code, rows = bench(file, tmp_path, "silu", *INPUT, *options)
    text = capsys.readouterr().out
    assert code == 0, text
    assert {row["beside"] for row in rows if row["unit"] == "x"} == set(peers)
    assert {row["framework"] for row in rows if row["unit"] == "s"} == {"torch", "jax", "numpy"} - (
        {"numpy"} if gradient else set()
    )
    for row in rows:
        assert 0 < row["low"] <= row["value"] <= row["high"]
        assert row["of_roof"] > 0
    written = 512 * (2 if gradient else 1)
    assert f" {written} written" in text or "e+03 written" in text
    assert "roof: " in text


@pytest.fixture
def narrow_jax():
    """JAX as it starts: without 64 bits."""
    jax = pytest.importorskip("jax", reason="not run: JAX is not installed")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    yield jax
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("bits", [32, 64])
def test_a_peer_in_jax_computes_in_the_dtype_of_the_inputs(file, tmp_path, narrow_jax, bits):
    options = ["--input", f"float{bits}[8,16]", "--rounds", "1", "--against", "jax:jax.nn.silu"]
    code, rows = bench(file, tmp_path, "silu", *options)
    assert (code, [row["beside"] for row in rows if row["unit"] == "x"]) == (0, ["jax:jax.nn.silu"])
    assert narrow_jax.config.jax_enable_x64 == (bits == 64)


def test_arguments_of_a_peer(file, tmp_path):
    code, rows = bench(file, tmp_path, "rows", *INPUT, "--against", "numpy:sum(axis=1)")
    assert (code, rows[1]["beside"]) == (0, "numpy:sum(axis=1)")


@pytest.mark.parametrize(
    ("peer", "said"),
    [
        ("other", "its values differ: output 0[0, 0]: polyop gives"),
        ("fails", "its call fails: RuntimeError: ['no']"),
    ],
)
def test_a_peer_with_other_values_is_no_peer(file, tmp_path, capsys, peer, said):
    code, rows = bench(file, tmp_path, "silu", *INPUT, "--against", f"{file}:{peer}")
    assert code == 1
    assert [row["beside"] for row in rows] == [""]
    assert f"NOT A PEER: {file}:{peer}: {said}" in capsys.readouterr().out


@pytest.mark.parametrize(("scale", "code"), [(1e6, 0), (1e-12, 3)])
def test_slower_than_an_earlier_run(file, tmp_path, capsys, scale, code):
    """An earlier run that took days, or less than light takes for a millimetre."""
    _, rows = bench(file, tmp_path, "silu", *INPUT)
    row = {**rows[0], **dict.fromkeys(("value", "low", "high"), scale)}
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"machine": {"processor": "another"}, "rows": [row]}))
    assert bench(file, tmp_path, "silu", *INPUT, "--compare", str(old))[0] == code
    text = capsys.readouterr().out
    assert "the runs are of different processors: another and" in text
    assert f"{1 if code else 0} rows are slower than before" in text


def test_what_is_slow_once_is_not_slower():
    old, slow, fine = ({"name": "f", "beside": "", "value": v, "low": v, "high": v} for v in (1, 9, 1))
    measured = iter([[slow], [fine]])
    assert comparison.confirmed([old], [slow], lambda _: next(measured)) == []
    assert comparison.confirmed([old], [slow], lambda _: [slow]) == [(old, slow)]


def test_the_picture_has_every_contestant_and_the_roofs(file, tmp_path):
    path = tmp_path / "out.svg"
    options = ["--against", f"{file}:same", "--picture", str(path)]
    assert main(["bench", file, "silu", *INPUT, *options]) == 0
    texts = [element.text for element in ET.parse(path).getroot().iter() if element.tag.endswith("}text")]
    text = " ".join(filter(None, texts))
    for word in ("polyop in NumPy", f"{file}:same in NumPy", "dram", "l1", "float32", "operations per byte"):
        assert word in text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("silu", "must look like torch:silu"),
        ("torch:", "must look like torch:silu"),
        ("torch:no_such_function", "must name a function of torch.nn.functional, torch, torch.special"),
        ("numpy:sum(axis=x)", "takes literal arguments"),
        ("numpy:pi", "must name a function of numpy"),
    ],
)
def test_unknown_peers_are_errors(text, rule):
    with pytest.raises(ArgumentValueError, match=rule):
        find_peer(text, lambda name: None)


def test_the_modules_of_short_names():
    x = np.float32([1.0, 2.0])
    assert find_peer("numpy:numpy.linalg.norm", lambda name: None).function(x) == np.linalg.norm(x)
    assert find_peer("torch:erfinv", lambda name: None).function.__name__ == "erfinv"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ([], "must be named"),
        (["silu", "--rounds", "0"], "must be 1 or more"),
        (["silu", "--host", "abacus", "--input", "float32[2,2]"], "must be one of numpy, torch, jax"),
        (["silu", "--compare", "nowhere.json"], "must be the JSON of an earlier run"),
        (["silu", "--from", "nowhere.json", "--input", "float32[2,2]"], "leave --input and --attribute out"),
    ],
)
def test_errors_of_options(file, capsys, options, rule):
    assert main(["bench", file, *options]) == 1
    assert rule in capsys.readouterr().err
