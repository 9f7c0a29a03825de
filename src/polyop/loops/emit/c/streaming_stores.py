"""Print a vector loop with streaming stores: it starts with the elements before the first aligned vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.grammar import For, Store
from ..common.c_text import SIZES, identifier, memory
from ..common.expressions import Expressions, Scope


def declare(
    stores: Sequence[Store], node: For, width: int, expressions: Expressions, scope: Scope, *, sums: bool
) -> tuple[list[str], Mapping[Store, str]]:
    """Return the C lines before a vector loop, and the C variable that enables streaming, by store.

    ``<var>_part`` iterations come before the first aligned vector. A loop with ``sums`` has none: the
    order of additions would depend on the address of the result.
    """
    var, lines, names = identifier(node.var), [], {}
    at = scope.with_names({node.var: var})
    for number, store in enumerate(stores):
        buffer = expressions.kernel.buffers[store.buffer]
        size = SIZES[memory(buffer.dtype)]
        place = expressions.address(store.buffer, tuple(expressions.scalar(i, at) for i in store.index))
        sizes = [expressions.size(store.buffer, axis) for axis in range(len(buffer.shape))]
        of = f"{var}_end - {var}, {' * '.join((*sizes, str(size)))}, {size}, {expressions.lane_count(width)}"
        before = f"polyop_streaming_start(&{identifier(store.buffer)}[{place}], {of})"
        also = ""
        if number == 0:
            lines.append(f"int64_t {var}_part = {before}{' ? -1 : 0' if sums else ''};")
        else:
            also = f" && {before} == {var}_part"
        names[store] = f"{var}_stream{number}"
        lines.append(f"const int {names[store]} = {var}_part >= 0{also};")
    lines.append(f"if ({var}_part < 0) {var}_part = 0;")
    return lines, names
