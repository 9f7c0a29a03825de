"""Names that do not exist: the command says which was meant."""

import random
import sys

import pytest

from polyop.cli.load import operators_of
from polyop.cli.main import main

LOOPS = """
import polyop

@polyop.kernel
def wave(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y

@polyop.kernel
def heat(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
    return y
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bech"], "polyop: error: there is no verb 'bech'; did you mean 'bench'?"),
        (["xyzzy"], "there is no verb 'xyzzy'; they are demo, build, check, "),
        (["--vresion"], "unrecognized arguments: --vresion; did you mean '--version'?"),
        (
            ["explain", "a.py", "f", "--inputt", "float32[2]"],
            "polyop explain: error: unrecognized arguments: --inputt float32[2]; did you mean '--input'?",
        ),
        (["explain", "a.py", "f", "--xyzzy=3"], "unrecognized arguments: --xyzzy=3\n"),
    ],
)
def test_verbs_and_options(capsys, arguments, words):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["explain", "report", "bench"])
@pytest.mark.parametrize("name", ["wavee", "names_of_loops::wavee"])
def test_loop_kernels_that_were_not_called_yet_are_named(tmp_path, capsys, verb, name):
    path = tmp_path / "names_of_loops.py"
    path.write_text(LOOPS)
    inputs = ["-o", "x.html"] if verb == "report" else []
    assert main([verb, str(path), name, "--input", "float32[2]", *inputs]) == 1
    meant = name[:-1]
    words = f"polyop {verb}: names_of_loops: has no operator {name!r}\n  did you mean {meant!r}? it has "
    problem = capsys.readouterr().err
    assert words in problem and "names_of_loops::wave, names_of_loops::heat" in problem


@pytest.mark.parametrize("verb", ["explain", "report", "bench", "tune", "check", "export"])
def test_an_operator_is_named_behind_its_file(tmp_path, capsys, verb):
    path = tmp_path / "names_behind_files.py"
    path.write_text(LOOPS)
    inputs = {"check": [], "export": ["-o", "x.so"]}.get(verb, ["--input", "float32[2]"])
    for name in ("wavee", "names_behind_files::wavee"):
        assert main([verb, f"{path}:{name}", *inputs]) == 1
        problem = capsys.readouterr().err
        assert f"has no operator {name!r}\n  did you mean {name[:-1]!r}?" in problem
    assert main([verb, f"{path}:", *inputs]) == 1
    assert f"polyop {verb}: operator: must look like ops.py:myops::add, but got" in capsys.readouterr().err
    if verb in ("explain", "report", "bench", "tune"):
        assert main([verb, f"{path}:wave", "heat", *inputs]) == 1
        assert f"operator: is named already in {path}:wave, but got 'heat'" in capsys.readouterr().err


def test_check_names_operators_too(tmp_path, capsys):
    path = tmp_path / "names_to_check.py"
    path.write_text(LOOPS)
    assert main(["check", f"{path}:waave"]) == 1
    assert "has no operator 'waave'\n  did you mean 'wave'?" in capsys.readouterr().err


def test_a_project_may_be_named_with_hyphens(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-operators"]) == 0
    assert "the package and the folder are called my_operators" in capsys.readouterr().out
    assert (tmp_path / "my_operators" / "src" / "my_operators" / "__init__.py").is_file()


def test_an_error_names_its_verb_once(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == (
        "polyop completion: needs shtab, which is not installed\n  pip install shtab\n"
    )


def test_a_derived_operator_needs_no_namespace(tmp_path, capsys):
    path = tmp_path / "names_of_gradients.py"
    path.write_text(LOOPS)
    assert main(["explain", str(path), "wave__backward"]) == 0
    assert capsys.readouterr().out.startswith("names_of_gradients::wave__backward(")
    assert main(["explain", str(path), "wave__forward_backward"]) == 1
    assert "has no operator 'wave__forward_backward'" in capsys.readouterr().err


def test_files_beside_one_another_may_have_arrays_and_the_name_of_a_module_of_python(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for number, name in enumerate(("first_of_two", "random")):
        (tmp_path / f"{name}.py").write_text(
            f"{LOOPS.replace('wave', f'wave{number}')}\nimport numpy as np\nONES = np.ones(3)\n"
        )
        ((bound, _),) = operators_of(f"{tmp_path / name}.py:wave{number}")
        assert bound.name == f"{name}::wave{number}"
    assert sys.modules["random"] is random
