"""One process: the start of a plate that reaches the target; torch_main.py and jax_main.py use four devices.

``python main.py --cost`` prints what a step costs on 1024 devices.
"""

import itertools
import sys

from heat import fit, step, target

blocks = [("rows", "columns")]
cost = step.communication({"rows": 32, "columns": 32}, placements=blocks, shapes=[(4096, 4096)])
print(cost)
assert {one.kind for one in (*cost.forward, *cost.backward)} == {"permute"}
if "--cost" in sys.argv:
    sys.exit()

start, losses = fit(target())
print(f"loss {losses[0]:.3f} -> {losses[-1]:.5f}")
assert losses[-1] < losses[0] / 50
assert all(later < earlier for earlier, later in itertools.pairwise(losses))
