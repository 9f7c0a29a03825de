"""Gradient rules as functions whose source text MindSpore's compiler can read.

The compiler reads whole statements of plain functions. Lambdas, methods, partials and callable
objects are rewritten as such functions.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .generated import make_function

_FOREIGN = {"numpy", "array_api_compat", "torch", "jax", "scipy", "math", "ml_dtypes"}
"""Modules whose functions MindSpore's compiler cannot read."""

_READ = {"mindspore", "polyop", "builtins"}
"""Modules whose functions it can read. The functions of all other modules are examined."""


def as_function(rule: Callable[..., Any], count: int) -> types.FunctionType | None:
    """Return a function of ``count`` arguments that does what a rule does; None without a source text.

    A ``lambda`` becomes a ``def``. A method, a partial or a callable object becomes a ``def`` that
    calls the function inside.
    """
    if isinstance(rule, types.MethodType):
        return _with_fixed(rule.__func__, (rule.__self__,), {}, count)
    if isinstance(rule, functools.partial):
        return _with_fixed(rule.func, rule.args, rule.keywords, count)
    if isinstance(rule, types.FunctionType):
        return _of_function(rule, count)
    call = getattr(type(rule), "__call__", None)  # noqa: B004 - for its text
    return _with_fixed(call, (rule,), {}, count) if isinstance(call, types.FunctionType) else None


def _of_function(rule: types.FunctionType, count: int) -> types.FunctionType | None:
    code = rule.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    if rule.__name__ != "<lambda>":
        return _unwrapped(rule) if linecache.getlines(code.co_filename) else None
    body = _lambda_of(rule)
    if body is None:
        return None
    names = code.co_varnames[: min(count, code.co_argcount)]
    outside = _outside(rule) | _defaults(rule, count)
    outside = {name: outside[name] for name in _names_in(body, names) if name in outside}
    text = f"def rule{{n}}({', '.join(names)}):\n    return {_renamed(body, outside)}"
    result: types.FunctionType = make_function("rule", text, **outside)
    return result


def _with_fixed(inner: Any, args: tuple[Any, ...], keywords: Any, count: int) -> types.FunctionType | None:
    read = as_function(inner, count + len(args)) if not keywords or _is_def(inner) else None
    if read is None:
        return None
    parameters = ", ".join(f"p{i}" for i in range(count))
    fixed = {f"fixed{i}_": value for i, value in enumerate(args)}
    named = {f"named_{name}_": value for name, value in keywords.items()}
    passed = [f"{name}{{n}}" for name in fixed] + [parameters]
    passed += [f"{name}=named_{name}_{{n}}" for name in keywords]
    text = f"def rule{{n}}({parameters}):\n    return inner{{n}}({', '.join(passed)})"
    result: types.FunctionType = make_function("rule", text, inner=read, **fixed, **named)
    return result


def _is_def(inner: Any) -> bool:
    return isinstance(inner, types.FunctionType) and inner.__name__ != "<lambda>"


def _unwrapped(rule: types.FunctionType) -> types.FunctionType:
    """Return the function without ``__wrapped__``, whose text the compiler would read instead."""
    if not hasattr(rule, "__wrapped__"):
        return rule
    code, defaults = rule.__code__, rule.__defaults__
    result = types.FunctionType(code, rule.__globals__, code.co_name, defaults, rule.__closure__)
    result.__kwdefaults__ = rule.__kwdefaults__
    return result


def foreign(rule: types.FunctionType) -> str:
    """Return why the compiler cannot read a rule or a function that it calls; "" if it can."""
    return _foreign(rule, set())


def _foreign(rule: types.FunctionType, visited: set[types.CodeType]) -> str:
    if rule.__code__ in visited:
        return ""
    visited.add(rule.__code__)
    outside = _outside(rule)
    for name in _read_names(rule.__code__):
        value = outside.get(name)
        if isinstance(value, (types.MethodType, functools.partial)):
            value = value.__func__ if isinstance(value, types.MethodType) else value.func
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        root = module.split(".", 1)[0] if isinstance(module, str) else ""
        if root in _FOREIGN:
            return f"it uses {module}"
        if not isinstance(value, types.FunctionType) or (root in _READ and not _is_generated(value)):
            continue
        if hasattr(value, "__wrapped__"):
            return f"it calls {value.__qualname__}, whose text is not what runs: a decorator made it"
        reason = _foreign(value, visited)
        if reason:
            return reason
    return ""


def _is_generated(value: types.FunctionType) -> bool:
    return value.__module__ == make_function.__module__  # it calls the author's functions: examine it


def _read_names(code: types.CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _read_names(constant)


def _outside(rule: types.FunctionType) -> dict[str, Any]:
    """Return the values of a function's global and closure names."""
    cells = zip(rule.__code__.co_freevars, rule.__closure__ or (), strict=True)
    return {**rule.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def _defaults(rule: types.FunctionType, count: int) -> dict[str, Any]:
    """Return the values of the parameters that a call with ``count`` arguments does not pass."""
    code, defaults = rule.__code__, rule.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    rows = list(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return {name: value for name, value in rows if name in names[count:]} | (rule.__kwdefaults__ or {})


def _lambda_of(rule: types.FunctionType) -> ast.Lambda | None:
    """Return the syntax tree of a lambda; None unless exactly one on its line fits its code object."""
    code = rule.__code__
    on_line = [node for node in _lambdas(code.co_filename) if node.lineno == code.co_firstlineno]
    matching = [node for node in on_line if _matches(node, code)]
    if len(matching) > 1 and hasattr(code, "co_positions"):
        positions = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
        matching = [node for node in matching if (node.body.lineno, node.body.col_offset) == min(positions)]
    return matching[0] if len(matching) == 1 else None


@functools.lru_cache(maxsize=64)
def _lambdas(path: str) -> tuple[ast.Lambda, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))


def _matches(node: ast.Lambda, code: types.CodeType) -> bool:
    compiled = next(
        constant
        for constant in compile(ast.unparse(node), "<rule>", "eval").co_consts
        if isinstance(constant, types.CodeType)
    )
    names = {*compiled.co_names, *compiled.co_freevars}
    same_names = names == {*code.co_names, *code.co_freevars}
    return same_names and compiled.co_varnames == code.co_varnames and compiled.co_consts == code.co_consts


def _names_in(node: ast.Lambda, arguments: Sequence[str]) -> set[str]:
    """Return the names that a lambda reads from outside, parameters not in ``arguments`` among them."""
    names = [x for x in ast.walk(node.body) if isinstance(x, ast.Name)]
    inner = {x.arg for x in ast.walk(node.body) if isinstance(x, ast.arg)}
    stored = {x.id for x in names if isinstance(x.ctx, ast.Store)}
    return {x.id for x in names} - set(arguments) - inner - stored


def _renamed(node: ast.Lambda, outside: dict[str, Any]) -> str:
    class Rename(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.Name:
            return ast.Name(f"{name.id}__n__", name.ctx) if name.id in outside else name

    return ast.unparse(Rename().visit(copy.deepcopy(node.body))).replace("__n__", "{n}")
