"""``polyop explain --mesh``: what a call moves on a mesh."""

import itertools

import pytest

from polyop.cli.main import main

FILE = """
import polyop

linear = polyop.operator(
    "{name}::linear(Tensor x, Tensor w) -> Tensor", lambda x, w: x @ w,
    dims="b i, i o -> b o", parallel="b o", sum="i")
joined = polyop.operator("{name}::joined(Tensor[] xs) -> Tensor", lambda xs: xs[0], dims="n* -> n", parallel="n")
scaled = polyop.operator("{name}::scaled(Tensor x, float by) -> Tensor", lambda x, by: x * by, dims="n -> n")
"""
INPUTS = ["--input", "float32[64,32]", "--input", "float32[32,16]"]


_files = itertools.count()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / f"explain_mesh_{next(_files)}.py"
    path.write_text(FILE.format(name=path.stem))
    return path


def lines(capsys, *arguments):
    assert main(["explain", *map(str, arguments)]) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_the_table_follows_the_explanation(file, capsys):
    rows = lines(
        capsys, file, "linear", *INPUTS, "--mesh", "data=4,model=2",
        "--layout", "data,model", "--layout", "model,-",
    )  # fmt: skip
    received = 64 // 4 * 16 * 4  # half of it twice
    assert ["forward", "all-reduce", "model", "out", f"{received / 1024}", "KiB"] in rows
    assert ["w", "float32[32,", "16]", "[model,", "-]", "1.0", "KiB"] in rows
    assert rows.index([f"{file.stem}::linear", "on", "data", "4,", "model", "2"]) > 0


def test_a_tensor_without_a_layout_is_whole(file, capsys):
    rows = lines(capsys, file, "linear", *INPUTS, "--mesh", "data=4", "--layout", "[data, -]")
    assert ["w", "float32[32,", "16]", "[-,", "-]", "2.0", "KiB"] in rows


@pytest.mark.parametrize(
    ("options", "row"),
    [
        (["joined"], ["xs[0]", "float32[64]", "[data]", "64", "B"]),
        (["scaled", "--attribute", "by=2.0"], ["forward", "all-gather", "data", "x", "192", "B"]),
    ],
)
def test_a_list_and_an_attribute(file, capsys, options, row):
    rows = lines(capsys, file, *options, "--input", "float32[64]", "--mesh", "data=4", "--layout", "data")
    assert row in rows


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mesh", "data:4"], "--mesh: must have each axis once, as data=4,model=2, but got 'data:4'"),
        (["--mesh", "a=2,a=2"], "--mesh: must have each axis once"),
        (
            ["--mesh", "a=2", *["--layout", "a"] * 3],
            "--layout: takes one for each --input, of which there are 2",
        ),
        (["--mesh", "a=2", "--layout", "b"], "dimension b can be split over the mesh axes a, but got 'b'"),
    ],
)
def test_what_does_not_fit_is_named(file, options, words, capsys):
    assert main(["explain", str(file), "linear", *INPUTS, *options]) != 0
    assert words in capsys.readouterr().err
