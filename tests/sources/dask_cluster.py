"""Operators on a cluster of two worker processes. Each check prints its name when it holds."""

import os
import pathlib
import signal
import sys
import tempfile
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import polyop

WAIT = 120  # seconds that a result may take


def kinds(client, operators):
    """A loop kernel with its gradient, a C kernel and a Python kernel run in the workers."""
    x = operators.data((40,))
    smoothed, pull = operators.smooth.vjp(da.from_array(x, chunks=9))
    (grad,) = pull(da.ones(40, chunks=9, dtype=np.float32))
    squared = operators.square(da.from_array(x, chunks=9))
    table = operators.data((40, 6))
    sums = operators.column_sums(da.from_array(table, chunks=(9, 4)))
    values = [future.result(WAIT) for future in client.compute([smoothed, grad, squared, sums])]
    expected, expected_pull = operators.smooth.vjp(x)
    np.testing.assert_allclose(values[0], expected, rtol=1e-6)
    np.testing.assert_allclose(values[1], expected_pull(np.ones(40, np.float32))[0], rtol=1e-6)
    np.testing.assert_array_equal(values[2], x * x)
    np.testing.assert_allclose(values[3], table.sum(0), rtol=1e-5)


def killed(client, operators, calls):
    """A worker dies while blocks are computed, and the result is right."""
    x = operators.data((30, 4))
    future = client.compute(operators.slow_sums(da.from_array(x, chunks=(1, 4))))
    end = time.monotonic() + WAIT
    while len(list(calls.iterdir())) < 4:
        assert time.monotonic() < end
        time.sleep(0.01)
    started = list(calls.iterdir())
    assert len(started) < 30 and not future.done()
    victim = int(started[0].name.partition("-")[0])
    assert victim != os.getpid()
    os.kill(victim, signal.SIGKILL)
    np.testing.assert_allclose(future.result(WAIT), x.sum(0), rtol=1e-5)
    pids = {path.name.partition("-")[0] for path in calls.iterdir()}
    assert len(pids) >= 2 and len(list(calls.iterdir())) >= 30


def undefined(client):
    """The error of a worker that has no such operator names it and says where to define it."""
    own = polyop.operator("cluster::own(Tensor x) -> Tensor", np.negative, dims="n -> n", parallel="n")
    future = client.compute(own(da.ones(4, chunks=2)))
    problem = future.exception(WAIT)
    assert isinstance(problem, polyop.PolyopError), problem
    assert "cluster::own: the pickled operator" in str(problem) and "define it outside" in str(problem), (
        problem
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        calls = pathlib.Path(folder) / "calls"
        calls.mkdir()
        os.environ["CHUNKED_CALLS"] = str(calls)
        dask.config.set({"temporary-directory": folder, "distributed.comm.timeouts.connect": WAIT})
        sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))  # the workers inherit it
        import chunked_operators as operators

        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            assert os.getpid() not in client.run(os.getpid).values()
            kinds(client, operators)
            print("kinds")
            undefined(client)
            print("undefined")
            killed(client, operators, calls)
            print("killed")


if __name__ == "__main__":
    main()
