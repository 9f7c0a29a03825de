"""Expressions in C: scalars, or vectors where a value differs from lane to lane."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...analysis import affine
from ...analysis.bounds import Bounds, key
from ...analysis.strides import BACK, STRIDED, UNIFORM, UNIT, depends, is_counted, may_be_adjacent, stride
from ...ir.failing import rule_of
from ...ir.grammar import Const, Expr, Kernel, Load, Op, OpenEnd, Size, Store, Type, Var
from ...ir.operators import OPERATORS
from ...ir.uses import loads_of, variables_of
from .c_text import (
    COMPARE,
    INFIX,
    NARROW,
    OF_INTEGERS,
    SHIFTS,
    SIZES,
    Used,
    Value,
    computed,
    constant,
    extent,
    identifier,
    memory,
    signed,
    size_name,
    word,
)


@dataclass(frozen=True)
class Lanes:
    """The lanes of a vector loop, whose variable is ``var``.

    ``width``: bytes per lane. ``count``: the number of active lanes as C text, or None for all. ``varying``:
    scalars with a value per lane, and private tensors with a copy per lane.
    """

    var: str
    width: int
    count: str | None = None
    varying: frozenset[str] = frozenset()

    @property
    def number(self) -> str:
        """The number of lanes, in C."""
        return f"POLYOP_LANES({self.width})"

    @property
    def names(self) -> frozenset[str]:
        """The names whose values differ between lanes."""
        return self.varying | {self.var}


@dataclass(frozen=True)
class Scope:
    """The surroundings of an expression: C text of variables, and lanes, if it is in a vector loop.

    ``mask`` selects the lanes that conditions leave active. ``words``: narrow floats stay as in memory.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    lanes: Lanes | None = None
    mask: Value | None = None
    words: bool = False
    lane_copies: Mapping[str, str] = field(default_factory=dict)
    """In the scope of one lane, by tensor with a copy for each: the number of lanes, plus which it is."""
    quotients: Mapping[Op, str] = field(default_factory=dict)
    """Divisions that were computed before a loop around: C variables."""
    checked: Mapping[Load | Store, tuple[str, Mapping[int, str]]] = field(default_factory=dict)
    """Accesses that were checked before the loop: C text of the result, and of indices by axis."""
    registers: Mapping[Load, str] = field(default_factory=dict)
    """Loads that the vector loop has in registers: C text."""
    strips: Mapping[Load | Store, str] = field(default_factory=dict)
    """Accesses that go to a strip of transposed elements, and its name."""
    accessed_once: frozenset[str] = frozenset()
    """Tensors whose elements a tile accesses once: strided accesses are calls, for shorter code."""

    def with_names(self, more: Mapping[str, str]) -> Scope:
        """Return the scope with further names."""
        return replace(self, names={**self.names, **more})


class Expressions:
    """Prints expressions of one kernel, and notes in ``used`` what their text needs."""

    def __init__(
        self, kernel: Kernel, bounds: Bounds, *, precise: bool = False, checked: bool = False
    ) -> None:
        self.kernel, self.bounds, self.precise, self.checked = kernel, bounds, precise, checked
        self.unfused = False
        """Whether the C compiler fuses nothing: the text says where a product is added with one rounding."""
        self.used = Used()
        self.places: list[tuple[int, str, int]] = []
        """(line, buffer, axis) of every checked index; a failed check reports the number of its row."""

    def value(self, expr: Expr, scope: Scope) -> Value:
        """Return the C text of an expression."""
        match expr:
            case Const():
                return constant(expr)
            case Size():
                return Value(self.size(expr.buffer, expr.axis), "i64")
            case Var():
                return self._variable(expr, scope)
            case Load():
                return self._load(expr, scope)
            case Op(name="select"):
                return self._select(expr, scope)
            case Op(name="cast") if scope.lanes and is_counted(expr, scope.lanes.var, scope.lanes.varying):
                return self._counted(expr, scope)
            case Op(name="cast", args=(inner,)):
                converted = self.convert(self.value(inner, scope), expr.type, scope)
                same = inner.type.dtype == expr.type.dtype
                return converted if same else self._rounded(converted, expr.type.dtype, scope)
            case Op(name="and" | "or" | "not"):
                return self._logic(expr, scope)
            case Op():
                return self._quotient(expr, scope) or self._operator(expr, scope)
            case OpenEnd(name=name):
                raise AssertionError(f"the end of the while {name} has no value")

    def words(self, node: Load, scope: Scope) -> Value:
        """Return a narrow float as the word that is in memory."""
        return self.value(node, replace(scope, words=True))

    def scalar(self, expr: Expr, scope: Scope) -> str:
        """Return the C text of an expression that has the same value in all lanes."""
        value = self.value(expr, scope)
        assert not value.vec, expr
        return value.text

    def size(self, buffer: str, axis: int) -> str:
        """Return the C name of a size."""
        return self._name(size_name(buffer, axis))

    def tensor(self, buffer: str) -> str:
        """Return the C name of a tensor."""
        return self._name(identifier(buffer))

    @contextlib.contextmanager
    def names_of_function(self) -> Iterator[set[str]]:
        """Context in which one function is printed; the set collects the names that its text uses."""
        names_of_outer, self.used.names = self.used.names, set()
        yield self.used.names
        self.used.names = names_of_outer

    def _name(self, name: str) -> str:
        self.used.names.add(name)
        return name

    def vector(self, elem: str, scope: Scope) -> str:
        """Return the vector type of an element, in the loop's width."""
        assert scope.lanes is not None
        return self.vector_type(elem, scope.lanes.width)

    def vector_type(self, elem: str, width: int) -> str:
        """Return the C type of a vector with ``width`` bytes per lane."""
        self.used.widths.add(width)
        return f"{elem}v{width}"

    def lane_count(self, width: int) -> str:
        """Return the number of lanes of ``width`` bytes, in C."""
        self.used.widths.add(width)
        return f"POLYOP_LANES({width})"

    def spread(self, value: Value, scope: Scope) -> Value:
        """Return the value as a vector."""
        if value.vec:
            return value
        if value.truth:
            elem = f"i{scope.lanes.width * 8}" if scope.lanes else "i32"
            return Value(f"bcast_{self.vector(elem, scope)}(-({elem})({value.text}))", elem, True, True)
        return Value(f"bcast_{self.vector(value.elem, scope)}({value.text})", value.elem, True)

    def mask(self, value: Value, elem: str, scope: Scope) -> str:
        """Return a condition as a mask for vectors of ``elem``."""
        value, wanted = self.spread(value, scope), signed(elem)
        same = value.elem == wanted
        return value.text if same else f"polyop_cvt({self.vector(wanted, scope)}, {value.text})"

    def convert(self, value: Value, kind: Type, scope: Scope) -> Value:
        """Return a value of another type, as NumPy converts: of floats to integers whole.h says how."""
        elem = computed(kind)
        if elem == "bool":
            if value.truth:
                return value
            return Value(f"({value.text} != 0)", signed(value.elem) if value.vec else "bool", value.vec, True)
        if value.truth:
            if not value.vec:
                return Value(f"({elem})({value.text})", elem)
            vector = self.vector(elem, scope)
            one = f"sel_{vector}({self.mask(value, elem, scope)}, bcast_{vector}(1), bcast_{vector}(0))"
            return Value(one, elem, True)
        if value.elem == elem:
            return value
        if value.elem[0] == "f" and elem[0] != "f":
            to, of = (self.vector(e, scope) if value.vec else e for e in (elem, value.elem))
            return Value(f"whole_{to}_{of}({value.text})", elem, value.vec)
        if value.vec:
            return Value(f"polyop_cvt({self.vector(elem, scope)}, {value.text})", elem, True)
        return Value(f"({elem})({value.text})", elem)

    def _variable(self, expr: Var, scope: Scope) -> Value:
        text = scope.names.get(expr.name) or self._name(identifier(expr.name))
        elem = computed(expr.type)
        lanes = scope.lanes
        if lanes is not None and expr.name == lanes.var:
            vector = self.vector("i64", scope)
            return Value(f"(bcast_{vector}({text}) + iota_{vector}())", "i64", True)
        vec = lanes is not None and expr.name in lanes.varying
        if elem == "bool":
            return Value(text, f"i{lanes.width * 8}" if vec and lanes else "bool", vec, True)
        return Value(text, elem, vec)

    def _quotient(self, expr: Op, scope: Scope) -> Value | None:
        """Return the variable of a division, if the names of loops in it are here what they were there."""
        known = scope.quotients.get(expr) if scope.quotients else None
        return None if known is None or variables_of(expr) & scope.names.keys() else Value(known, "i64")

    def _counted(self, expr: Op, scope: Scope) -> Value:
        """Return a narrowed loop variable: that of the first lane, from which the other lanes count."""
        elem, first = computed(expr.type), self.scalar(expr.args[0], replace(scope, lanes=None))
        vector = self.vector(elem, scope)
        return Value(f"(bcast_{vector}(({elem})({first})) + iota_{vector}())", elem, True)

    # memory

    def address(self, buffer: str, index: tuple[str, ...]) -> str:
        """Return the offset of an element, in C, row by row."""
        if not index:
            return "0"
        text = index[0]
        for axis, i in enumerate(index[1:], 1):
            text = f"({text}) * {extent(self.kernel.buffers[buffer], axis, self.size(buffer, axis))} + {i}"
        return text

    def place(self, buffer: str, index: tuple[str, ...], scope: Scope) -> str:
        """Return the offset of an access, in C; in a tensor with a copy per lane, lanes are neighbours."""
        text = self.address(buffer, index)
        if scope.lanes is not None and buffer in scope.lanes.varying:
            return f"({text}) * {scope.lanes.number}"
        own = scope.lane_copies.get(buffer)
        return f"({text}) * {own}" if own else text

    def axes(self, node: Load | Store) -> frozenset[int]:
        """Return the axes of an access whose index is checked at each access."""
        return frozenset(range(len(node.index))) if self.checked else self.bounds.axes(node)

    def checks(self, node: Load | Store, index: list[str], scope: Scope) -> tuple[str, str, tuple[str, ...]]:
        """Return declarations, the condition that all checked indices are inside, and the indices."""
        known = scope.checked.get(node)
        if known is not None:
            return "", known[0], tuple(known[1].get(axis, i) for axis, i in enumerate(index))
        declared, tests, names = "", [], list(index)
        for axis in sorted(self.axes(node)):
            rule = rule_of(node.index[axis])
            self.places.append((node.line, rule, -1) if rule else (node.line, node.buffer, axis))
            names[axis] = f"q{axis}"
            declared += f"int64_t q{axis} = {index[axis]}; "
            tests.append(f"polyop_inside(k, &q{axis}, {self.size(node.buffer, axis)}, {len(self.places)})")
        return declared, " && ".join(tests), tuple(names)

    def strides(self, node: Load | Store, lanes: Lanes) -> str:
        """Return the distance of neighbouring lanes' elements, in C."""
        own, terms = self.kernel.buffers[node.buffer], list[str]()
        for axis, index in enumerate(node.index):
            step = affine.step(index, lanes.var)
            if step:
                sizes = (extent(own, a, self.size(own.name, a)) for a in range(axis + 1, len(node.index)))
                terms.append(" * ".join([str(step), *sizes]))
        return " + ".join(terms)

    def _load(self, node: Load, scope: Scope) -> Value:
        lanes, dtype = scope.lanes, self.kernel.buffers[node.buffer].dtype
        kind = stride(node, lanes.var, lanes.varying) if lanes else UNIFORM
        base = self.tensor(node.buffer)
        if lanes is not None and node.buffer in lanes.varying:
            kind = UNIT
        if kind == UNIFORM:
            return self._loaded(self._element(node, scope), dtype, scope)
        assert lanes is not None
        axes = self.axes(node)
        # one check serves all lanes if they share the index, and none has a condition that does not hold
        shared = scope.mask is None and not any(depends(node.index[axis], lanes.names) for axis in axes)
        if (axes and not shared) or kind not in (UNIT, STRIDED, BACK):
            return self._lane_by_lane(node, scope)
        if node in scope.registers:
            return self._widened(scope.registers[node], dtype, scope)
        lane0 = replace(scope, lanes=None)
        index = [self.scalar(i, lane0) for i in node.index]
        strip = scope.strips.get(node)
        if strip is not None:
            vector = self.vector(word(dtype), scope)
            at = f"({index[-1]} - {strip}_lo) * {lanes.number}"
            return self._widened(f"load_{vector}(&{strip}_panel[{at}])", dtype, scope)
        declared, tests, names = self.checks(node, index, scope) if axes else ("", "", tuple(index))
        at = self.place(node.buffer, names, scope)
        vector = self.vector(word(dtype), scope)
        used = None if node.buffer in lanes.varying else lanes.count  # else there is room for all lanes
        if kind != UNIT and node.buffer in scope.accessed_once:
            used = used or lanes.number
        suffix, count = ("_n", f", {used}") if used else ("", "")
        if kind == UNIT:
            text = f"load{suffix}_{vector}(&{base}[{at}]{count})"
        else:
            step = self.strides(node, lanes)
            text = f"gather{suffix}_{vector}(&{base}[{at}], {step}{count})"
            if kind == STRIDED and may_be_adjacent(node, lanes.var, self.kernel.buffers[node.buffer]):
                text = f"({step} == 1 ? load{suffix}_{vector}(&{base}[{at}]{count}) : {text})"
        if tests:
            text = f"({{ {declared}{tests} ? {text} : ({vector}){{0}}; }})"
        return self._widened(text, dtype, scope)

    def _widened(self, text: str, dtype: str, scope: Scope) -> Value:
        """Return a vector from memory in the type that it is computed in."""
        if dtype in NARROW and scope.words:
            return Value(text, word(dtype), True)
        if dtype in NARROW:
            return Value(f"cvt_{NARROW[dtype]}_{self.vector('f32', scope)}({text})", "f32", True)
        if dtype == "bool":
            return Value(f"({text} != 0)", "i8", True, True)
        return Value(text, memory(dtype), True)

    def _rounded(self, value: Value, dtype: str, scope: Scope) -> Value:
        """Return a value of float32 rounded to the narrow float that it was cast to."""
        if dtype not in NARROW:
            return value
        narrow = NARROW[dtype]
        single, rounded = (self.vector(e, scope) if value.vec else e for e in ("f32", narrow))
        return replace(value, text=f"cvt_{narrow}_{single}(cvt_f32_{rounded}({value.text}))")

    def _loaded(self, text: str, dtype: str, scope: Scope) -> Value:
        if dtype in NARROW and scope.words:
            return Value(text, word(dtype))
        if dtype in NARROW:
            return Value(f"cvt_{NARROW[dtype]}_f32({text})", "f32")
        return Value(text, "bool", truth=True) if dtype == "bool" else Value(text, memory(dtype))

    def _element(self, node: Load, scope: Scope) -> str:
        index = [self.scalar(i, scope) for i in node.index]
        base = self.tensor(node.buffer)
        if not self.axes(node):
            return f"{base}[{self.place(node.buffer, tuple(index), scope)}]"
        declared, tests, names = self.checks(node, index, scope)
        return f"({{ {declared}{tests} ? {base}[{self.place(node.buffer, names, scope)}] : 0; }})"

    def lane_scope(self, scope: Scope) -> Scope:
        """Return the scope of the lane ``l``: the loop variable plus the lane, and elements of vectors."""
        lanes = scope.lanes
        assert lanes is not None
        base = scope.names.get(lanes.var, identifier(lanes.var))
        names = {lanes.var: f"({base} + l)"}
        names |= {v: f"{scope.names.get(v, identifier(v))}[l]" for v in lanes.varying}
        copies = dict.fromkeys(lanes.varying & self.kernel.buffers.keys(), f"{lanes.number} + l")
        one = replace(scope, lanes=None, mask=None, words=False, lane_copies={**scope.lane_copies, **copies})
        return one.with_names(names)

    def _lane_by_lane(self, expr: Expr, scope: Scope) -> Value:
        """Return a vector whose lanes are computed one after another."""
        lanes = scope.lanes
        assert lanes is not None
        one = self.value(expr, self.lane_scope(scope))
        elem = f"i{lanes.width * 8}" if one.truth else one.elem
        text = f"-({elem})({one.text})" if one.truth else one.text
        active = [] if scope.mask is None else [f"({scope.mask.text})[l]"]
        inside = "".join(f"if ({a}) " for a in active)
        limit = lanes.count or lanes.number
        once = '_Pragma("GCC unroll 1") ' if isinstance(expr, Load) and self.axes(expr) else ""
        body = f"{once}for (int l = 0; l < {lanes.number} && l < {limit}; ++l) {inside}t[l] = {text};"
        vector = self.vector(elem, scope)
        text = f"({{ {elem} t[{lanes.number}] = {{0}}; {body} load_{vector}(t); }})"
        return Value(text, elem, True, one.truth)

    # operators

    def _same_shape(self, args: list[Value], scope: Scope) -> list[Value]:
        return [self.spread(a, scope) for a in args] if any(a.vec for a in args) else args

    def _select(self, expr: Op, scope: Scope) -> Value:
        condition = self.value(expr.args[0], scope)
        loads = loads_of(*expr.args[1:])
        if condition.vec and any(map(self._guarded, loads)):
            return self._lane_by_lane(expr, scope)
        then, other = self._same_shape([self.value(a, scope) for a in expr.args[1:]], scope)
        if not condition.vec:
            return Value(f"({condition.text} ? {then.text} : {other.text})", then.elem, then.vec, then.truth)
        then, other = self.spread(then, scope), self.spread(other, scope)
        if then.truth:
            elem, m = condition.elem, condition.text
            a, b = self.mask(then, elem, scope), self.mask(other, elem, scope)
            return Value(f"(({m} & {a}) | (~{m} & {b}))", elem, True, True)
        mask = self.mask(condition, then.elem, scope)
        chosen = f"sel_{self.vector(then.elem, scope)}({mask}, {then.text}, {other.text})"
        return Value(chosen, then.elem, True)

    def _guarded(self, load: Load) -> bool:
        return key(load) in self.bounds.guarded or bool(self.axes(load))

    def _logic(self, expr: Op, scope: Scope) -> Value:
        args = [self.value(a, scope) for a in expr.args]
        loads = loads_of(*expr.args[1:])
        if any(a.vec for a in args) and any(map(self._guarded, loads)):
            return self._lane_by_lane(expr, scope)
        if expr.name == "not":
            (a,) = args
            return Value(f"{'~' if a.vec else '!'}{a.text}", a.elem, a.vec, True)
        if not any(a.vec for a in args):
            sign = {"and": "&&", "or": "||"}[expr.name]
            return Value(f"({f' {sign} '.join(a.text for a in args)})", "bool", truth=True)
        widest = max((a for a in args if a.vec), key=lambda a: SIZES[a.elem]).elem
        sign = {"and": "&", "or": "|"}[expr.name]
        texts = [self.mask(a, widest, scope) for a in args]
        return Value(f"({f' {sign} '.join(texts)})", widest, True, True)

    def _operator(self, expr: Op, scope: Scope) -> Value:
        name = expr.name
        args = self._same_shape([self.value(a, scope) for a in expr.args], scope)
        vec = args[0].vec
        if args[0].truth:
            return self._on_conditions(name, args, scope)
        elem, texts = args[0].elem, [a.text for a in args]
        kind = self.vector(elem, scope) if vec else elem
        if name in COMPARE:
            return Value(f"({texts[0]} {name} {texts[1]})", signed(elem) if vec else "bool", vec, True)
        text = self._call(name, texts, elem, kind, vec)
        if name in ("isnan", "isinf", "isfinite"):
            return Value(text, signed(elem) if vec else "bool", vec, True)
        return Value(text, elem, vec)

    def _on_conditions(self, name: str, args: list[Value], scope: Scope) -> Value:
        signs = {"&": "&", "|": "|", "^": "^", "!=": "^", "max": "|", "min": "&", "+": "|", "*": "&"}
        vec = args[0].vec
        elem = max(args, key=lambda a: SIZES[a.elem]).elem
        texts = [self.mask(a, elem, scope) if vec else f"({a.text})" for a in args]
        if name == "==":
            return Value(f"{'~' if vec else '!'}({texts[0]} ^ {texts[1]})", elem, vec, True)
        if name == "abs":
            return args[0]
        if name in signs:
            return Value(f"({texts[0]} {signs[name]} {texts[1]})", elem, vec, True)
        whole = [Value(f"(-{t})" if vec else t, elem if vec else "i32", vec) for t in texts]
        return Value(f"({whole[0].text} {name} {whole[1].text})", elem, vec, True)

    def _call(self, name: str, texts: list[str], elem: str, kind: str, vec: bool) -> str:
        if name in INFIX:
            if name == "/" and elem[0] != "f":
                return f"floordiv_{kind}({', '.join(texts)})"
            text = f"({texts[0]} {INFIX[name]} {texts[1]})"
            return text if vec or SIZES[elem] >= 4 else f"({elem}){text}"
        if name == "neg":
            return f"(-{texts[0]})" if vec or SIZES[elem] >= 4 else f"({elem})(-{texts[0]})"
        if name in ("//", "%"):
            if elem[0] == "f":
                self.used.functions.add({"//": "floordiv", "%": "mod"}[name])
            return f"{'floordiv' if name == '//' else 'mod'}_{kind}({', '.join(texts)})"
        if name in SHIFTS:
            return f"{SHIFTS[name]}_{kind}({', '.join(texts)})"
        if name in ("max", "min"):
            return f"{name}_{kind}({', '.join(texts)})"
        if name == "ceil_div":
            return f"floordiv_{kind}({texts[0]} + {texts[1]} - 1, {texts[1]})"
        if elem[0] != "f":
            return self._integer_function(name, texts, elem, kind, vec)
        self.used.functions.add("mod" if name == "fmod" else name)
        precise = self.precise and OPERATORS[name].has_precise_version
        if precise:
            self.used.functions.add("precise")
        return f"{'plp' if precise else 'pl'}_{name}_{kind}({', '.join(texts)})"

    def _integer_function(self, name: str, texts: list[str], elem: str, kind: str, vec: bool) -> str:
        """Return the C text of a function of floats that is applied to integers."""
        (x, *_) = texts
        if name in ("floor", "ceil", "trunc", "round"):
            return x
        if name == "abs":
            return x if elem[0] == "u" else f"max_{kind}({x}, ({kind})(-{x}))"
        if name == "sign":
            zero = f"bcast_{kind}(0)" if vec else "0"
            if vec:
                return f"(({kind})(({x} > {zero}) & 1) - ({kind})(({x} < {zero}) & 1))"
            return f"({elem})(({x} > 0) - ({x} < 0))"
        if name in OF_INTEGERS:
            self.used.functions.add(OF_INTEGERS[name])
            return f"polyop_{OF_INTEGERS[name]}_{kind}({', '.join(texts)})"
        assert name in ("philox_low", "philox_high"), f"{name} of {elem}"
        self.used.headers.add("philox.h")
        return f"pl_{name}_{kind}({', '.join(texts)})"
