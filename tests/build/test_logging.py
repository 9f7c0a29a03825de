"""What the loggers ``polyop.*`` say: what was compiled, why, and how long it took."""

import logging
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.build import build


@pytest.fixture
def messages(caplog, monkeypatch, tmp_path):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    caplog.set_level(logging.INFO, "polyop")

    def since():
        texts = [f"{one.name}: {one.getMessage()}" for one in caplog.records if one.name.startswith("polyop")]
        caplog.clear()
        return texts

    return since


def test_a_build_says_which_input_has_changed(messages, tmp_path):
    source, header = tmp_path / "one.c", tmp_path / "one.h"
    source.write_text('#include "one.h"\nint one(void) { return ONE; }\n')
    header.write_text("#define ONE 1\n")
    built = build([source])
    [text] = messages()
    assert re.fullmatch(
        rf"polyop\.build: built {source} in \d+\.\d\d s: it was not built before; {built}", text
    )
    build([source])
    assert messages() == []
    header.write_text("#define ONE 1 // the same value\n")
    build([source])
    [text] = messages()
    assert f"s: {header} has changed; " in text
    build([source], flags=["-O1"])
    [text] = messages()
    assert "it was built before, with another text, other options, another compiler or another polyop" in text


def test_a_loop_kernel_says_how_long_its_passes_took(messages, caplog):
    @polyop.kernel
    def logged(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
        for i in range(x.shape[0]):
            y[i] = x[i] + 1
        return y

    logged(np.ones(3, np.float32))
    passes, built = messages()
    assert re.fullmatch(
        r"polyop\.loops: loop kernel logged \(float32\[1d\], float32\[1d\]\): passes and C in \d+\.\d\d s",
        passes,
    )
    assert built.startswith("polyop.build: built ") and "test_logging.py" in built
    caplog.set_level(logging.DEBUG, "polyop")
    logged(np.ones(3))
    assert any(re.search(r"loop kernel logged: plan_loops took \d+\.\d ms", text) for text in messages())


def test_each_kernel_of_a_file_has_a_name_and_what_the_cache_had_is_a_detail(tmp_path):
    (tmp_path / "kernels_of_a_file.py").write_text("""
import numpy as np
import polyop

@polyop.kernel
def once(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y

@polyop.kernel
def twice(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    return y

once(np.ones(3)), twice(np.ones(3)), twice(np.ones(3, np.float32))
""")
    names = [
        f"{tmp_path}/kernels_of_a_file.py: {name}"
        for name in (
            "once (float64[1d], float64[1d])",
            "twice (float64[1d], float64[1d])",
            "twice (float32[1d], float32[1d])",
        )
    ]
    environment = {**os.environ, "POLYOP_CACHE_DIR": str(tmp_path / "cache"), "POLYOP_LOG": "debug"}
    command = [sys.executable, tmp_path / "kernels_of_a_file.py"]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in "12"
    ]
    said = [re.findall(r"polyop\.build: ((?:built|found) .*)", done.stderr) for done in runs]
    assert [re.sub(r" in \d+\.\d\d s|; .*", "", line) for line in said[0]] == [
        f"built {name}: it was not built before" for name in names
    ]
    assert [line.rpartition(": ")[0] for line in said[1]] == [f"found {name} in the cache" for name in names]


PROGRAM = "from polyop.build import build; build(code='int x;', language='c')"


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (None, r""),
        ("", r""),
        ("info", r"polyop\.build: built \S.+code\.c in \d+\.\d\d s: it was not built before; .*\n"),
        ("debug", r"polyop\.build: compiling code\.c\npolyop\.build: built .*\n"),
    ],
)
def test_nothing_is_said_unless_the_variable_asks_for_it(tmp_path, level, said):
    environment = {
        **os.environ,
        "POLYOP_CACHE_DIR": str(tmp_path),
        **({} if level is None else {"POLYOP_LOG": level}),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "" and re.fullmatch(said, done.stderr), done.stderr


@pytest.mark.parametrize("at", ["before", "after"])
def test_a_program_with_handlers_prints_each_message_once(tmp_path, at):
    """Whether it sets them up before or after polyop's first message."""
    setup = "import logging; logging.basicConfig(format='own %(message)s')"
    last = PROGRAM.replace("int x;", "int y;")
    program = "\n".join([setup, PROGRAM, last] if at == "before" else [PROGRAM, setup, last])
    environment = {**os.environ, "POLYOP_CACHE_DIR": str(tmp_path), "POLYOP_LOG": "info"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    starts = [line.partition("built")[0] for line in done.stderr.splitlines()]
    assert starts == (["own "] * 2 if at == "before" else ["polyop.build: ", "own "])


def test_a_level_that_there_is_not(tmp_path):
    (tmp_path / "one.c").write_text("int one;")
    environment = {**os.environ, "POLYOP_CACHE_DIR": str(tmp_path), "POLYOP_LOG": "loud"}
    command = [sys.executable, "-m", "polyop", "build", str(tmp_path / "one.c")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "POLYOP_LOG: must be info or debug, but got 'loud'" in done.stderr
