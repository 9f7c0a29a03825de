"""Statements in C: each is printed once for every copy (row or vector) in which it differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...analysis import affine
from ...analysis.lanes import LANE, ROW, dependence
from ...analysis.strides import BACK, STRIDED, UNIT, may_be_adjacent, stride
from ...ir.grammar import Assign, Expr, For, If, Kernel, Op, OpenEnd, Stmt, Store, children
from ...ir.types import WIDE
from ...ir.uses import first_assigned
from .c_text import NARROW, Value, computed, identity, identity_of_masks, memory, word
from .copies import Copies, Copy
from .expressions import Expressions, Scope
from .writer import Writer

LoopPrinter = Callable[[For, Copies], None]
PAST_ALL = str(2**62)
"""The end of the variable of a ``while``: a flag ends the loop long before."""


class Statements:
    """Prints bodies of statements; ``loop`` prints the loops in them."""

    def __init__(self, kernel: Kernel, expressions: Expressions, out: Writer) -> None:
        self.kernel, self.expressions, self.out = kernel, expressions, out
        self.loop: LoopPrinter = lambda node, copies: None
        self.count = 0
        self.live: frozenset[str] = frozenset()
        """Scalars that are declared at this point of the text."""
        self.reducing: frozenset[str] = frozenset()
        """Scalars outside the vector loop that lanes reduce to: inactive lanes must not contribute."""
        self.shared: frozenset[str] = frozenset()
        """Tensors in which other threads may write elements of inactive lanes: blends would undo it."""
        self.streaming: Mapping[Store, str] = {}
        """Streaming stores of whole vectors, with the C variable that enables each."""

    def body(self, body: Sequence[Stmt], copies: Copies) -> None:
        """Print a body after the declarations of its scalars."""
        before = self.live
        self.declare(body, copies)
        self._each(body, copies)
        self.live = before

    def declare(self, body: Sequence[Stmt], copies: Copies) -> None:
        """Declare the scalars whose scope is a body."""
        for node in first_assigned(body):
            if node.name in self.live:
                continue
            self.live |= {node.name}
            elem = computed(node.value.type)
            for copy in copies.of((), node.name):
                name, lanes = copies.text(node.name, copy), copy.scope.lanes
                if lanes is not None and LANE in copies.dependences.get(node.name, frozenset()):
                    kind = f"i{lanes.width * 8}" if elem == "bool" else elem
                    self.out.line(f"{self.expressions.vector(kind, copy.scope)} {name} = {{0}};")
                else:
                    self.out.line(f"{'int' if elem == 'bool' else elem} {name} = 0;")

    def _each(self, body: Sequence[Stmt], copies: Copies) -> None:
        line = 0
        for node in body:
            if node.line != line and not isinstance(node, For) and node.line in self.kernel.source:
                self.out.line(f"/* {node.line}: {_comment(self.kernel.source[node.line])} */")
            line = node.line
            match node:
                case For():
                    self.loop(node, copies)
                case If():
                    self._if(node, copies)
                case Assign():
                    for copy in copies.of((node.value,), node.name):
                        self._assign(node, copies, copy)
                case Store():
                    chosen = copies.of(children(node))
                    if any(c.scope.mask is not None for c in copies.items):
                        chosen = list(copies.items)
                    for copy in chosen:
                        self._store(node, copy)

    def _if(self, node: If, copies: Copies) -> None:
        depends_on = dependence(node.condition, copies.dependences, copies.row_var, copies.lane_var)
        if LANE in depends_on:
            ends = self._at_ends(node, copies) if ROW not in depends_on else None
            if ends is None:
                self._masked(node, copies)
                return
            with self.out.block(f"if ({ends[0]})"):
                self._each(node.body, copies)
            with self.out.block(f"else if ({ends[1]})"):
                self._masked(node, copies)
            return
        rows = sorted({c.row for c in copies.items}) if ROW in depends_on else [copies.items[0].row]
        for row in rows:
            some = replace(
                copies, items=tuple(c for c in copies.items if ROW not in depends_on or c.row == row)
            )
            condition = self.expressions.scalar(node.condition, some.items[0].scope)
            with self.out.block(f"if ({condition})"):
                self._each(node.body, some)
            if node.orelse:
                with self.out.block("else"):
                    self._each(node.orelse, some)

    def _at_ends(self, node: If, copies: Copies) -> tuple[str, str] | None:
        """Return the conditions, in C, that all lanes of a tile take a branch, and that any may; or None.

        Linear comparisons hold in neighbouring lanes: where they hold at both ends, they hold between them.
        """
        tests = affine.operands("and", node.condition)
        if not copies.row_var or node.orelse or any(affine.nonnegative(test) is None for test in tests):
            return None
        first, last = copies.items[0].scope, copies.items[-1].scope
        assert last.lanes is not None
        at = last.names.get(copies.lane_var, copies.lane_var)
        beyond = last.with_names({copies.lane_var: f"({at} + {last.lanes.number} - 1)"})
        ends = [replace(scope, lanes=None) for scope in (first, beyond)]
        texts = [[self.expressions.scalar(test, end) for end in ends] for test in tests]
        every = " && ".join(f"{one} && {other}" for one, other in texts)
        return every, " && ".join(f"({one} || {other})" for one, other in texts)

    def _masked(self, node: If, copies: Copies) -> None:
        """Print both branches, each masked for the lanes that take it."""
        self.count += 1
        then: list[Copy] = []
        other: list[Copy] = []
        with self.out.block(""):
            for copy in copies.items:
                condition = self.expressions.spread(
                    self.expressions.value(node.condition, copy.scope), copy.scope
                )
                name = f"m{self.count}_{copy.row}_{copy.unit}"
                kind = self.expressions.vector(condition.elem, copy.scope)
                self.out.line(f"const {kind} {name} = POLYOP_MASK({kind}, {condition.text});")
                for sign, into in (("", then), ("~", other)):
                    text = f"{sign}{name}"
                    if copy.scope.mask is not None:
                        outer = self.expressions.mask(copy.scope.mask, condition.elem, copy.scope)
                        text = f"({outer} & {text})"
                    mask = Value(text, condition.elem, True, True)
                    into.append(replace(copy, scope=replace(copy.scope, mask=mask)))
            self._each(node.body, replace(copies, items=tuple(then)))
            if node.orelse:
                self._each(node.orelse, replace(copies, items=tuple(other)))

    def active(self, copy: Copy, elem: str, *, counted: bool) -> str | None:
        """Return the mask of the active lanes as C text, or None for all."""
        scope, texts = copy.scope, []
        if scope.mask is not None:
            texts.append(self.expressions.mask(scope.mask, elem, scope))
        if counted and scope.lanes is not None and scope.lanes.count is not None:
            kind = self.expressions.vector(f"i{_bits(elem)}", scope)
            texts.append(f"(iota_{kind}() < bcast_{kind}({_clamped(scope.lanes.count, elem)}))")
        return " & ".join(texts) if texts else None

    def _assign(self, node: Assign, copies: Copies, copy: Copy) -> None:
        scope = copy.scope
        name = copies.text(node.name, copy)
        vec = LANE in copies.dependences.get(node.name, frozenset()) and scope.lanes is not None
        value = self.expressions.value(node.value, scope)
        if vec:
            value = self.expressions.spread(value, scope)
        elem = value.elem
        if vec and value.truth and scope.lanes is not None:
            elem = f"i{scope.lanes.width * 8}"
            value = Value(self.expressions.mask(value, elem, scope), elem, True, True)
        text = value.text
        kind = self.expressions.vector(elem, scope) if vec else elem
        counted = node.name in self.reducing
        active = self.active(copy, elem, counted=counted) if vec else None
        fused = self._fused(node, scope, name, kind) if self.expressions.unfused else None
        if fused:
            text = f"sel_{kind}({active}, {fused}, {name})" if active else fused
            self.out.line(f"{name} = {text};")
            return
        if node.op and active:
            neutral = identity_of_masks(node.op) if value.truth else identity(node.op, elem)
            start = f"bcast_{kind}({neutral})"
            text = f"sel_{kind}({active}, {text}, {start})"
        if node.op:
            text = combined(node.op, name, text, kind, truth=value.truth)
        elif active:
            text = f"sel_{kind}({active}, {text}, {name})"
        self.out.line(f"{name} = {text};")

    def _fused(self, node: Assign, scope: Scope, name: str, kind: str) -> str | None:
        """Return the sum of a scalar and a product, rounded once, in C; None for any other assignment."""
        product = node.value
        if (
            node.op != "+"
            or node.type.dtype not in WIDE
            or not isinstance(product, Op)
            or product.name != "*"
        ):
            return None
        factors = [self.expressions.value(factor, scope) for factor in product.args]
        if kind not in ("f32", "f64"):
            factors = [self.expressions.spread(factor, scope) for factor in factors]
        self.expressions.used.headers.add("fused.h")
        return f"polyop_madd_{kind}({', '.join(factor.text for factor in factors)}, {name})"

    def _store(self, node: Store, copy: Copy) -> None:
        scope, lanes = copy.scope, copy.scope.lanes
        dtype = self.kernel.buffers[node.buffer].dtype
        value = self.expressions.value(_unrounded(node), scope)
        kind = stride(node, lanes.var, lanes.varying) if lanes else ""
        if lanes is not None and node.buffer in lanes.varying:
            kind = UNIT
        alone = kind == "uniform" and not value.vec and scope.mask is None
        if lanes is None or alone:
            self._store_element(node, scope, value, dtype)
            return
        value = self.expressions.spread(value, scope)
        blends = scope.mask is not None and node.buffer in self.shared  # it would write old elements back
        unchecked = not self.expressions.axes(node) or node in scope.checked
        if kind == UNIT and unchecked and copy.start is None and not blends:
            self._store_vector(node, copy, value, dtype)
            return
        column = kind == STRIDED and may_be_adjacent(node, lanes.var, self.kernel.buffers[node.buffer])
        if column and unchecked and copy.start is None and not blends:
            with self.out.block(f"if ({self.expressions.strides(node, lanes)} == 1)"):
                self._store_vector(node, copy, value, dtype)
            with self.out.block("else"):
                self._store_far(node, copy, value, dtype, kind)
            return
        self._store_far(node, copy, value, dtype, kind)

    def _store_far(self, node: Store, copy: Copy, value: Value, dtype: str, kind: str) -> None:
        """Print a store of elements that are not neighbours."""
        scope = copy.scope
        scatters = kind in (STRIDED, BACK) and scope.mask is None and not node.op and copy.start is None
        if scatters and not self.expressions.axes(node) and dtype not in (*NARROW, "bool"):
            self._scatter(node, copy, value, dtype)
            return
        self._store_lanes(node, copy, value, dtype)

    def _store_element(self, node: Store, scope: Scope, value: Value, dtype: str) -> None:
        index = [self.expressions.scalar(i, scope) for i in node.index]
        text = value.text
        if dtype in NARROW:
            text = f"cvt_f32_{NARROW[dtype]}({text})"
        base = self.expressions.tensor(node.buffer)
        if self.expressions.axes(node):
            declared, tests, names = self.expressions.checks(node, index, scope)
            target = f"{base}[{self.expressions.place(node.buffer, names, scope)}]"
            with self.out.block(""):
                self.out.line(declared.strip())
                self.out.line(f"if ({tests}) {target} = {self._merged(node, target, text, dtype)};")
            return
        target = f"{base}[{self.expressions.place(node.buffer, tuple(index), scope)}]"
        self.out.line(f"{target} = {self._merged(node, target, text, dtype)};")

    def _merged(self, node: Store, target: str, text: str, dtype: str) -> str:
        if not node.op:
            return text
        if dtype in NARROW:
            narrow = NARROW[dtype]
            both = combined(node.op, f"cvt_{narrow}_f32({target})", f"cvt_{narrow}_f32({text})", "f32")
            return f"cvt_f32_{narrow}({both})"
        return combined(node.op, target, text, memory(dtype), truth=dtype == "bool")

    def _store_vector(self, node: Store, copy: Copy, value: Value, dtype: str) -> None:
        scope, lanes = copy.scope, copy.scope.lanes
        assert lanes is not None
        bare = replace(scope, lanes=None)
        index = [self.expressions.scalar(i, bare) for i in node.index]
        _, inside, names = self.expressions.checks(node, index, scope)
        at = self.expressions.place(node.buffer, names, scope)
        elem = word(dtype)
        kind = self.expressions.vector(elem, scope)
        address = f"&{self.expressions.tensor(node.buffer)}[{at}]"
        count = None if node.buffer in lanes.varying else lanes.count  # there is room for all lanes
        old = f"load_n_{kind}({address}, {count})" if count else f"load_{kind}({address})"
        text = value.text
        if node.op:
            if dtype in NARROW or dtype == "bool":
                self._store_lanes(node, copy, value, dtype)
                return
            text = combined(node.op, old, text, kind)
        if dtype in NARROW:
            text = f"cvt_f32_{NARROW[dtype]}v{lanes.width}({text})"
        elif dtype == "bool":
            text = f"tobool_{self.expressions.vector(value.elem, scope)}({text})"
        if scope.mask is not None:
            mask = self.expressions.mask(scope.mask, elem, scope)
            text = f"sel_{kind}({mask}, {text}, {old})"
        suffix, rest = ("_n", f", {count}") if count else ("", "")
        where = f"if ({inside}) " if inside else ""
        if node in self.streaming and not count:
            self.out.line(f"stream_{kind}({address}, {text}, {self.streaming[node]});")
            return
        self.out.line(f"{where}store{suffix}_{kind}({address}, {text}{rest});")

    def _scatter(self, node: Store, copy: Copy, value: Value, dtype: str) -> None:
        scope, lanes = copy.scope, copy.scope.lanes
        assert lanes is not None
        bare = replace(scope, lanes=None)
        index = tuple(self.expressions.scalar(i, bare) for i in node.index)
        kind = self.expressions.vector(memory(dtype), scope)
        strip = scope.strips.get(node)
        if strip is not None:
            at = f"({index[-1]} - {strip}_lo) * {lanes.number}"
            self.out.line(f"store_{kind}(&{strip}_panel[{at}], {value.text});")
            return
        at = self.expressions.address(node.buffer, index)
        rest = f"{self.expressions.strides(node, lanes)}, {value.text}"
        address = f"&{self.expressions.tensor(node.buffer)}[{at}]"
        used = lanes.count or (lanes.number if node.buffer in scope.accessed_once else "")
        suffix, count = ("_n", f", {used}") if used else ("", "")
        self.out.line(f"scatter{suffix}_{kind}({address}, {rest}{count});")

    def _store_lanes(self, node: Store, copy: Copy, value: Value, dtype: str) -> None:
        """Print a store that is strided, indirect or checked, one lane after another."""
        scope, lanes = copy.scope, copy.scope.lanes
        assert lanes is not None
        kind = self.expressions.vector(value.elem, scope)
        with self.out.block(""):
            self.out.line(f"const {kind} t = {value.text};")
            if scope.mask is not None:
                self.out.line(
                    f"const {self.expressions.vector(scope.mask.elem, scope)} on = {scope.mask.text};"
                )
            limit = lanes.count or lanes.number
            with self.out.block(f"for (int l = {copy.start or 0}; l < {lanes.number} && l < {limit}; ++l)"):
                if scope.mask is not None:
                    self.out.line("if (!on[l]) continue;")
                one = Value("(t[l] & 1)" if value.truth else "t[l]", value.elem, truth=value.truth)
                self._store_element(node, self.expressions.lane_scope(scope), one, dtype)


def _unrounded(node: Store) -> Expr:
    """Return the value of a store before a cast to a narrow float: the store itself rounds."""
    value = node.value
    rounds = isinstance(value, Op) and value.name == "cast" and value.type.dtype in NARROW and not node.op
    if rounds and isinstance(value, Op) and value.args[0].type.dtype == "float32":
        return value.args[0]
    return value


def combined(op: str, a: str, b: str, kind: str, *, truth: bool = False) -> str:
    """Return ``a op b`` in C, for scalars or vectors of ``kind``."""
    if truth:
        return f"({a} {'|' if op in ('+', 'max') else '&'} {b})"
    return f"{op}_{kind}({a}, {b})" if op in ("max", "min") else f"{a} {op} {b}"


def _bits(elem: str) -> int:
    from .c_text import SIZES

    return SIZES[elem] * 8


def _clamped(count: str, elem: str) -> str:
    return f"(i{_bits(elem)})({count} > 64 ? 64 : {count})"


def _comment(text: str) -> str:
    return " ".join(text.split()).replace("*/", "* /")


def end_of(loop: For, expressions: Expressions, scope: Scope) -> str:
    """Return the end of a loop whose flags the text asks before each iteration."""
    return PAST_ALL if isinstance(loop.hi, OpenEnd) else expressions.scalar(loop.hi, scope)
