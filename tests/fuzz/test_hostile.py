"""Damaged and hostile input: a row for each class that once raised a foreign error, hung or gave a wrong value."""

import os
import pathlib
import struct
import zipfile

import numpy as np
import pytest
from parsers import NAME, libraries, members, packed

import polyop
from polyop.binary import elf
from polyop.binary.cxx_names import demangle
from polyop.binary.open import is_whole
from polyop.build.depfile import parse_depfile
from polyop.core.errors import PolyopError
from polyop.core.information.information import Information
from polyop.core.parse import parse
from polyop.core.spec import Spec
from polyop.define.op_def.read import read_op_defs
from polyop.graph.onnx_attributes import arguments_of
from polyop.graph.parse import parse as parse_header
from polyop.wheel import fatbin
from polyop.wheel.audit import audit
from processor_time import seconds_within


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def attribute(kind, value):
    return f"REG_OP(H).INPUT(x, DT_FLOAT).ATTR(k, {kind}, {value}).OP_END_FACTORY_REG(H)"


def schema(argument):
    return lambda: parse(f"demo::f(Tensor x, {argument}) -> Tensor")


def information(value):
    return lambda: Information.from_any(value, subject="f", func_type="aot")


def op_def(text):
    def read():
        pathlib.Path("f.yaml").write_text(text)
        return read_op_defs(["f.yaml"])

    return read


def default(value):
    return op_def(
        f"f: {{args: {{x: {{dtype: tensor}}, k: {{dtype: int, default: {value}}}}}, returns: {{y: {{dtype: tensor}}}}}}"
    )


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{k}: &{k} [{', '.join([f'*{chr(ord(k) - 1)}'] * 10)}]\n" for k in "bcdefghij"
)
CASES = {
    "schema, 5,000 digits": (schema(f"int a={'1' * 5000}"), "number of more than 400 digits"),
    "schema, digits in a list": (schema(f"float[] a=[{'1' * 390}]"), "integer of more than 64 bits"),
    "schema, 2,000 brackets": (schema(f"int[] a={'[' * 2000}{']' * 2000}"), "more than 8 lists inside each other"),
    "schema, list of a milliard": (schema("int[1000000000] a=3"), "list of more than 4096 items"),
    "schema, float without end": (schema("float a=1e999"), "beyond those of float64"),
    "schema, surrogate": (schema("str a='\ud800'"), "that UTF-8 and C can hold"),
    "schema, NUL": (schema("str a='\0'"), "that UTF-8 and C can hold"),
    "schema, no text": (lambda: parse(b"f() -> ()"), "must be a text, but got b'f"),
    "schema, item of another type": (schema("str[] a=[1]"), "gives str the default 1"),
    "header, surrogate": (lambda: parse_header(f'\n{attribute("String", "chr")}\n"\ud800"'), "<text>:3: a header must be"),
    "header, digits": (lambda: parse_header(attribute("Int", "1" * 5000)), "at most 400 characters"),
    "header, float of an int": (lambda: parse_header(attribute("Float", "9" * 350)), "must fit in a float of 32 bits"),
    "header, hexadecimal float": (lambda: parse_header(attribute("Float", "0x1p99999")), "must fit in a float of 32 bits"),
    "header, hexadecimal float without digits": (lambda: parse_header(attribute("Float", "0x.p1")), "expected a number"),
    "header, brackets": (lambda: parse_header(attribute("Int", "-(" * 9000)), "more than 100 brackets"),
    "header, quotes": (lambda: parse_header('"a\\' * 20000), "does not end on its line"),
    "header, raw strings": (lambda: parse_header('R"(' * 200000), "the raw string has no end"),
    "header, conditionals": (lambda: parse_header("#if 1\n" * 50000), "more than 100 conditionals"),
    "information, deep": (information(deep(9000)), "nested more than 64 levels deep"),
    "information, deep JSON": (information("[" * 99999 + "]" * 99999), "nested more than 64 levels deep"),
    "information, 1e400": (information('{"inputs": [{"index": 1e400}]}'), "'1e400' is not finite"),
    "information, keys of two types": (information({"target": "CPU", "z": {1: 2, "1": 3}}), "every key .* must be a text"),
    "information, surrogate": (information({"target": "CPU", "z": "\ud800"}), "that UTF-8 and C can hold"),
    "information, int beyond float": (
        information({"target": "CPU", "attr": [{"name": "a", "type": "float", "value": 10**400}]}),
        "the value must be of type float",
    ),
    "op_def, digits": (default("1" * 5000), "is not valid YAML: Exceeds the limit"),
    "op_def, deep": (default("[" * 3000), "is nested more than 64 levels deep"),
    "op_def, date": (default("2001-99-99"), "is not valid YAML: month must be in"),
    "op_def, tag": (default("!!bool x"), "has a tag"),
    "op_def, aliases": (op_def(LAUGHS), "it has more than 1000000 items"),
    "op_def, itself": (op_def("a: &x [*x]"), "nested more than 64 levels deep"),
    "op_def, signs": (default(f"'{'-' * 9000}1'"), "must be a value of int"),
    "name with a NUL": (lambda: polyop.prebuilt(_library(), "Scale\0x"), "does not offer the function 'Scale.x00x'"),
    "name that is no text": (lambda: polyop.prebuilt(_library(), 3), "the function's name must be a text"),
    "path with a NUL": (lambda: polyop.prebuilt(f"{_library()}\0x", "Scale"), "must be one that a file can have"),
    "path with a surrogate": (lambda: polyop.prebuilt("\ud800", "Scale"), "must be one that a file can have"),
    "path of a source with a NUL": (lambda: polyop.source("a\0.c", function="f"), "must be one that a file can have"),
    "library to load with a NUL": (lambda: polyop.load_library("a\0.so"), "must be one that a file can have"),
    "source with a line end in its name": (lambda: polyop.source("a\n.c", function="f"), "must be one line of UTF-8"),
    "source whose name is no UTF-8": (lambda: polyop.source("a\udcff.c", function="f"), "must be one line of UTF-8"),
    "flags, a number": (lambda: polyop.source("a.c", function="f", flags=3), "flags: must be a list of strings, but got 3"),
    "flags, bytes": (lambda: polyop.source("a.c", function="f", flags=[b"-O2"]), "flags: must be a list of strings"),
    "flags, None": (lambda: polyop.source("a.c", function="f", link_flags=[None]), "link_flags: must be a list"),
    "flags, NUL": (lambda: polyop.source("a.c", function="f", flags=["-D\0"]), "flags: must hold texts without NUL"),
    "folders, numbers": (lambda: polyop.source("a.c", function="f", include_paths=[3]), "include_paths: must be a list"),
    "code, bytes": (lambda: polyop.source(function="f", code=b"int f;"), "code: must be a text"),
    "cflags, quotes": (lambda: polyop.load_library("a.cc", cflags="'"), "quoted as in a shell"),
    "node, a list of 2**62": (lambda: arguments_of(_operator(), {"xs": 2**62}, 2), "says how many inputs it takes"),
    "node, array for a bool": (
        lambda: arguments_of(_operator(), {"xs": 0, "b": np.array([True, False])}, 1),
        "argument b: must be bool",
    ),
}  # fmt: skip


def _library():
    pathlib.Path("lib.so").write_bytes(libraries()[0])
    return str(pathlib.Path("lib.so").resolve())


def _operator():
    from polyop.call.operator import Operator

    return Operator(
        parse("hostile::f(Tensor x, Tensor[] xs, bool b=True, str[] ss=[]) -> Tensor"), lambda *_: (), ()
    )


@pytest.mark.parametrize("name", CASES)
def test_hostile_input_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attempt, message = CASES[name]
    with seconds_within(10), pytest.raises(PolyopError, match=message) as caught:
        attempt()
    assert len(str(caught.value).encode()) < 5000


def test_long_input_is_read_in_linear_time():
    arguments = ", ".join(f"Tensor x{i}" for i in range(8000))
    schema_text = f"long::f({arguments}, *, {arguments.replace('Tensor x', 'int k')}) -> Tensor"
    items = "".join(f".INPUT(x{i}, DT_FLOAT)" for i in range(8000))
    with seconds_within(20):
        assert len(parse(schema_text).arguments) == 16000
        assert len(parse_header(f"REG_OP(H){items}.OP_END_FACTORY_REG(H)")[0].items) == 8000
        assert len(parse_header(attribute("Tensor", "a" + " b" * 30000))[0].items) == 2


def test_a_default_of_a_list_of_texts_needs_no_attribute_of_the_node():
    assert arguments_of(_operator(), {"xs": 0}, 1) == [1, [], True, ()]


def damaged(offset, form, *numbers):
    data = bytearray(libraries()[0])
    struct.pack_into(form, data, offset, *numbers)
    return bytes(data)


@pytest.mark.parametrize(
    ("offset", "form", "numbers"),
    [
        (32, "<Q", (2**64 - 1,)),
        (40, "<Q", (2**63,)),
        (54, "<H", (1,)),
        (56, "<H", (65535,)),
        (60, "<H", (65535,)),
    ],
    ids=[
        "segments far away",
        "sections far away",
        "segments of one byte",
        "65535 segments",
        "65535 sections",
    ],
)
def test_a_library_with_huge_offsets_is_an_error(tmp_path, offset, form, numbers):
    path = tmp_path / "lib.so"
    path.write_bytes(damaged(offset, form, *numbers))
    with pytest.raises(PolyopError, match="is damaged: its tables cannot be read"):
        elf.read(path)
    assert is_whole(str(path)) in (True, False)


def test_versions_that_point_at_themselves_end(tmp_path):
    with elf.opened(_written(tmp_path, libraries()[0])) as tables:
        start = tables.offset_of(tables.tag(0x6FFFFFFE))
    data = bytearray(libraries()[0])
    struct.pack_into("<H", data, start + 2, 65535)  # vn_cnt
    struct.pack_into("<I", data, start + 16 + 12, 0)  # vna_next: the same again
    with seconds_within(10):
        for following in (0, 16):
            struct.pack_into("<I", data, start + 12, following)
            with_versions = _written(tmp_path, bytes(data))
            try:
                assert len(elf.read(with_versions).versions) == 1
            except PolyopError as problem:
                assert "is damaged" in str(problem)


def _written(folder, data):
    path = folder / "lib.so"
    path.write_bytes(data)
    return path


def test_a_name_that_grows_without_end_stays_as_it_is():
    name = "_Z1fSt4pairIiiE" + "".join(f"S_IS{i}_S{i}_E" for i in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert demangle(name) == name
    assert demangle("_Z1fSt4pairIiiES0_") == "f(std::pair<int, int>, std::pair<int, int>)"


def test_cuda_images_without_size_end():
    empty = struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 0)
    assert list(fatbin._entries(empty + bytes(64))) == []


def bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ops/zeros", bytes(200 << 20))


def unreadable(path):
    data = bytearray(packed(members()[0]))
    offset = data.find(b"libops.so") + 9
    data[offset : offset + 400] = bytes(400)
    path.write_bytes(data)


def cut(path):
    path.write_bytes(packed(members()[0])[:-700])


def encoded(path):
    path.write_bytes(packed({**members()[0], "ops-1.0.dist-info/WHEEL": b"Tag: \xff\n"}))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (bomb, "unpacks to 209715200 bytes in 1 files, which is no honest wheel"),
        (unreadable, "'ops/_ops/libops.so': error: Error -3 while decompressing"),
        (cut, "cannot be read as a wheel"),
        (encoded, "WHEEL': UnicodeDecodeError"),
    ],
)
def test_a_damaged_wheel_is_an_error(tmp_path, make, message):
    make(tmp_path / NAME)
    with pytest.raises(PolyopError, match=message):
        audit(tmp_path / NAME)


@pytest.mark.parametrize("record", ["a,\n", "a\n", '"' + "a" * 200000, "\0,,"])
def test_a_damaged_record_is_a_breach(tmp_path, record):
    (tmp_path / NAME).write_bytes(packed({**members()[0], "RECORD": record}))
    assert any("RECORD" in breach for breach in audit(tmp_path / NAME).breaches)


@pytest.mark.parametrize(
    "name", ["a b.c", "a\\b.c", "a\rb.c", "a#b.c", "a$b.c", "a\u3000b.c", "a\\ b.c", "-a.c"]
)
def test_sources_with_odd_names_are_built_once(tmp_path, name):
    for folder in (tmp_path, tmp_path / name):
        folder.mkdir(exist_ok=True)
        (folder / "k.h").write_text("#define SEVEN 7\n")
    for path in (tmp_path / name / "k.c", tmp_path / f"k{name}"):
        path.write_text('#include "k.h"\nint odd(void) { return SEVEN; }\n')
        first = polyop.source(path, function="odd").path
        assert polyop.source(path, function="odd").path == first
        (path.parent / "k.h").write_text("#define SEVEN 8\n")
        assert polyop.source(path, function="odd").path != first


def test_headers_in_the_depfiles_of_compilers():
    assert parse_depfile("object: /a\\b.c /c\\ d.h /e\\\\\\ f.h \\\n /n\\#1.h /x$$y.h /c\rd.h /j\u3000k.h\n") == [
        "/a\\b.c", "/c d.h", "/e\\ f.h", "/n#1.h", "/x$y.h", "/c\rd.h", "/j\u3000k.h",
    ]  # fmt: skip


def test_a_library_whose_name_is_no_utf8_works(tmp_path):
    path = str(tmp_path / os.fsdecode(b"l\xff.so"))
    pathlib.Path(path).write_bytes(libraries()[0])
    op = polyop.operator("hostile::scale(Tensor x) -> Tensor", polyop.prebuilt(path, "Scale"), infer="x")
    assert op(np.ones(3, np.float64)).shape == (3,)
    with pytest.raises(PolyopError, match=r"l.udcff.so: does not offer the function 'None'"):
        polyop.prebuilt(path, "None")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2**60, 4), "at most 2.*62 bytes"),
        ((0, 2**62, 4), "at most 2.*62 bytes"),
        ((2**70,), "at most 2.*62 bytes"),
        ((1,) * 65, "at most 64 dimensions, but got 65"),
    ],
)
def test_outputs_that_no_memory_can_hold_are_refused(shape, message):
    rule = lambda x: Spec(shape, "float64")  # noqa: E731
    op = polyop.operator(
        f"hostile::o{len(shape)}_{abs(hash(shape))}(Tensor x) -> Tensor", lambda x: x, infer=rule
    )
    with pytest.raises(PolyopError, match=message):
        op(np.ones(3, np.float64))
    last = polyop.Custom(lambda x: x, out_shape=shape, out_dtype=np.float64, func_type="pyfunc")
    with pytest.raises(PolyopError, match=message):
        last(np.ones(3, np.float64))
