"""The collectives in a compiled XLA program, with the bytes that each device receives.

The text is ``jax.jit(f).lower(...).compile().as_text()``; its shapes are those of one device. A line is

    %all-gather = f32[4,16]{0,1} all-gather(%copy), replica_groups={{0,1},{2,3}}, dimensions={1}, ...

and the groups have three forms: {{0,1},{2,3}}, [2,2]<=[4], and mesh['x'=2,'y'=2] {'y'}.
Bytes are those of ring algorithms, as in :mod:`polyop.sharding.transition`.
"""

import math
import re
from collections import Counter
from typing import NamedTuple

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "collective-permute", "all-to-all")
LINE = re.compile(
    rf"^\s*(?:ROOT )?%(?P<name>\S+) = (?P<shape>\(.*?\)|\S+) (?P<kind>{'|'.join(KINDS)})(?P<start>-start)?\((?P<rest>.*)",
    re.MULTILINE,
)
SHAPE = re.compile(r"(?P<dtype>[a-z]+\d*\w*)\[(?P<sizes>[\d,]*)\]")
LISTED = re.compile(r"replica_groups=\{\{([\d,]*)\}")
IOTA = re.compile(r"replica_groups=\[\d+,(\d+)\]<=")
MESH = re.compile(r"replica_groups=mesh\[(?P<axes>[^\]]*)\](?:, device_ids=.*?)? \{(?P<used>[^}]*)\}")


class HloCollective(NamedTuple):
    """One collective: its kind, the bytes of its result on a device, the devices in a group, its line."""

    kind: str
    result: int
    group: int
    line: str

    @property
    def bytes(self):
        """The bytes that a device receives."""
        others = self.group - 1
        match self.kind:
            case "all-gather" | "all-to-all":
                return self.result * others // self.group
            case "all-reduce":
                return 2 * self.result * others // self.group
            case "reduce-scatter":
                return self.result * others
        return self.result


def hlo_collectives(text):
    """Return the collectives of a compiled program, in the order of its text.

    >>> line = "  %g = f32[4,16]{1,0} all-gather(%x), replica_groups={{0,1},{2,3}}, dimensions={0}"
    >>> [(one.kind, one.bytes) for one in hlo_collectives(line)]
    [('all-gather', 128)]
    >>> line = "  ROOT %r = (f32[], s8[6]) all-reduce(%x, %y), replica_groups=mesh['a'=2,'b'=4] {'b'}"
    >>> [(one.kind, one.bytes) for one in hlo_collectives(line)]
    [('all-reduce', 15)]
    """
    return [
        HloCollective(row["kind"], _result_bytes(row["shape"], row["start"]), _group(row), row[0].strip())
        for row in LINE.finditer(text)
    ]


def bytes_by_kind(text):
    """Return the bytes that a device receives, by the kind of collective; one of 0 bytes is left out."""
    total = Counter()
    for one in hlo_collectives(text):
        total[one.kind] += one.bytes
    return {kind: count for kind, count in total.items() if count}


def _result_bytes(shape, is_start):
    arrays = [_array_bytes(row) for row in SHAPE.finditer(shape)]
    # the tuple of an asynchronous collective has its operands, then its results
    return sum(arrays[len(arrays) // 2 :] if is_start and len(arrays) > 1 else arrays)


def _array_bytes(row):
    bits = re.search(r"\d+", row["dtype"])
    each = 1 if bits is None else max(1, int(bits[0]) // 8)  # pred has no number
    return each * math.prod(int(size) for size in row["sizes"].split(",") if size)


def _group(row):
    if row["kind"] == "collective-permute":
        return 0
    rest = row["rest"]
    if listed := LISTED.search(rest):
        return len(listed[1].split(","))
    if iota := IOTA.search(rest):
        return int(iota[1])
    mesh = MESH.search(rest)
    assert mesh is not None, row[0]
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", mesh["axes"]))
    # a part of an axis is written 'x':(1)2, where 2 is the part's size
    used = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", mesh["used"])
    return math.prod(int(part or sizes[name]) for name, part in used)
