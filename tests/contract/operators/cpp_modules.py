"""Functions of a C++ module, with gradients recorded from Forward and Backward."""

import pathlib

import numpy as np

import polyop

ops = polyop.CustomOpBuilder(
    "contract_module", [pathlib.Path(__file__).with_name("module.cpp")], backend="CPU"
).load()
members = [getattr(ops, name) for name in ("product", "logistic", "weighted", "sum_and_count", "sum_of_all")]

x = np.linspace(-1, 2, 12).reshape(3, 4)
polyop_samples = {
    ops.product.name: (x, x + 0.5),
    ops.logistic.name: (x,),
    ops.weighted.name: (x,),
    ops.sum_and_count.name: (x, x * 2),
    ops.sum_of_all.name: ([x, x + 1, 2 * x],),
}
