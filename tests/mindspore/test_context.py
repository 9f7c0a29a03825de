"""``set_context`` and devices. Settings of the process are tested in a subprocess."""

import os
import subprocess
import sys

import pytest
import torch

import polyop.mindspore as ms


def run(program, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "POLYOP_ASCEND"}
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**environment, **variables},
        check=False,
    )


def test_defaults_and_settings():
    assert ms.get_context("mode") == ms.PYNATIVE_MODE
    assert ms.context.get_context("device_target") == "CPU"
    ms.context.set_context(mode=ms.context.GRAPH_MODE, device_target="CPU", save_graphs=True)
    assert (ms.get_context("mode"), ms.get_context("save_graphs")) == (ms.GRAPH_MODE, True)
    ms.set_context(save_graphs=False)
    ms.set_device("CPU")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"mode": 2}, ValueError, r"mode must be GRAPH_MODE \(0\) or PYNATIVE_MODE \(1\), but got 2"),
        (
            {"device_target": "TPU"},
            ValueError,
            "device_target must be one of CPU, GPU, Ascend, but got 'TPU'",
        ),
        ({"device_id": -1}, TypeError, "device_id must be an int from 0, but got -1"),
        (
            {"device_idd": 0},
            ValueError,
            "must be a setting of MindSpore, but got device_idd\n  did you mean device_id?",
        ),
    ],
)
def test_wrong_settings(settings, error, message):
    with pytest.raises(error, match=message):
        ms.set_context(**settings)


def test_an_unknown_name():
    with pytest.raises(ValueError, match="get_context: must be one of mode, device_target"):
        ms.get_context("nope")


def test_a_refused_setting_changes_nothing():
    with pytest.raises(ValueError, match="device_target must be"):
        ms.set_context(mode=ms.GRAPH_MODE, device_target="TPU")
    assert ms.get_context("mode") == ms.PYNATIVE_MODE


def test_a_gpu():
    count = torch.cuda.device_count()
    with pytest.raises(
        RuntimeError, match=f"device_target is 'GPU' with device_id {count}, and PyTorch finds {count}"
    ):
        ms.set_context(device_target="GPU", device_id=count)
    if count:
        ms.set_context(device_target="GPU", device_id=0)
        assert ms.Tensor(1.0).device == ms.ops.zeros((2,)).device == "GPU:0"


@pytest.mark.slow
def test_ascend_names_the_switch():
    done = run("import polyop.mindspore as ms; ms.set_context(device_target='Ascend')")
    assert "HostError: Ascend: CANN is not installed" in done.stderr
    assert "POLYOP_ASCEND=rehearse" in done.stderr


@pytest.mark.slow
def test_ascend_in_rehearsal():
    program = """
import warnings
import polyop, polyop.mindspore as ms
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ms.set_device("Ascend")
    ms.set_context(device_target="Ascend")
    print(ms.Tensor(2.0) * 3)
print([w.category.__name__ for w in caught], caught[0].message)
"""
    done = run(program, POLYOP_ASCEND="rehearse")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6.0\n['FallbackWarning']")
    assert "runs on the CPU" in done.stdout


def test_without_pytorch():
    program = """
import sys
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
import polyop.mindspore
"""
    done = run(program)
    assert "HostError: polyop.mindspore: runs on PyTorch, which is not installed" in done.stderr
    assert "pip install 'polyop[torch]'" in done.stderr


def test_polyop_itself_does_not_import_it():
    done = run(
        "import sys, polyop; print([n for n in sys.modules if n.startswith(('torch', 'polyop.mindspore'))])"
    )
    assert done.stdout == "[]\n"
