"""``polyop demo``: define and build an operator, and call it from every installed framework."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..call.bound import BoundOperator
from ..define.operator import operator
from ..kernels.source import source
from ..testing.frameworks.framework import HOSTS, DemoRow, absent, load
from .terminal import say, say_json

CODE = """
#include "polyop/abi.h"

static int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}

int leaky(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
          void *stream, void *extra) {
  const float *x = params[0];
  float *y = params[1];
  for (int64_t i = 0, n = count(ndims[0], shapes[0]); i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0.01f * x[i];
  return 0;
}

int leaky_backward(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                   void *stream, void *extra) {
  const float *x = params[0], *dy = params[1];
  float *dx = params[2];
  for (int64_t i = 0, n = count(ndims[0], shapes[0]); i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : 0.01f * dy[i];
  return 0;
}
"""


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verbs.add_parser("demo", help="define, build and call a real operator in each framework found")
    parser.add_argument("--json", action="store_true", help="print the values and times as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the operator's values, gradients and time per call in each framework."""
    started = time.perf_counter()
    kernel = source(function="leaky", code=CODE, language="c")
    built = time.perf_counter() - started
    backward = operator(
        "demo::leaky_backward(Tensor x, Tensor dy) -> Tensor",
        source(function="leaky_backward", code=CODE, language="c"),
        batch="elementwise",
    )
    leaky = operator(
        "demo::leaky(Tensor x) -> Tensor",
        kernel,
        gradient=lambda x, out, dout: (backward(x, dout),),
        batch="elementwise",
    )
    if not options.json:
        say(f"{leaky.schema}\n  C kernel built or found in the cache in {built * 1e3:.0f} ms\n")
    x = np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32)
    rows = [
        (name, _flat(value), _flat(grad), _microseconds(call)) for name, value, grad, call in _rows(leaky, x)
    ]
    agree = len({(value, grad) for _, value, grad, _ in rows}) == 1
    if options.json:
        keys = ("framework", "value", "gradient", "microseconds")
        calls = [dict(zip(keys, row, strict=True)) for row in rows]
        facts = {"operator": str(leaky.schema), "build_seconds": built, "calls": calls, "agree": agree}
        say_json(facts)
        return 0 if agree else 1
    _print([(name, value, grad, f"{call:.2f}") for name, value, grad, call in rows])
    say("\nall agree" if agree else "\nTHEY DIFFER")
    return 0 if agree else 1


def _rows(leaky: BoundOperator, x: Any) -> Iterator[DemoRow]:
    for name in HOSTS:
        reason = absent(name)
        if reason:
            say(f"{reason}: not shown", file=sys.stderr)
            continue
        yield from load(name).demo(leaky, x)


def _flat(value: Any) -> str:
    return " ".join(f"{float(item):g}" for item in value.reshape(-1))


def _microseconds(call: Callable[[], Any], number: int = 2000) -> float:
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(number):
            call()
        best = min(best, time.perf_counter() - started)
    return best / number * 1e6


def _print(rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("called from", "value", "gradient of the sum", "us per call")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
