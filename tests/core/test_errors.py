"""What an error keeps of its parts."""

import pickle

import pytest

from polyop.core.errors import ArgumentTypeError, KernelError, PolyopError, about


class Kernel:
    """What cannot be pickled, as many kernels and tensors."""

    def __str__(self):
        return "kernel k"

    def __reduce__(self):
        raise TypeError("not to be pickled")


@pytest.mark.parametrize("kind", [PolyopError, ArgumentTypeError, KernelError])
def test_errors_travel_between_processes(kind):
    error = kind(Kernel(), "must be small", Kernel(), where="a.py:3", hint="make it small")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (
        str(copy)
        == str(error)
        == "kernel k: must be small, but got kernel k\n  defined at a.py:3\n  make it small"
    )


def test_an_error_about_another_subject():
    error = ArgumentTypeError("tensor", "must be dense", "a sparse one", hint="convert it: .to_dense()")
    other = about("f: argument x", error, "a.py:3")
    assert type(other) is ArgumentTypeError
    words = (
        "f: argument x: must be dense, but got a sparse one\n  defined at a.py:3\n  convert it: .to_dense()"
    )
    assert str(other) == words
