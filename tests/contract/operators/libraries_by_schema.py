"""Operators of a C++ library by schema: kernels by dispatch key, shapes from Meta, a recorded gradient."""

import pathlib

import numpy as np

import polyop

OPS = pathlib.Path(__file__).parents[3] / "examples" / "11_operator_library" / "ops.cpp"
library = polyop.load_library(OPS, namespaces={"myops": "contract_library"})
members = [library.my_op, library.my_op_backward, library.soften]

x = np.linspace(-1, 2, 12).reshape(3, 4)
polyop_samples = {
    library.my_op.name: (x, x + 0.5),
    library.my_op_backward.name: (x,),
    library.soften.name: (x,),
}
