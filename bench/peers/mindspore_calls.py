"""Time a call of polyop and one of MindSpore's ``ops.Custom`` alternately, on one library."""

import json
import sys
import timeit
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mindspore as ms
import numpy as np
from kernels import leaky

from polyop.bench.timing import calls_per_slice

LIBRARY = leaky().operator.kernels[0].path


def gradient_of_leaky(x: Any, _: Any, dout: Any) -> Any:
    return (ms.ops.where(x > 0, dout, 0.01 * dout),)


theirs = ms.ops.Custom(f"{LIBRARY}:leaky", lambda x: x, lambda x: x, func_type="aot", bprop=gradient_of_leaky)
ours = leaky()


@ms.jit
def our_graph(x: Any) -> Any:
    return ours(x)


@ms.jit
def their_graph(x: Any) -> Any:
    return theirs(x)


def their_loss(x: Any) -> Any:
    return theirs(x).sum()


def our_loss(x: Any) -> Any:
    return ours(x).sum()


WORK = {
    "pynative": (ours, theirs),
    "gradient": (ms.value_and_grad(our_loss), ms.value_and_grad(their_loss)),
    "graph": (our_graph, their_graph),
}


def main(work: str, rounds: int, slice_s: float) -> None:
    x = ms.Tensor(np.ones(4, np.float32))
    # MindSpore's calls are asynchronous, so each one is timed until its value is read
    read = "f(x).asnumpy()" if work != "gradient" else "f(x)[1].asnumpy()"
    timers = [timeit.Timer(read, globals={"f": f, "x": x}) for f in WORK[work]]
    counts = [calls_per_slice(timer, slice_s) for timer in timers]
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for i in (0, 1) if turn % 2 else (1, 0):
            times[i].append(timers[i].timeit(counts[i]) / counts[i])
    print(json.dumps(times))


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
