"""What operators move on meshes from 2 to 1024 devices, before anything runs.

``python main.py --layer`` prints the linear layer alone.
"""

import sys

from costs import HYBRID, WAYS, received

print(HYBRID)
assert HYBRID.forward == ()
if "--layer" in sys.argv:
    sys.exit()

counts = [4**k for k in range(1, 6)]
print()
print("bytes per device".ljust(24), *(f"{count:>12}" for count in counts))
table = {way: [received(way, count) for count in counts] for way in WAYS}
for way, row in table.items():
    print(way.ljust(24), *(f"{count:12}" for count in row))
assert table["stencil, blocks"][-1] < table["stencil, blocks"][0]  # smaller blocks have shorter edges
assert table["stencil, rows"][-1] == table["stencil, rows"][0]
