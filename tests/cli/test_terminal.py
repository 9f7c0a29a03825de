"""What the commands print of names that come out of files: no control character reaches the terminal."""

import ast
import io
import json
import os
import pathlib
import pty
import subprocess
import sys
import zipfile

import pytest

import polyop.cli
from polyop.build import build
from polyop.cli.main import main
from polyop.cli.terminal import fact, say, say_json
from polyop.core.errors import KernelError, one_line, printable

EVIL = "\x1b[31mred\x1b]0;title\x07\r\b\x7f\x9b2J\u202etxt\u2028it keeps what its name promises"
SHOWN = r"\x1b[31mred\x1b]0;title\x07\r\x08\x7f\x9b2J\u202etxt\u2028it keeps what its name promises"
FINE = "naïve Ω 漢字 🎉 a\u00a0b\u3000c"


def has_control(text):
    return any(not (c.isprintable() or c in "\n\t\u00a0\u3000") for c in text)


@pytest.mark.parametrize(
    ("text", "lines", "line"),
    [
        (EVIL, SHOWN, SHOWN),
        (FINE, FINE, FINE),
        ("", "", ""),
        ("a\nb\tc", "a\nb\tc", r"a\nb\tc"),
        ("\udc80\udcff", r"\udc80\udcff", r"\udc80\udcff"),
        ("\x00\x85\u200b\ufeff", r"\x00\x85\u200b\ufeff", r"\x00\x85\u200b\ufeff"),
        (r"\x1b", r"\x1b", r"\x1b"),
    ],
)
def test_what_is_escaped(text, lines, line):
    assert printable(text) == lines and one_line(text) == line
    assert printable(lines) == lines and one_line(line) == line


def test_errors_and_printed_texts(capsys):
    assert str(KernelError(EVIL, "fails", EVIL)) == f"{SHOWN}: fails, but got {SHOWN}"
    say(f"a\n{EVIL}")
    fact("label", f"a\n{EVIL}")
    assert capsys.readouterr().out == f"a\n{SHOWN}\nlabel:        a\\n{SHOWN}\n"
    say_json({"name": EVIL})
    text = capsys.readouterr().out
    assert not has_control(text) and json.loads(text) == {"name": EVIL}


def test_no_command_prints_without_escaping():
    """``print`` is called in one file alone, and rich gets no plain text but constants."""
    folder = pathlib.Path(polyop.cli.__file__).parent
    found = {
        file.name
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "Text")
    }
    assert found == {"terminal.py"}


def evil_wheel(folder):
    path = folder / "evil-1-py3-none-any.whl"
    name = "evil\x1b[2J\nit keeps what its name promises"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr("evil-1.dist-info/METADATA", f"Requires-Dist: {EVIL}\n".encode())
        archive.writestr("evil-1.dist-info/WHEEL", f"Tag: py3-none-any\nTag: {EVIL}\n".encode())
        archive.writestr("evil-1.dist-info/RECORD", f'"{EVIL}",sha256=x,\n'.encode())
        operators = {"format": 1, "abi": f"{EVIL}\n", "operators": [{"schema": EVIL}]}
        archive.writestr("evil/_ops/operators.json", json.dumps(operators))
    return path


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_audit_of_a_wheel_with_evil_names(tmp_path, capsys, more):
    assert main(["audit", str(evil_wheel(tmp_path)), *more]) == 1
    done = capsys.readouterr()
    assert not has_control(done.out + done.err)
    assert "x1b[2J" in done.out + done.err or "u001b[2J" in done.out
    if not more:
        assert "it keeps what its name promises" not in done.out.splitlines()


def evil_library():
    """Return the bytes of a library whose function, name and run path have such names."""
    flags = ["-Wl,-soname,so\x1b[7mname", "-Wl,-rpath,/\x1b[5m"]
    library = build(code="int evil_with_name(void) { return 1; }", language="c", link_flags=flags)
    return library.read_bytes().replace(b"evil_with_name", b"evil\x1b[31mname_")


def test_inspect_of_a_library_with_evil_names(tmp_path, capsys):
    folder = tmp_path / "a\x1b[35mfolder\u202e"
    folder.mkdir()
    path = folder / "x.so"
    path.write_bytes(evil_library())
    for more in ((), ("--json",)):
        assert main(["inspect", str(path), *more]) in (0, 1)
        done = capsys.readouterr()
        assert not has_control(done.out + done.err)
        assert "x1b[35mfolder" in done.out or "u001b[35mfolder" in done.out
    assert main(["inspect", str(folder / "none.so")]) == 1
    assert not has_control(capsys.readouterr().err)


def test_inspect_on_a_terminal_colours_its_own_words_alone(tmp_path):
    path = tmp_path / "a\x1b[35mb.so"
    path.write_bytes(evil_library())
    parent, child = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "polyop", "inspect", str(path)],
        stdout=child,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "500"},
    ) as process:
        pass
    os.close(child)
    shown = io.BytesIO()
    try:
        while data := os.read(parent, 65536):
            shown.write(data)
    except OSError:  # the end of a terminal
        pass
    finally:
        os.close(parent)
    assert process.returncode == 0
    assert b"\x1b[35m" not in shown.getvalue() and b"\\x1b[35mb.so" in shown.getvalue()
