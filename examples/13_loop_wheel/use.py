"""What a user of the wheel does; no compiler is needed for it."""

# [use]
import loopops
import numpy as np

x = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 100.0]], np.float32)
print(loopops.softmax(x))
print(loopops.scale(x[0], factor=3.0))

out, pull = loopops.softmax.vjp(x)
print(pull(np.ones_like(x))[0])
# [/use]

exponentials = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(loopops.softmax(x), exponentials / exponentials.sum(1, keepdims=True), rtol=1e-6)
np.testing.assert_array_equal(loopops.scale(x[0], factor=3.0), 3 * x[0])
