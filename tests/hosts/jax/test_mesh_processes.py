"""A mesh over two processes."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

PROGRAM = pathlib.Path(__file__).with_name("mesh_process.py")
SECONDS = 240


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_two_processes():
    command = [sys.executable, "-W", "error", str(PROGRAM), str(free_port())]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    started = [
        subprocess.Popen(
            [*command, str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        printed = [process.communicate(timeout=SECONDS)[0] for process in started]
    finally:
        for process in started:
            process.kill()  # only those that still run; the other one may wait for a peer
            process.wait()
    for rank, text in enumerate(printed):
        assert f"process {rank} is done" in text, text
        assert started[rank].returncode == 0, text
