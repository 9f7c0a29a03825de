"""Every example runs, in a process of its own; each checks its own results."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import programs

EXAMPLES = sorted((pathlib.Path(__file__).parents[1] / "examples").glob("*/main.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.slow(1)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_example(path):
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "command",
    [
        "fsdp.py",
        "fsdp.py --processes 3",
        "fsdp.py --compile",
        "ddp.py --processes 4",
        "ddp.py --compile",
        "tensor_parallel.py",
        "tensor_parallel.py --processes 4",
        "tensor_parallel.py --compile",
        "sequence_parallel.py",
        "sequence_parallel.py --processes 4",
        "sequence_parallel.py --compile",
        "fsdp_of_tensor_parallel.py --processes 4",
        "fsdp_of_tensor_parallel.py --processes 4 --compile",
    ],
)
def test_training_in_several_processes_has_the_losses_of_one(command):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    name, *options = command.split()
    program = programs.start(EXAMPLES[0].parents[1] / "17_distributed" / name, *options)
    ((code, output, problem),) = programs.outputs([program])
    assert code == 0, problem[-3000:]
    count = options[1] if "--processes" in options else 2
    assert [line.split(":")[0] for line in output.splitlines()] == ["one process", f"{count} processes"]


@pytest.mark.slow(1)
@pytest.mark.parametrize("command", ["jax_main.py", "torch_main.py", "torch_main.py --mesh 4 1"])
def test_the_plate_on_four_devices_is_that_of_one_process(command):
    name, *options = command.split()
    pytest.importorskip(name.partition("_")[0], reason="the framework is not installed")
    program = programs.start(EXAMPLES[0].parents[1] / "19_heat" / name, *options)
    ((code, output, problem),) = programs.outputs([program])
    assert code == 0, problem[-3000:]
    assert output.splitlines()[-1].startswith("4 ")
    assert output.endswith("as in one process\n")


@pytest.mark.slow
def test_the_aten_project_as_its_readme_says(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    folder = tmp_path / "aten"
    shutil.copytree(EXAMPLES[0].parents[1] / "05_aten", folder)

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run("setup.py", "leaky_relu.cpp", "leaky_relu_cpu.so")
    assert "[[ 0.    -0.001]\n [-0.002  1.   ]]" in run("test_cpu_op.py")
    for name in ("test_gpu_op.py", "test_cpu_op_in_gpu_device.py"):
        assert run(name)  # the values, or why it cannot run here
