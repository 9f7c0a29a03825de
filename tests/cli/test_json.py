"""``--json`` of every verb that prints facts: the facts are those of the text, and stdout has nothing else."""

import importlib.util
import json
import subprocess
import sys
import zipfile

import pytest

from polyop.binary.elf import own_machine
from polyop.cli.main import main
from polyop.testing.frameworks.framework import FRAMEWORKS, HOSTS

MODULE = """
import polyop

@polyop.kernel
def running(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total = total * x[i, j] + 1.0
            y[i, j] = total
    return y
"""


@pytest.fixture
def module(tmp_path):
    (tmp_path / "facts.py").write_text(MODULE)
    return tmp_path / "facts.py"


def printed(capsys, *arguments):
    code = main([str(one) for one in arguments])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def test_explain_has_its_facts_and_the_tree_of_loops(module, capsys):
    words = ("explain", module, "running", "--input", "float32[8,4]")
    text = printed(capsys, *words)
    [facts] = json.loads(printed(capsys, *words, "--json"))
    assert facts["operator"] == "facts::running" and facts["schema"] == text.splitlines()[0]
    for label, rows in facts["facts"].items():
        for row in rows:
            assert f"  {label:<11} {row['text']}".rstrip() in text
            assert all(detail in text for detail in row["details"])
    [outer] = facts["loops"]
    [inner] = outer["inside"]
    assert outer["loop"] == "i" and "parallel" in outer["roles"]
    assert (inner["loop"], inner["line"], inner["roles"]) == ("j", 9, ["serial"])
    assert inner["why"] == "line 10 both writes and reads total"
    drawn = text.partition("  loops\n")[2].splitlines()
    assert drawn[0].startswith("    `- i  parallel") and drawn[1].startswith(
        f"       `- j  serial: {inner['why']}"
    )


def test_inspect(tmp_path, sources, capsys):
    printed(capsys, "build", sources / "add.cc", "-o", tmp_path / "add.so")
    facts = json.loads(printed(capsys, "inspect", tmp_path / "add.so", "--json"))
    assert "CustomAdd" in [row["operator"] for row in facts["operators"]]
    assert facts["facts"]["library"] == [str(tmp_path / "add.so")]
    with zipfile.ZipFile(tmp_path / "model.pt2", "w") as archive:
        archive.write(tmp_path / "add.so", "m/data/add.so")
    facts = json.loads(printed(capsys, "inspect", tmp_path / "model.pt2", "--json"))
    assert facts["facts"]["library"] == [f"m/data/add.so ({own_machine()})"]


def test_build_names_the_library_that_it_made(tmp_path, sources, capsys):
    words = ("build", sources / "add.cc", "-o", tmp_path / "add.so")
    facts = json.loads(printed(capsys, *words, "--json"))
    assert facts == {"library": printed(capsys, *words).strip(), "sources": [str(sources / "add.cc")]}


@pytest.mark.slow
def test_export_has_the_operators_of_its_text(tmp_path):
    (tmp_path / "facts.py").write_text(MODULE)
    words = ["export", "facts.py", "-o", "libfacts.so", "--signature", "facts::running=float64[:,:]"]

    def exported(*more):  # in a process each: the module is loaded once
        command = [sys.executable, "-m", "polyop", *words, *more]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    facts = json.loads(exported("--json"))
    schemas = [f"  {row['schema']}" for row in facts["operators"]]
    assert exported().splitlines() == ["libfacts.so", *schemas]
    by_name = {row["name"]: row for row in facts["operators"]}
    assert by_name["facts::running"]["backward"] in by_name


def test_graph_says_what_is_in_the_file(tmp_path, capsys):
    header = tmp_path / "ops.h"
    header.write_text(
        "REG_OP(Add).INPUT(x, ge::TensorType::ALL()).OUTPUT(z, ge::TensorType::ALL()).OP_END_FACTORY_REG(Add)\n"
        "REG_OP(If).GRAPH(then_branch).OP_END_FACTORY_REG(If)\n"
    )
    words = ("graph", "reg-op", header, "--json")
    facts = json.loads(printed(capsys, *words, "-o", tmp_path / "made.py"))
    assert (facts["operators"], facts["skipped"]) == (["Add"], {"If": "graph"})
    assert "def Add(" in (tmp_path / "made.py").read_text()
    assert main([str(word) for word in words]) == 1
    assert "--json: needs -o OUT" in capsys.readouterr().err


@pytest.mark.slow  # every framework is imported
def test_demo_calls_each_framework_that_is_here():
    done = subprocess.run(
        [sys.executable, "-m", "polyop", "demo", "--json"], capture_output=True, text=True, check=False
    )
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["agree"]) == (0, True)
    here = {FRAMEWORKS[name] for name in HOSTS if importlib.util.find_spec(name)}
    assert here <= {row["framework"] for row in facts["calls"]}


def test_a_package_without_libraries(tmp_path, capsys):
    with zipfile.ZipFile(tmp_path / "model.pt2", "w") as archive:
        archive.writestr("weights", b"1")
    assert main(["inspect", str(tmp_path / "model.pt2")]) == 1
    assert "must have a shared library in it, but got 1 other files" in capsys.readouterr().err


def test_audit_of_a_wheel_that_breaks_its_promise(tmp_path, capsys):
    with zipfile.ZipFile(tmp_path / "empty-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("empty-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: empty\nVersion: 1.0\n")
    code = main(["audit", str(tmp_path / "empty-1.0-py3-none-any.whl"), "--json"])
    [report] = json.loads(capsys.readouterr().out)
    assert code == 1 and not report["ok"] and report["breaches"]
    assert dict(report["facts"])["wheel"] == "empty-1.0-py3-none-any.whl"


def test_cache_with_and_without_its_action(capsys):
    first, second = (
        json.loads(printed(capsys, "cache", *words)) for words in (("--json",), ("list", "--json"))
    )
    assert first["folder"] == second["folder"] and set(first) == {
        "folder",
        "max_bytes",
        "max_seconds",
        "entries",
    }


@pytest.mark.slow(2)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, tmp_path):
    pytest.importorskip("shtab", reason="not run: shtab is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "polyop", "completion", shell], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "explain" in done.stdout and "print-after" in done.stdout
    if shell != "bash":
        return
    script = tmp_path / "polyop.bash"
    script.write_text(done.stdout)
    ask = f'source "{script}"; COMP_WORDS=(polyop "$@"); COMP_CWORD=$#; COMPREPLY=(); '
    ask += 'eval "$(complete -p polyop | sed "s/.*-F \\([^ ]*\\) .*/\\1/")"; echo "${COMPREPLY[@]}"'
    for words, wanted in ((("ex",), {"explain", "export"}), (("new", "--ki"), {"--kind"})):
        bash = ["bash", "-c", ask, "bash", *words]
        got = subprocess.run(bash, capture_output=True, text=True, check=False)
        assert wanted <= set(got.stdout.split()), got.stdout + got.stderr


def test_completion_without_shtab(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "needs shtab, which is not installed\n  pip install shtab" in capsys.readouterr().err
