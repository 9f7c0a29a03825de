"""The code of docs/reference/kernel-operators.md: names, attributes and pickles of loop kernels."""
# ruff: noqa: F821 - output_tensor is a word of the language

# [first]
import numpy as np

import polyop


@polyop.kernel
def times(x, factor: float = 2.0, offset=1):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * factor + offset
    return y


print(times.name)  # main::times: this file is the script
print(times.schema)  # main::times(Tensor x, float factor=2.0, int offset=1) -> Tensor
print(times(np.ones(2), 3.0), times(np.ones(2), offset=5))
# [/first]
assert times.name == "main::times"
assert str(times.schema) == "main::times(Tensor x, float factor=2.0, int offset=1) -> Tensor"
assert times(np.ones(2), 3.0).tolist() == [4, 4]
assert times(np.ones(2), offset=5).tolist() == [7, 7]


# [named]
@polyop.kernel(name="shop::half")
def halved(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] / 2
    return y


print(halved.name, halved(np.ones(2)))
# [/named]
assert halved.name == "shop::half"

# [python]
small = np.array([1.0, 2.0], np.float32)
np.testing.assert_array_equal(times.python(small, 3.0), times(small, 3.0))
# [/python]


# [attribute]
@polyop.kernel
def shifted(x, by):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + by
    return y


try:
    shifted(np.ones(2), 1.0)
except polyop.PolyopError as problem:
    print(problem)
    message = str(problem)
# [/attribute]
assert "the parameter by is never indexed, so it is an attribute, which needs a type" in message

# [again]
before = times


@polyop.kernel
def times(x, factor: float = 2.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = factor * x[i]
    return y


print(times(np.ones(2)), times.name)  # the new definition has the name
print(before(np.ones(2)), before.name)  # the old one can still be called: main::times_replaced
# [/again]
assert (times.name, before.name) == ("main::times", "main::times_replaced")
assert times(np.ones(2)).tolist() == [2, 2]
assert before(np.ones(2)).tolist() == [3, 3]

# [pickle]
import pickle  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402

data = pickle.dumps(times)
print(pickle.loads(data) is times)  # noqa: S301

child = "import pickle, sys; pickle.load(sys.stdin.buffer)"  # a process without the definition
done = subprocess.run([sys.executable, "-c", child], input=data, capture_output=True, check=False)
print(done.stderr.decode().partition("HostError: ")[2])
# [/pickle]
words = done.stderr.decode()
assert "is not defined in this process" in words
assert "outside of functions" in words
