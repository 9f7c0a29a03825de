"""Write docs/reference/api.md from the docstrings: python tools/api_reference.py.

The public modules are imported, so PyTorch and JAX must be installed. Names are in the order of ``__all__``.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polyop
from polyop.cli.main import parser as command_line
from polyop.core import errors, tracebacks
from polyop.report.report import Report
from polyop.sharding.collectives import TensorLayout
from polyop.sharding.communication import Communication
from polyop.sharding.transition import Collective

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md"
MODULES = (
    "polyop",
    "polyop.testing",
    "polyop.wheel",
    "polyop.graph",
    "polyop.graph.onnx",
    "polyop.graph.torchair",
    "polyop.networks.weights",
    "polyop.mindspore",
    "polyop.mindspore.nn",
    "polyop.mindspore.ops",
)
RESULTS = (Communication, TensorLayout, Collective, Report)
HEAD = """# API reference

Every public name, from the docstrings (`make golden` writes this page again). Names that begin with `_`, and
modules that are not here, may change.

"""
# Methods that only hosts and setuptools call; the page leaves them out.
_NOT_FOR_USERS = {
    "BoundOperator": ("alive", "opened", "pack", "prepare", "retire", "route_to_torch", "traced", "update"),
    "BuildExtension": ("get_output_mapping", "get_outputs", "run"),
    "Custom": ("route_to_torch",),
}
_ITEM = re.compile(r"(?P<names>``[^`]+``(, ``[^`]+``)*)(?P<gap>\s+)(?P<text>\S.*)")


def text() -> str:
    """Return the whole page."""
    parts = [HEAD, "".join(f"* [{name}](#{_anchor(name)})\n" for name in MODULES)]
    parts.append("* [Results](#results)\n* [Errors](#errors)\n* [Command line](#command-line)\n")
    described: dict[int, str] = {}
    parts += [part for name in MODULES for part in _module(name, described)]
    return "".join([*parts, *_results(), *_errors(), *_commands()])


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _module(name: str, described: dict[int, str]) -> Iterator[str]:
    """Yield the section of a module; ``described`` names the objects that have one, by identity."""
    module = importlib.import_module(name)
    yield f"\n## {name}\n"
    yield _prose(inspect.getdoc(module) or "")
    listed: dict[str, list[str]] = {}
    for each in module.__all__:
        value = getattr(module, each)
        if each.startswith("_"):
            continue
        if id(value) in described:
            listed.setdefault("Described above", []).append(f"`{each}` (`{described[id(value)]}`)")
        elif _is_written_out(value):
            described[id(value)] = f"{name}.{each}"
            yield from _described(f"{name}.{each}", value)
        else:
            listed.setdefault(_kind(value), []).append(f"`{each}`")
    for kind, names in listed.items():
        yield f"\n{kind}: " + ", ".join(names) + ".\n"


_QUIET = tracebacks.quiet(inspect.getdoc).__code__
"""The code of functions that only hide polyop's frames around a definition."""


def _is_written_out(value: Any) -> bool:
    """Return whether a value has a definition with a docstring, so that it gets a section."""
    if not isinstance(value, (type, types.FunctionType)):
        return value is polyop.DataType  # a table whose class is private
    module = sys.modules[value.__module__]
    defined = getattr(module, value.__name__, None) is value and (
        not hasattr(value, "__wrapped__") or value.__code__ is _QUIET
    )
    return (
        module.__name__.startswith("polyop") and defined and bool(vars(value).get("__doc__", value.__doc__))
    )


def _kind(value: object) -> str:
    """Return the heading of names that are only listed."""
    if isinstance(value, types.ModuleType):
        return "Modules"
    if isinstance(value, type):
        return "Classes"
    if callable(value):
        return "Functions"
    return "Values"


def _described(name: str, value: Any) -> Iterator[str]:
    """Yield the section of a class or a function."""
    yield f"\n### {name}\n"
    short = name.rpartition(".")[2]
    if isinstance(value, types.FunctionType) or (isinstance(value, type) and _has_constructor(value)):
        yield f"\n```python\n{_signature(short, value)}\n```\n"
    yield _prose(inspect.getdoc(value) or "")
    if isinstance(value, type):
        hidden = _NOT_FOR_USERS.get(short, ())
        for method, member in vars(value).items():
            if not method.startswith("_") and method not in hidden and _own_doc(member):
                yield from _method(short, method, member)


def _has_constructor(cls: type) -> bool:
    """Return whether a class of polyop defines its own constructor."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    return owner.__module__.startswith("polyop") and not issubclass(cls, BaseException)


def _own_doc(member: object) -> str:
    plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
    documented = isinstance(plain, (property, types.FunctionType))
    return (inspect.getdoc(plain) or "") if documented else ""


def _method(owner: str, name: str, member: Any) -> Iterator[str]:
    text = _prose(_own_doc(member)).strip("\n")
    if isinstance(member, property):
        title = f"{owner}.{name}"
    else:
        plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        bound = not isinstance(member, staticmethod)
        title = _signature(f"{owner}.{name}", plain, bound=bound)
    lines = "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())
    yield f"\n* `{title}`\n\n{lines}"


def _signature(name: str, value: Any, *, bound: bool = False) -> str:
    """Return ``name(arguments) -> result`` with annotations as written; a long one has several lines."""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return f"{name}(...)"
    arguments = list(signature.parameters.values())[1 if bound else 0 :]
    plain = inspect.signature(lambda: None).replace(parameters=arguments)
    words = [_parameter(argument) for argument in arguments]
    for kind, mark in ((inspect.Parameter.KEYWORD_ONLY, "*"), (inspect.Parameter.POSITIONAL_ONLY, "/")):
        positions = [i for i, argument in enumerate(arguments) if argument.kind == kind]
        stars = any(a.kind == inspect.Parameter.VAR_POSITIONAL for a in plain.parameters.values())
        if positions and not (mark == "*" and stars):
            words.insert(positions[0] if mark == "*" else positions[-1] + 1, mark)
    result = signature.empty if isinstance(value, type) else signature.return_annotation
    end = ")" if result is signature.empty else f") -> {_annotation(result)}"
    line = f"{name}({', '.join(words)}{end}"
    if len(line) <= 100 or bound:
        return line
    return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + end


def _annotation(value: Any) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", str(value))


def _parameter(argument: inspect.Parameter) -> str:
    stars = "*" * (argument.kind == argument.VAR_POSITIONAL) + "**" * (argument.kind == argument.VAR_KEYWORD)
    typed = "" if argument.annotation is argument.empty else f": {_annotation(argument.annotation)}"
    if argument.default is argument.empty:
        return f"{stars}{argument.name}{typed}"
    plain = isinstance(argument.default, (str, int, float, tuple, list, dict, type(None)))
    default = repr(argument.default) if plain else "..."
    return f"{argument.name}{typed} = {default}" if typed else f"{argument.name}={default}"


def _prose(doc: str) -> str:
    """Return a docstring as Markdown: examples in fences, lists of arguments as lists."""
    parts: list[str] = []
    code = False
    for block in re.split(r"\n[ \t]*\n", doc):
        lines = block.splitlines()
        if code and lines and lines[0].startswith(" "):
            parts.append(_fenced(lines))
            continue
        code = block.rstrip().endswith("::")
        if lines and lines[0].lstrip().startswith(">>>"):
            parts.append(_fenced(lines))
        elif _is_list(lines):
            parts.append(_list(lines))
        elif lines:
            parts.append(_words(re.sub(r"::$", ":", re.sub(r"(\s|^)::$", "", block.rstrip()))))
    return "".join(f"\n{part}\n" for part in parts if part)


def _fenced(lines: list[str]) -> str:
    width = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "```python\n" + "\n".join(line[width:] for line in lines) + "\n```"


def _is_list(lines: list[str]) -> bool:
    items = [_ITEM.fullmatch(line) for line in lines]
    fitting = all(item or line.startswith(" ") for item, line in zip(items, lines, strict=True))
    wide = any(item and len(item["gap"]) > 1 for item in items)
    return bool(lines and items[0] and fitting and wide)


def _list(lines: list[str]) -> str:
    items: list[str] = []
    for line in lines:
        item = _ITEM.fullmatch(line)
        items.append(f"- {item['names']}: {item['text']}" if item else f"  {line.strip()}")
    return _words("\n".join(items))


def _words(prose: str) -> str:
    """Return prose with Markdown's marks for code."""
    roles = re.sub(r":(?:func|class|meth|mod|data):`~?([^`]+)`", r"`\1`", prose)
    return roles.replace("``", "`").replace("|", r"\|") if "\n|" in prose else roles.replace("``", "`")


def _results() -> Iterator[str]:
    """Yield the sections of the values that operators return and nobody constructs."""
    yield "\n## Results\n\nWhat methods of operators return. Programs read them, and do not make them.\n"
    for value in RESULTS:
        yield f"\n### {value.__name__}\n"
        yield _prose(inspect.getdoc(value) or "")
        for name, member in vars(value).items():
            if not name.startswith("_") and _own_doc(member):
                yield from _method(value.__name__, name, member)


def _errors() -> Iterator[str]:
    yield "\n## Errors\n\nIn `polyop.core.errors`; `polyop.PolyopError` is the base of all.\n\n"
    yield "| error | is also | for |\n| --- | --- | --- |\n"
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == errors.__name__:
            bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
            first = _words((inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " "))
            yield f"| `{name}` | {bases} | {first} |\n"


def _commands() -> Iterator[str]:
    yield "\n## Command line\n"
    yield from _verbs(command_line(), "polyop")


def _verbs(parser: argparse.ArgumentParser, name: str, about: str = "") -> Iterator[str]:
    """Yield the section of a verb with its arguments, and those of its subcommands."""
    actions = parser._actions  # noqa: SLF001 - argparse has no other list of them
    inner = [action for action in actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    own = [action for action in actions if action not in inner and "--help" not in action.option_strings]
    if name != "polyop":
        usage = " ".join([name, *map(_usage, own), *(str(action.metavar or "") for action in inner)])
        yield f"\n### {name}\n\n```\n{usage}\n```\n"
    description = parser.description or f"{about[:1].upper()}{about[1:]}."
    yield f"\n{description}\n"
    rows = [f"| {_called(action)} | {_help(action)} |\n" for action in own]
    if rows:
        yield "\n| | |\n| --- | --- |\n" + "".join(rows)
    for action in inner:
        texts = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
        for verb, each in action.choices.items():
            yield from _verbs(each, f"{name} {verb}", texts.get(verb, ""))


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        word = max(action.option_strings, key=len) + (f" {_value(action)}" if action.nargs != 0 else "")
        return word if action.required else f"[{word}]"
    word = _value(action)
    return {"*": f"[{word} ...]", "+": f"{word} [...]", "?": f"[{word}]"}.get(str(action.nargs), word)


def _called(action: argparse.Action) -> str:
    return ", ".join(f"`{name}`" for name in action.option_strings) or f"`{_value(action)}`"


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return text.replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
