"""Write REG_OP headers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .default_values import literal
from .prototype import AttributeItem, DatatypeItem, GraphItem, Item, Prototype
from .vocabulary import DATATYPE, END


def header(prototypes: Sequence[Prototype], guard: str = "CUSTOM_REG_OP_H_") -> str:
    """Return a header with these prototypes; :func:`parse` reads equal ones from it.

    >>> from polyop.graph import parse
    >>> [op] = parse("REG_OP(Not).INPUT(x, TensorType{DT_BOOL}).OUTPUT(y, DT_BOOL).OP_END_FACTORY_REG(Not)")
    >>> print(header([op]).split("namespace ge {")[1].split("}  // namespace")[0].strip())
    REG_OP(Not)
        .INPUT(x, TensorType({DT_BOOL}))
        .OUTPUT(y, TensorType({DT_BOOL}))
        .OP_END_FACTORY_REG(Not)
    """
    body = "\n".join(f"{macros(prototype)}\n" for prototype in prototypes)
    limits = "#include <cmath>\n" if re.search(r"\b(INFINITY|NAN)\b", body) else ""
    return (
        f'#ifndef {guard}\n#define {guard}\n{limits}#include "graph/operator_reg.h"\n\n'
        f"namespace ge {{\n{body}}}  // namespace ge\n#endif  // {guard}\n"
    )


def macros(prototype: Prototype) -> str:
    """Return the text from ``REG_OP`` to ``OP_END_FACTORY_REG``, one macro on each line."""
    return f"{brief(prototype)}\n    .{END}({prototype.name})"


def brief(prototype: Prototype, indent: str = "    ") -> str:
    """Return the macros without the closing one."""
    lines = [f"REG_OP({prototype.name})", *(f"{indent}.{_item(item)}" for item in prototype.items)]
    return "\n".join(lines)


def _item(item: Item) -> str:
    if isinstance(item, AttributeItem):
        if item.required:
            return f"REQUIRED_ATTR({item.name}, {item.type})"
        row = item.row
        text = item.default if row.item == "opaque" else literal(row.item, item.default)
        return f"ATTR({item.name}, {item.type}, {text})"
    if isinstance(item, GraphItem):
        return f"{item.macro}({item.name})"
    macro = DATATYPE if isinstance(item, DatatypeItem) else item.macro
    return f"{macro}({item.name}, {item.types})"
