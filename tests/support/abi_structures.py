"""Structures of include/polyop/abi.h, for tests that call a kernel without the core."""

import ctypes


class Attribute(ctypes.Structure):
    """struct polyop_attribute."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("depth", ctypes.c_int32),
        ("count", ctypes.c_size_t),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("floats", ctypes.POINTER(ctypes.c_double)),
        ("strings", ctypes.c_void_p),
        ("rows", ctypes.c_size_t),
        ("row_lengths", ctypes.c_void_p),
    )


class Extra(ctypes.Structure):
    """struct polyop_extra."""

    _fields_ = (
        ("abi_version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("functions", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
    )
