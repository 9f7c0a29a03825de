"""The command line in real processes."""

import importlib.metadata
import re
import subprocess
import sys

import pytest

import polyop.cli.demo
from polyop.cli.main import VERBS, main

MODULE = """
import polyop
half = polyop.operator("cli_tests::half(Tensor x) -> Tensor", lambda x: x / 2, infer="x", gradient=lambda x, out, d: (d / 2,))
"""


def polyop_command(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "polyop", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


def test_help_lists_the_verbs():
    done = polyop_command("--help")
    assert done.returncode == 0
    assert set(re.findall(r"^    (\w+)", done.stdout, re.M)) == {
        "demo",
        "build",
        "check",
        "explain",
        "inspect",
        "cache",
        "graph",
        "new",
        "missing",
        "audit",
        "export",
        "completion",
        "bench",
        "tune",
        "report",
    }


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    "verb", ["demo", "build", "check", "explain", "inspect", "cache", "graph", "new", "missing", "audit"]
)
def test_every_verb_has_help(verb):
    done = polyop_command(verb, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: polyop")


def test_the_command_needs_no_setuptools():
    """A new environment of Python 3.12 and later has none."""
    program = (
        "import sys; sys.modules['setuptools'] = None; from polyop.cli.main import main; main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("usage: polyop"), done.stderr


@pytest.mark.slow
def test_demo_shows_each_framework_and_that_they_agree():
    done = polyop_command("demo")
    assert done.returncode == 0, done.stderr
    assert "NumPy" in done.stdout and "all agree" in done.stdout
    if "not installed" not in done.stdout:
        assert "torch.compile" in done.stdout


def test_explain(tmp_path, golden):
    (tmp_path / "module.py").write_text(MODULE)
    done = polyop_command("explain", "module.py", "cli_tests::half", "--input", "float32[2,3]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    golden("cli/explain.txt", re.sub(r"at  .*module.py", "at  module.py", done.stdout))


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "nowhere.py"), "must be a Python file or an importable module, but got 'nowhere.py'"),
        (("explain", "no_such_module"), "must be a Python file or an importable module"),
        (
            ("explain", "module.py", "cli_tests::hlf"),
            "has no operator 'cli_tests::hlf'\n  did you mean 'cli_tests::half'? it has ",
        ),
        (("explain", "module.py", "--input", "float32(2)"), "must look like float32\\[4,4\\]"),
        (("inspect", "nowhere.so"), "nowhere.so"),
        (("build", "nowhere.c", "-o", "x.so"), "nowhere.c"),
    ],
)
def test_errors_are_messages_without_traceback(tmp_path, arguments, message):
    (tmp_path / "module.py").write_text(MODULE)
    done = polyop_command(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(message, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_of_polyop_shows_its_traceback(monkeypatch):
    def run(options):
        return {}[options.verb]

    monkeypatch.setattr(polyop.cli.demo, "run", run)
    with pytest.raises(KeyError, match="demo"):
        main(["demo"])


def test_build_then_inspect_then_call(tmp_path, sources):
    done = polyop_command("build", sources / "add.cc", "-o", "add.so", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = polyop_command("inspect", "add.so", cwd=tmp_path)
    assert shown.returncode == 0 and "CustomAdd" in shown.stdout
    listed = polyop_command("cache", "list", cwd=tmp_path)
    assert listed.returncode == 0 and "add.cc" in listed.stdout


def test_without_a_verb_the_first_steps_are_shown():
    done = polyop_command()
    assert (done.returncode, done.stderr) == (0, "")
    steps = re.findall(r"^  polyop (\w+) ", done.stdout.partition("first steps:")[2], re.MULTILINE)
    assert len(steps) >= 4 and set(steps) <= set(VERBS)


def test_the_version_is_that_of_the_package():
    done = polyop_command("--version")
    assert (done.returncode, done.stdout) == (0, f"polyop {importlib.metadata.version('polyop')}\n")
