"""The device types of specs, one row each."""

from __future__ import annotations

from typing import NamedTuple


class Device(NamedTuple):
    """A device type.

    ``target``       how operator information names it; empty: it does not.
    ``c_functions``  whether a kernel on it may be a C function of ``polyop/abi.h``.
    ``on_demand``    whether loop kernels are made for it at their first call, not when they are defined.
    ``to_cpu``       how the tensor ``{}`` of a call is copied to the CPU, and ``from_cpu`` from there.
    """

    name: str
    target: str = ""
    c_functions: bool = False
    on_demand: bool = False
    to_cpu: str = ""
    from_cpu: str = ""


DEVICES = {
    row.name: row
    for row in (
        Device("cpu", "CPU", c_functions=True),
        Device("cuda", "GPU", c_functions=True, to_cpu="{}.cpu()"),
        Device("npu", "Ascend", to_cpu="{}.cpu()"),
        Device(
            "opencl",
            c_functions=True,
            on_demand=True,
            to_cpu="{}.get()",
            from_cpu="pyopencl.array.to_device(queue, {})",
        ),
    )
}
"""The rows by name."""

TARGETS = {name: row.target for name, row in DEVICES.items() if row.target}
"""The device types that operator information can name, and their names there."""

WITH_C_FUNCTIONS = tuple(name for name, row in DEVICES.items() if row.c_functions)
"""The device types on which a kernel may be a C function."""


def one_of(names: tuple[str, ...]) -> str:
    """Return device types as an error lists them.

    >>> one_of(("cpu", "cuda"))
    "'cpu' or 'cuda'"
    """
    return " or ".join(filter(None, [", ".join(map(repr, names[:-1])), repr(names[-1])]))
