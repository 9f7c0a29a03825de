"""Read REG_OP headers, without a C++ compiler.

::

    header    = {"namespace" [name] "{" | "}" | ";" | declaration | prototype}
    prototype = "REG_OP" "(" name ")" {"." item} "." "OP_END_FACTORY_REG" "(" name ")"
    item      = ("INPUT" | "OPTIONAL_INPUT" | "DYNAMIC_INPUT" | "OUTPUT" | "OPTIONAL_OUTPUT"
                 | "DYNAMIC_OUTPUT" | "DATATYPE") "(" name "," types ")"
              | "ATTR" "(" name "," type "," value ")" | "REQUIRED_ATTR" "(" name "," type ")"
              | ("GRAPH" | "DYNAMIC_GRAPH") "(" name ")"
    types     = string | ["List"] "TensorType" ("::" set "()" | "(" {types} ")" | "{" {types} "}") | dtype

Other declarations are skipped. ``ge::`` may come before every name of that namespace.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..core.errors import ArgumentValueError
from ..core.limits import read_text
from ..core.origin import Origin
from .cursor import Cursor
from .default_values import value
from .prototype import AttributeItem, DatatypeItem, GraphItem, Item, Prototype, TensorItem, Types
from .tokens import MAX_CHARACTERS
from .vocabulary import ATTRIBUTE_MACROS, ATTRIBUTE_TYPES, DATATYPE, END, MACROS, NAMED_SETS, TENSOR_MACROS


def parse(text: str, file: str = "<text>") -> tuple[Prototype, ...]:
    """Return the prototypes of a header, in order.

    >>> [op] = parse("REG_OP(Half).INPUT(x, ge::DT_FLOAT).ATTR(k, Float, 1e-8f).OP_END_FACTORY_REG(Half)")
    >>> op.attributes[0].default
    1e-08

    Raises ``SchemaError`` with ``file``, the line, what was expected and what is there instead.
    """
    return _Parser(text, file).header()


def read(path: str | Path) -> tuple[Prototype, ...]:
    """Parse a file; raises ``ArgumentValueError`` if it cannot be read."""
    try:
        text = read_text(path, MAX_CHARACTERS)
    except (OSError, ValueError) as problem:
        raise ArgumentValueError(str(path), f"could not be read as a header: {problem}") from None
    return parse(text, str(path))


class _Parser(Cursor):
    """One method for each rule of the grammar above."""

    def header(self) -> tuple[Prototype, ...]:
        prototypes: dict[str, Prototype] = {}
        scopes: list[int] = []  # the line of each open namespace
        while self.token.kind != "end":
            if self.ahead("REG_OP"):
                line, prototype = self.line, self.prototype()
                first = prototypes.setdefault(prototype.name, prototype)
                if first is not prototype:
                    self.fail(f"REG_OP({prototype.name}) is there already, at {first.origin}", line=line)
            elif self.ahead("namespace") or self.ahead("extern"):
                self.open_scope(scopes)
            elif self.ahead("}"):
                if not scopes:
                    self.fail("'}' closes nothing")
                scopes.pop()
                self.next()
            else:
                self.declaration()
        if scopes:
            self.fail("the namespace has no '}'", line=scopes[-1])
        return tuple(prototypes.values())

    def open_scope(self, scopes: list[int]) -> None:
        ahead = 1
        while self.tokens[min(self.at + ahead, len(self.tokens) - 1)].kind in ("name", "string"):
            ahead += 1
            ahead += self.ahead("::", ahead)
        if self.ahead("{", ahead):
            scopes.append(self.line)
            self.at += ahead + 1
        else:
            self.declaration()

    def declaration(self) -> None:
        """Step over a declaration other than REG_OP: to its ``;``, or behind its braces."""
        start = self.line
        while not self.take(";"):
            if self.token.kind == "end" or self.ahead("}"):
                self.fail("expected REG_OP(Name), a namespace or a declaration that ends in ';'", line=start)
            if self.ahead("REG_OP"):
                self.expected("';' before REG_OP")
            if self.ahead(".") and self.tokens[self.at + 1].text in MACROS:
                self.fail(
                    f"expected REG_OP(Name) before .{self.tokens[self.at + 1].text}", self.tokens[self.at - 1]
                )
            token = self.next()
            if token.text == "(" and token.kind == "mark":
                self.skip_balanced(")", "the declaration")
            elif token.text == "{" and token.kind == "mark":
                self.skip_balanced("}", "the declaration")
                if not self.ahead(";"):
                    return

    def prototype(self) -> Prototype:
        line = self.line
        self.next()
        self.need("(", "after REG_OP")
        name = self.name("the operator's name")
        self.need(")", "after the operator's name")
        items: dict[tuple[str, str], Item] = {}
        while True:
            if not self.take("."):
                self.expected(f"'.' and a macro, or .{END}({name})", f"REG_OP({name}) begins at line {line}")
            if self.token.text not in MACROS:
                self.unknown("a macro of REG_OP", MACROS)
            if self.take(END):
                break
            item, item_line = self.item()
            if items.setdefault((_kind(item), item.name), item) is not item:
                self.fail(f"a second {_kind(item)} is called {item.name!r}", line=item_line)
        self.need("(", f"after {END}")
        end_line, end = self.line, self.name("the operator's name")
        if end != name:
            self.fail(f"{END} must name {name}, as REG_OP at line {line} does", end, line=end_line)
        self.need(")", "after the operator's name")
        self.take(";")
        self.check_variables(items.values(), name, line)
        return Prototype(name, tuple(items.values()), Origin(self.file, line))

    def item(self) -> tuple[Item, int]:
        macro, line = self.next().text, self.line
        self.need("(", f"after {macro}")
        name = self.name(f"the name in {macro}")
        item: Item
        if macro in ATTRIBUTE_MACROS:
            item = self.attribute(macro, name)
        elif macro in TENSOR_MACROS or macro == DATATYPE:
            self.need(",", f"and dtypes in {macro}({name}, ...)")
            types = self.types()
            item = DatatypeItem(name, types) if macro == DATATYPE else TensorItem(macro, name, types)
        else:
            item = GraphItem(macro, name)
        self.need(")", f"at the end of {macro}({name}, ...)")
        return item, line

    def attribute(self, macro: str, name: str) -> AttributeItem:
        self.need(",", f"and a type in {macro}({name}, ...)")
        self.qualifiers("ge", "Operator")
        if self.token.text not in ATTRIBUTE_TYPES:
            self.unknown(f"the type of attribute {name}", ATTRIBUTE_TYPES)
        kind = self.next().text
        if macro == "REQUIRED_ATTR":
            return AttributeItem(name, kind)
        self.need(",", f"and a default in ATTR({name}, {kind}, ...)")
        return AttributeItem(name, kind, value(self, kind, name))

    def types(self) -> Types:
        if self.token.kind == "string":
            return Types(variable=self.next().text)
        self.qualifiers("ge")
        sequence = self.ahead("ListTensorType")
        return Types(tuple(self.dtypes()), sequence=sequence)

    def dtypes(self) -> list[str]:
        """Return the names of one element: a dtype, a named set, or several of them in brackets."""
        self.qualifiers("ge", "DataType")
        if self.take("{"):
            return [name for _ in self.until("}") for name in self.dtypes()]
        if self.take("TensorType") or self.take("ListTensorType"):
            if not self.take("::"):
                for opening, closing in (("(", ")"), ("{", "}")):
                    if self.take(opening):
                        return [name for _ in self.until(closing) for name in self.dtypes()]
                self.expected("'(', '{' or '::' after TensorType")
            if self.token.text not in NAMED_SETS:
                self.unknown("a named set of TensorType", NAMED_SETS)
        if self.token.text in NAMED_SETS:
            name = self.next().text
            if self.take("("):
                self.need(")", f"after {name}(")
            return [name]
        if not self.token.text.startswith("DT_"):
            self.expected("dtypes", 'as in TensorType({DT_FLOAT, DT_INT32}), TensorType::ALL() or "T"')
        return [self.dtype()]

    def check_variables(self, items: Collection[Item], name: str, line: int) -> None:
        declared = {item.name for item in items if isinstance(item, DatatypeItem)}
        for item in items:
            if isinstance(item, TensorItem) and item.types.variable and item.types.variable not in declared:
                variable = item.types.variable
                rule = f'REG_OP({name}) gives {item.name} the dtypes "{variable}"'
                self.fail(f"{rule}, and has no DATATYPE({variable}, ...)", line=line)


def _kind(item: Item) -> str:
    if isinstance(item, TensorItem):
        return "input" if item.is_input else "output"
    return {AttributeItem: "attribute", DatatypeItem: "DATATYPE", GraphItem: "graph"}[type(item)]
