"""Records on disk that are damaged or hostile: manifests, facts, and the indexes of shipped kernels."""

import copy
import json
import random
import time

import pytest

import polyop
from polyop.build import build, facts, lookup
from polyop.build.paths import cache_dir
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.library import shipped
from processor_time import seconds_within

HOSTILE = [
    "[" * 100_000,
    '{"a":' * 100_000,
    '{"format":1,"sources":[],"variants":' + "[" * 5000 + "]" * 5000 + "}",
    "1e400",
    "9" * 5000,
    "NaN",
    '"\\ud800"',
    "\ufeff{}",
    "null",
    "[[]]",
    '{"": []}',
    "\x00" * 100,
    "",
]
"""Whole files."""
VALUES = [
    None, True, 0, -1, 2**63, -(2**63) - 1, 10**4000, 0.5, float("inf"), float("nan"), 1e308, "", "x", "\0", "a\0b",
    "\ud800", "\udcff", "../x", "/etc/passwd", ".", "..", "a" * 40, "a" * 64, "9" * 100_000, [], [[]], {}, {"a": 1},
    ["/dev/zero"], [["/dev/zero", 0, 0, 0, "a" * 64]], [["/dev/tty", 0, 0, 0, "a" * 64]], [[1] * 5], [["x"]],
    {"key": 1}, [{}], [None],
]  # fmt: skip
"""Values that are put in the place of each value in a file."""


REMOVED = object()


def paths_in(data, path=()):
    """Yield the path to every value in a record: a tuple of keys and indices."""
    yield path
    rows = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in rows:
        yield from paths_in(value, (*path, key))


def put(data, path, value):
    """Return the record with another value at a path, or without that value if ``value`` is REMOVED."""
    if not path:
        return value
    changed = copy.deepcopy(data)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if value is REMOVED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def damaged(text, seed, count):
    """Yield bytes: hostile files, each value replaced in turn, and bytes flipped, cut, doubled at random."""
    yield from (one.encode() for one in HOSTILE)
    data = json.loads(text)
    for path in paths_in(data):
        for value in [*VALUES, REMOVED]:
            if path or value is not REMOVED:
                yield json.dumps(put(data, path, value)).encode()
    draw, raw = random.Random(seed), text.encode()
    for _ in range(count):
        flipped = bytearray(raw)
        for _ in range(draw.randint(1, 4)):
            flipped[draw.randrange(len(flipped))] = draw.randrange(256)
        at, to = sorted(draw.sample(range(len(raw)), 2))
        yield bytes(flipped)
        yield raw[:at]
        yield raw[:at] + raw[to:]
        yield raw[:to] + raw[at:]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "k.c").write_text('#include "k.h"\nint answer(void) { return 1; }\n')
    (tmp_path / "k.h").write_text("")
    return tmp_path / "cache"


class Manifest:
    """The manifest of a build. A look-up returns the library or nothing."""

    def __init__(self, folder):
        self.built = build([folder / "k.c"])
        [self.path] = (cache_dir() / "requests").iterdir()

    def read(self):
        cached = lookup.look_up(str(cache_dir()), self.path.stem)
        return cached is None or cached.path == str(self.built)


class Facts:
    """The stored facts about files. A look-up returns a string, whatever is stored."""

    def __init__(self, folder):
        self.file = folder / "file"
        self.file.write_text("text")
        time.sleep(0.1)
        self.path = cache_dir() / facts.FILE
        self.read()

    def read(self):
        return isinstance(facts.cached("one", [str(self.file)], lambda: "answer"), str)


class Index:
    """The index of a package's loop kernels. A look-up returns a library in its folder, or the reason why not."""

    def __init__(self, folder):
        module = folder / "kernels.py"
        module.write_text(
            "import polyop\n\n@polyop.kernel\ndef twice(a):\n    out = output_tensor(a.shape, a.dtype)\n"
            "    for i in range(a.shape[0]):\n        out[i] = a[i] * 2\n    return out\n"
        )
        scope = {}
        exec(compile(module.read_text(), str(module), "exec"), scope)
        self.kernel = LoopKernel(scope["twice"], ()).typed([Spec((0,), dtype("float64"))], {})
        self.folder = folder / shipped.FOLDER
        self.folder.mkdir()
        (self.folder / "twice.so").write_bytes(b"\x7fELF")
        self.path = self.folder / "kernels.json"
        row = {
            "function": "twice",
            "signature": shipped.signature(self.kernel),
            "precise": False,
            "digest": shipped.digest(self.kernel, precise=False),
            "library": "twice.so",
            "symbol": "loop_twice",
            "sha256": lookup.text_digest(b"\x7fELF"),
            "passes": "x",
            "told": {"avx2": [[3, "a loop"]]},
        }
        head = {"format": shipped.FORMAT, "meaning": shipped.MEANING, "abi": polyop.core.versions.ABI_VERSION}
        machine = {"machine": shipped.platform.machine(), "module": "kernels", "source": "0" * 64}
        self.path.write_text(json.dumps({**head, **machine, "kernels": [row]}))

    def read(self):
        look = shipped.find(self.kernel, precise=False, checked=False, device="cpu")
        if look.path:
            assert all(isinstance(text, str) for rows in look.row["told"].values() for _, text in rows)
        return not look.path or look.path == str(self.folder / "twice.so")


@pytest.mark.parametrize("kind", [Manifest, Facts, Index], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_file_is_damage(cache, tmp_path, kind, text):
    record = kind(tmp_path)
    record.path.write_bytes(text.encode())
    assert record.read()


@pytest.mark.parametrize("text", HOSTILE[:3])
def test_a_damaged_manifest_is_built_again_and_then_found(cache, tmp_path, text):
    built = build([tmp_path / "k.c"])
    [path] = (cache / "requests").iterdir()
    path.write_text(text)
    assert build([tmp_path / "k.c"]) == built
    assert "nested too deeply; it is built again" in (cache / "repairs.log").read_text()
    assert json.loads(path.read_text())["format"] == 1


def test_a_value_of_any_kind_in_a_manifest_is_damage(cache, tmp_path):
    record = Manifest(tmp_path)
    data = json.loads(record.path.read_text())
    first = data["variants"][0]
    first.update(inputs=first["inputs"][:1], absent=["/none"])
    for path in paths_in(data):
        for value in VALUES:
            record.path.write_text(json.dumps(put(data, path, value)))
            assert record.read(), f"{path} = {value!r}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Manifest, Facts, Index], ids=lambda kind: kind.__name__)
def test_fuzzed_records_are_read_or_made_again(cache, tmp_path, kind, capsys):
    record, count, slowest = kind(tmp_path), 0, 0.0
    for data in damaged(record.path.read_text(), 1, 2500):
        record.path.write_bytes(data)
        with seconds_within(10, str(data[:200])) as spent:
            assert record.read(), data[:200]
        slowest = max(slowest, spent.seconds)
        count += 1
    with capsys.disabled():
        print(
            f"\n{kind.__name__}: {count} damaged files, no foreign error, the slowest {slowest * 1e3:.0f} ms"
        )


def test_the_records_that_are_fuzzed_are_good_ones(cache, tmp_path):
    for kind in (Manifest, Facts, Index):
        (tmp_path / kind.__name__).mkdir()
        for name in ("k.c", "k.h"):
            (tmp_path / kind.__name__ / name).write_text((tmp_path / name).read_text())
        record = kind(tmp_path / kind.__name__)
        assert record.read()
        if kind is Index:
            look = shipped.find(record.kernel, precise=False, checked=False, device="cpu")
            assert look.path == str(record.folder / "twice.so"), look.why
