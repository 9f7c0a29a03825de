"""The parsers of input from outside, one row each.

To add one, append a :class:`Parser` to :data:`PARSERS`: valid samples, the mutation of ``mutate.py`` for
them, and the function. It is called with a mutated sample and a folder for its files, and its result is
ignored. It may only raise what ``allowed`` names. Samples that need a compiler or a file are made by a
function, which is called once.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import mutate

from polyop.binary import elf, export_manifest, file_kind, loader_message
from polyop.binary import open as opening
from polyop.build.depfile import parse_depfile
from polyop.build.options import BuildOptions
from polyop.build.paths import absolute
from polyop.core.dims.dims import Dims
from polyop.core.errors import PolyopError
from polyop.core.information.attribute_types import VALUE_TYPES, parse_default
from polyop.core.information.information import Information
from polyop.core.limits import as_path, read_json
from polyop.core.origin import Origin
from polyop.core.parse import parse
from polyop.define.library.exported import Rows
from polyop.define.op_def.read import read_op_defs, read_op_docs
from polyop.graph.onnx_attributes import arguments_of, inputs_and_attributes
from polyop.graph.parse import parse as parse_header
from polyop.graph.parse import read as read_header
from polyop.kernels.reference_name import split_reference
from polyop.wheel import fatbin
from polyop.wheel.audit import audit

ROOT = pathlib.Path(__file__).parents[2]


@dataclass(frozen=True)
class Parser:
    """One parser. ``share`` is the percentage of samples that it gets: parsers that read files are slower."""

    name: str
    samples: Callable[[], list[Any]]
    mutation: Callable[..., Any]
    function: Callable[[Any, pathlib.Path], object]
    allowed: tuple[type[BaseException], ...] = (PolyopError,)
    share: int = 100


SCHEMAS = [
    "demo::scale(Tensor x, *, float alpha=1.0) -> Tensor",
    "f.out(Tensor(a!) self, Tensor? w=None, int[2] k=[3, 3], str s='a\\'b', bool[3] m=[True]) -> (Tensor(a!), Tensor b)",
    "f(Tensor[] xs, int?[] ns=[None, 1], Scalar c=-2.5e-3, ScalarType? d=None, SymInt[] s=[]) -> Tensor[]",
]
DIMS = ["... b i, 3 _ n*, k -> ... b*2//(i-k)+1 n", "b, b i*, -> b b/2", "n k, *, _ ->"]
HEADERS = [
    (
        "#if 0\n#endif\n/* c */ namespace ge { // d\nREG_OP(Half).INPUT(x, TensorType({DT_FLOAT, BasicType()}))\n"
        '.DYNAMIC_INPUT(xs, "T").OPTIONAL_INPUT(w, DT_INT8).DATATYPE(T, TensorType::ALL())\n'
        ".ATTR(k, Float, -1e-8f).ATTR(n, Int, 0x1F).ATTR(l, ListListInt, {{1, 2}, {3}}).ATTR(t, Type, DT_INT8)\n"
        '.ATTR(s, String, "a\\x41" "b").ATTR(z, Tensor, Tensor(1, "a")).REQUIRED_ATTR(b, Bool).GRAPH(g)\n'
        ".OUTPUT(y, ListTensorType({DT_FLOAT})).OP_END_FACTORY_REG(Half)\nint f(int x) { return x; }\n}\n"
    ),
    'REG_OP(A).ATTR(a, ListString, {R"x(raw)x", "b"}).ATTR(p, Float, 0x1.8p3).OP_END_FACTORY_REG(A)',
]
INFORMATION = [
    {
        "op_name": "f", "target": "CPU", "fusion_type": "OPAQUE", "more": {"a": [1, {"b": 2}]},
        "inputs": [{"index": 0, "name": "x", "paramType": "required"}, {"index": 1, "param_type": "dynamic"}],
        "outputs": [{"index": 0, "name": "y"}],
        "attr": [
            {"name": "n", "type": "listInt", "defaultValue": "1,2", "paramType": "optional"},
            {"name": "k", "value_type": "float", "value": 1.5},
            {"name": "a", "type": "all", "value": [1, "a"]},
        ],
        "dtype_format": [[["float32", "DefaultFormat"], ["float32", "NCHW", "tuple"], ["float32", ""]]],
    },
    [{"imply_type": "AiCPU", "inputs": [], "outputs": []}, {"processor": "CUDA"}],
]  # fmt: skip
ATTRIBUTES = [
    {
        "n": 1,
        "f": 0.5,
        "s": "a",
        "b": 1,
        "ns": [1, 2],
        "fs": [0.5],
        "ss": ["a"],
        "d": "int8",
        "c": 2,
        "xs": 2,
        "w": 1,
    }
]
MESSAGES = [
    "/opt/" + "n" * 300 + ".so: cannot open shared object file",
    "libc10.so: cannot open shared object file: No such file or directory",
    "/opt/l.so: undefined symbol: _ZN2at4_ops3add4callERKNS_6TensorE, version X",
    "/lib/libc.so.6: version `GLIBC_2.38' not found (required by /opt/l.so)",
    "Error relocating /opt/l.so: f: symbol not found",
    "cannot allocate memory in static TLS block",
    "failed to map segment from shared object",
]
CODE = """
#include <math.h>
const int polyop_abi_version = 1;
__attribute__((visibility("hidden"))) double half(double x) { return sin(x) / 2; }
int Scale(int n, void** p, int* d, long** s, const char** t, void* stream, void* extra) { return half(n) > 9; }
int ScaleInit(int* d, long** s, const char** t, void* extra) { return 0; }
"""


@cache
def libraries() -> list[bytes]:
    """Return small shared libraries with each kind of hash table, and one without sections."""
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "k.c")
        source.write_text(CODE)
        for flags in ([], ["-Wl,--hash-style=sysv", "-s"], ["-Wl,--hash-style=gnu", "-Wl,-rpath,/tmp", "-g"]):
            path = pathlib.Path(folder, "k.so")
            compiler = shlex.split(os.environ.get("CC", "cc"))
            subprocess.run([*compiler, "-shared", "-fPIC", source, "-o", path, *flags, "-lm"], check=True)
            contents.append(path.read_bytes())
    bare = bytearray(contents[0])
    bare[0x28:0x30], bare[0x3C:0x40] = bytes(8), bytes(4)
    return [*contents, bytes(bare)]


NAME = "ops-1.0-py3-none-linux_x86_64.whl"


@cache
def members() -> list[dict[str, Any]]:
    """Return the files of a wheel, by name."""
    code = libraries()[0]
    digest = hashlib.sha256(code).hexdigest()
    operator = {"schema": "o::f(Tensor x) -> Tensor", "gradient": True, "implementations": {"CPU": "a.cc:1"}}
    record = {"format": 1, "abi": 1, "library": "libops.so", "sha256": digest, "operators": [operator]}
    row = {"function": "f", "signature": "float32", "told": ["x86-64-v3", "x86-64-v4"], "precise": False}
    rows = [{**row, "library": "loops.so", "sha256": digest, "symbol": "Scale"}]
    index = {"format": 1, "meaning": 1, "abi": 1, "module": "ops.loops", "polyop": "1", "source": "0"}
    return [{
        "ops/_ops/libops.so": code,
        "ops/_ops/operators.json": json.dumps(record),
        "ops/__polyop__/loops.so": code,
        "ops/__polyop__/loops.json": json.dumps({**index, "machine": "x86_64", "kernels": rows}),
        "ops/loops.py": "def f(): pass\n",
        "ops-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-linux_x86_64\n",
        "ops-1.0.dist-info/METADATA": "Name: ops\nRequires-Dist: polyop (>=1)\n",
    }]  # fmt: skip


def packed(files: dict[str, Any]) -> bytes:
    """Return a wheel with these files and a RECORD of them."""
    rows, out = [], io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else str(content).encode("utf-8", "surrogatepass")
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}")
            archive.writestr(name, data)
        record = files.get("RECORD", "\n".join(rows))
        archive.writestr("ops-1.0.dist-info/RECORD", record.encode("utf-8", "surrogatepass"))
    return out.getvalue()


def of_members(random: Any, samples: list[dict[str, Any]]) -> bytes:
    """Return a wheel in which one file is changed."""
    files = dict(random.choice(samples))
    name = random.choice([*files, "RECORD"])
    content = files.get(name, "ops/loops.py,sha256=0,0\n")
    changed = mutate.of_bytes if isinstance(content, bytes) else mutate.of_text
    return packed({**files, name: changed(random, [content])})


def of_images(_: Any = None) -> list[bytes]:
    """Return the content of a section .nv_fatbin: two bundles with an image each."""
    entry = (2).to_bytes(2, "little") + bytes(2) + (64).to_bytes(4, "little") + (8).to_bytes(8, "little")
    entry += bytes(12) + (90).to_bytes(4, "little") + bytes(64 - 32 + 8)
    bundle = bytes.fromhex("50ed55ba") + b"\1\0\x10\0" + len(entry).to_bytes(8, "little") + entry
    return [bundle + bytes(8) + bundle]


def in_file(name: str, function: Callable[[str], object]) -> Callable[[bytes | str, pathlib.Path], object]:
    """Return a function that writes its sample to a file first."""

    def run(sample: bytes | str, folder: pathlib.Path) -> object:
        data = sample if isinstance(sample, bytes) else sample.encode("utf-8", "surrogatepass")
        (folder / name).write_bytes(data)
        return function(str(folder / name))

    return run


def _dims(text: str, _: pathlib.Path) -> None:
    schema = parse("f(Tensor x, Tensor[] ys, Tensor? z, int k, float a) -> Tensor")
    dims = Dims.parse(text, schema)
    assert Dims.parse(dims.text, schema) == dims
    shapes = [(3, 2, 4), [(3, 8, 9)], None]
    attempted(lambda: dims.output_shapes(dims.match(shapes, {"k": 3}), {"k": 3}))


def _parallel(text: str, _: pathlib.Path) -> None:
    schema = parse("f(Tensor x, int k) -> Tensor")
    dims = Dims.parse("... b i -> ... b i+k", schema, parallel=text)
    assert Dims.parse(dims.text, schema, **dims.claims()) == dims


def _halo(text: str, _: pathlib.Path) -> None:
    schema = parse("f(Tensor x, int k) -> Tensor")
    dims = Dims.parse("b i -> b i", schema, halo={"i": (text, 1)})
    assert Dims.parse(dims.text, schema, **dims.claims()) == dims
    attempted(dims.halo_widths, "i", {"b": 2, "i": 5}, {"k": 3})


def _information(sample: Any, _: pathlib.Path) -> object:
    return Information.from_any(sample, subject="f", func_type="aot")


def _default(sample: str, _: pathlib.Path) -> object:
    return [attempted(parse_default, value_type, sample, "f") for value_type in VALUE_TYPES]


def attempted(function: Callable[..., object], *arguments: object) -> object:
    """Return a function's result, or the error that it raised if that is polyop's."""
    try:
        return function(*arguments)
    except PolyopError as problem:
        return problem


@cache
def _operator() -> Any:
    from polyop.call.operator import Operator

    attributes = (
        "int n, float f=1.0, str s='a', bool b=True, int[] ns=[], float[] fs=[], str[] ss=[], Scalar c=1"
    )
    schema = f"fuzz::f(Tensor x, Tensor[] xs, Tensor? w, {attributes}, ScalarType? d=None) -> Tensor"
    return Operator(parse(schema), lambda *_: (), (), origin="ops.py:3")


def _node(sample: Any, _: pathlib.Path) -> object:
    return arguments_of(_operator(), sample, 4) if isinstance(sample, dict) else None


def _call(sample: Any, _: pathlib.Path) -> object:
    if not isinstance(sample, dict):
        return None
    names = [argument.name for argument in _operator().schema.arguments]
    tensors = {"x": "x", "xs": [], "w": None}
    return inputs_and_attributes(_operator(), [{**sample, **tensors}.get(name) for name in names])


def _library(path: str) -> object:
    for function in (elf.hidden_functions, opening.is_whole):
        attempted(function, path)
    attempted(fatbin.architectures, pathlib.Path(path))
    return elf.aot_functions(elf.read(path))


def _options(sample: Any, _: pathlib.Path) -> object:
    return BuildOptions.of(**sample) if isinstance(sample, dict) and all(map(_known, sample)) else None


def _known(name: object) -> bool:
    return name in ("flags", "link_flags", "include_paths", "cuda_architectures")


def _message(sample: str, _: pathlib.Path) -> object:
    return loader_message.explain(elf.LibraryFile(pathlib.Path("l.so"), "x86-64", (), (), None, None), sample)


def _yaml() -> list[str]:
    return [(ROOT / "tests" / "sources" / name).read_text() for name in ("graph_add.yaml", "graph_norm.yaml")]


def _docs() -> list[str]:
    return [(ROOT / "tests" / "sources" / "graph_add_doc.yaml").read_text()]


def _manifests() -> list[Any]:
    size = ["+", ["size", 0, 1], ["attribute", 0]]
    row = {
        "name": "fuzz::f",
        "schema": "fuzz::f(Tensor x, int k=1) -> Tensor",
        "c": "fuzz_f",
        "kernels": [{"x": {"dtypes": ["float32"], "dimensions": 2}}],
        "outputs": [[{"dtype": "float32", "shape": [["size", 0, 0], size]}]],
        "infer": None,
        "fixed": {},
        "notation": {"dims": "m n -> m o"},
        "backward": "",
        "no_backward": "",
        "doc": "",
        "not_for": {},
    }
    return [{"format": export_manifest.FORMAT, "register_torch": "r", "operators": [row]}]


def _marked(sample: Any) -> bytes:
    return f"{export_manifest.MARK}{json.dumps(sample)}".encode() + b"\0"


def in_manifest(sample: Any, folder: pathlib.Path) -> object:
    """Read a manifest from a file, and its schema and sizes as ``load_library`` does."""
    file = folder / "l.so"
    try:
        file.write_bytes(_marked(sample))
    except (TypeError, ValueError, RecursionError):  # no value of JSON
        return None
    content = export_manifest.read(file)
    assert content is not None
    return [Rows(file, content, {}, {}, Origin("f.py", 1))]


PARSERS = [
    Parser("schema", lambda: SCHEMAS, mutate.of_text, lambda text, _: parse(text)),
    Parser("dims", lambda: DIMS, mutate.of_text, _dims),
    Parser("names of parallel dimensions", lambda: ["b i", "... b"], mutate.of_text, _parallel),
    Parser("width of a halo", lambda: ["k//2", "(b+k)*2-i", "3"], mutate.of_text, _halo),
    Parser("REG_OP header", lambda: HEADERS, mutate.of_text, lambda text, _: parse_header(text)),
    Parser(
        "REG_OP header in a file",
        lambda: [text.encode() for text in HEADERS],
        mutate.of_bytes,
        in_file("h.h", read_header),
        share=50,
    ),
    Parser("registration information", lambda: INFORMATION, mutate.of_value, _information),
    Parser(
        "registration information as JSON",
        lambda: list(map(json.dumps, INFORMATION)),
        mutate.of_text,
        _information,
    ),
    Parser(
        "default of an attribute", lambda: ["1, 2.5", "[[1], [2, 3]]", "true", "a"], mutate.of_text, _default
    ),
    Parser("op_def", _yaml, mutate.of_text, in_file("f.yaml", lambda path: read_op_defs([path])), share=5),
    Parser(
        "op_doc",
        _docs,
        mutate.of_text,
        in_file("f.yaml", lambda path: read_op_docs([path], ["add4"])),
        share=10,
    ),
    Parser("shared library", libraries, mutate.of_bytes, in_file("l.so", _library), share=50),
    Parser("kind of a file", libraries, mutate.of_bytes, in_file("l.so", file_kind.file_problem)),
    Parser("manifest", _manifests, mutate.of_value, in_manifest),
    Parser(
        "manifest as bytes",
        lambda: [_marked(one) for one in _manifests()],
        mutate.of_bytes,
        in_file("l.so", export_manifest.read),
    ),
    Parser("wheel", lambda: list(map(packed, members())), mutate.of_bytes, in_file(NAME, audit), share=10),
    Parser("files of a wheel", members, of_members, in_file(NAME, audit), share=10),
    Parser("CUDA images", of_images, mutate.of_bytes, lambda data, _: list(fatbin._entries(data))),
    Parser("attributes of an ONNX node", lambda: ATTRIBUTES, mutate.of_value, _node),
    Parser("attributes for ONNX", lambda: [{**ATTRIBUTES[0], "b": True}], mutate.of_value, _call),
    Parser("message of the loader", lambda: MESSAGES, mutate.of_text, _message),
    Parser(
        "list of headers",
        lambda: ["t: /a\\ b/k.c \\\n /x.h\n", "t: /a" + "\\" * 200_000],
        mutate.of_text,
        lambda text, _: parse_depfile(text),
        (),
    ),
    Parser(
        "name of a function", lambda: ["lib.so:f"], mutate.of_text, lambda text, _: split_reference(text, "f")
    ),
    Parser(
        "path",
        lambda: ["/a/./b", "c.so"],
        mutate.of_text,
        lambda text, _: (as_path(text, "f"), absolute(text)),
    ),
    Parser("flags", lambda: [{"flags": ["-O2"], "include_paths": ["/a"]}], mutate.of_value, _options),
    Parser(
        "JSON",
        lambda: list(map(json.dumps, INFORMATION)),
        mutate.of_text,
        lambda text, _: read_json(text),
        (ValueError,),
    ),
]
