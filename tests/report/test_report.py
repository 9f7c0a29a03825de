"""What a report says of real kernels, compared with explain and with numbers computed by hand."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.errors import ArgumentTypeError, BuildError
from polyop.core.spec import Spec
from polyop.loops.targets import isa
from polyop.report import machine_code
from polyop.report import page as pages
from polyop.report.figures import grid
from polyop.report.origins import lines_of_listing
from polyop.report.values import Arrow, Space

pytest.importorskip("jinja2", reason="not run: reports need Jinja2")
pytest.importorskip("pygments", reason="not run: reports need Pygments")

import report_kernels as kernels


def spec(*shape):
    return Spec(shape, dtype("float32"), "cpu")


@pytest.fixture(scope="session")
def softmax():
    return kernels.softmax.report(spec(4096, 512), measure=False).facts


def line_of(form, text):
    return next(row.line for row in form.source if text in row.text)


def test_the_loops_of_softmax_are_parallel_and_vectors(softmax):
    badges = [{badge.kind for badge in fact.badges} for fact in softmax.forward.loops]
    assert badges == [{"parallel"}, {"vector"}, {"vector"}, {"vector"}]
    lanes = {"avx512": 16, "avx2": 8}.get(isa.chosen(), 4)
    assert {b.label for f in softmax.forward.loops[2:] for b in f.badges} == {f"{lanes} lanes"}
    assert softmax.answers[0].sentences[0].startswith("No loop is serial")
    lines = [fact.line for fact in softmax.forward.loops]
    threads, vectors = softmax.answers[0].sentences[1:]
    assert threads == f"Loop i (line {lines[0]}) is shared by threads."
    assert re.sub(r", \d+ lanes( x \d+)?", "", vectors) == (
        f"Loops j (line {lines[1]}), j#2 (line {lines[2]}) and j#3 (line {lines[3]}) run in vector lanes."
    )


def test_a_serial_loop_names_the_two_accesses():
    form = kernels.decay.report(spec(100), measure=False).facts.forward
    (loop,) = form.loops
    assert [badge.kind for badge in loop.badges] == ["serial"]
    lines = [access.line for access in loop.accesses]
    assert lines == [line_of(form, "y[i] = x[i]"), line_of(form, "0.9")]
    assert [(access.verb, access.target) for access in loop.accesses] == [("writes", "y"), ("reads", "y")]
    why = f"in order: line {lines[0]} writes y, and in another iteration line {lines[1]} reads it"
    assert why in explain(kernels.decay, (spec(100),))


def test_the_bytes_that_the_gradient_saves_are_those_of_explain(softmax):
    rows = {kept.name: (kept.how, kept.bytes) for kept in softmax.gradient.kept if kept.name}
    assert rows["total"] == ("saved", 4096 * 4)
    assert rows["y"] == ("output", 4096 * 512 * 4)
    said = re.search(
        r"saved by the forward, not recomputed: (.*)", explain(kernels.softmax, (spec(4096, 512),))
    )
    assert {name: int(size) for name, size in re.findall(r"(\w+) \((\d+) bytes\)", said[1])} == {
        name: size for name, (how, size) in rows.items() if how in ("saved", "dropped")
    }


@pytest.mark.slow
def test_the_bytes_of_a_tape_are_those_of_explain():
    inputs = (spec(32, 8),) * 3
    gradient = kernels.attention.report(*inputs, measure=False).facts.gradient
    taped = sum(kept.bytes for kept in gradient.kept if kept.how == "taped")
    assert f"tapes take {taped} bytes" in explain(kernels.attention, inputs)
    names = {how: {kept.name for kept in gradient.kept if kept.how == how} for how in ("recomputed", "saved")}
    assert "score" in names["recomputed"]
    assert names["saved"] == {"top", "total"}


def test_lines_link_python_passes_c_and_machine_code(softmax):
    form = softmax.forward
    line = line_of(form, "exp(")
    assert any("pl_exp_" in row.text for row in form.c if row.line == line)
    assert any("exp(" in row.text for step in form.passes for row in step.lines if row.line == line)
    if form.machine.missing:
        pytest.skip(f"not run: {form.machine.missing}")
    found = [one for _, rows in form.machine.functions for one in rows if one.line == line]
    assert any("f32" in one.lanes for one in found)
    assert any(line in loop.lines and loop.vector for loop in form.machine.loops)


def test_every_line_of_the_author_is_there_once(softmax):
    numbers = [row.line for row in softmax.forward.source]
    assert numbers == list(range(numbers[0], numbers[0] + 14))
    assert [row.text.strip() for row in softmax.forward.source][-1] == "return y"


@pytest.mark.parametrize("name", ["softmax", "decay", "sweep", "attention"])
def test_each_line_of_a_listing_has_its_origin(name):
    from polyop.loops.listing import listing

    kernel = getattr(kernels, name).operator.kernels[0]
    inputs = [spec(100) if name == "decay" else spec(8, 8)] * kernel.tensors
    seen = []

    def watch(one, program, seconds):
        origins, text = lines_of_listing(program), listing(program).splitlines()
        assert len(origins) == len(text), one.name
        seen.extend(zip(origins, text, strict=True))

    kernel.compile_watched(inputs, {}, watch)
    source = kernel.typed(inputs, {}).source
    loops = {(origin, text.split()[1]) for origin, text in seen if text.lstrip().startswith("for ")}
    assert loops
    assert all("for " in source[origin] or "[" in source[origin] for origin, _ in loops)


def test_the_dependences_of_a_sweep_point_down_and_right():
    form = kernels.sweep.report(spec(64, 64), measure=False).facts.forward
    drawn = next(space for space in form.spaces if any(not arrow.commutes for arrow in space.arrows))
    inner = [a for a in drawn.arrows if min(a.start) >= 1]
    steps = {(a.end[0] - a.start[0], a.end[1] - a.start[1]) for a in inner}
    assert steps == {(1, 0), (0, 1)}
    assert len(drawn.points) == 25  # 1 to 5 in each direction
    assert len(inner) == 2 * 5 * 4


@pytest.mark.parametrize(("far", "bent"), [(1, False), (2, True)])
@pytest.mark.parametrize("axis", [0, 1])
def test_only_an_arrow_over_another_point_is_bent(axis, far, bent):
    points = tuple((x, y) for x in range(3) for y in range(3))
    end = (far, 0) if axis == 0 else (0, far)
    space = Space(("i", "j"), (1, 2), "", points, (Arrow((0, 0), end, "y", False, (3, 3)),))
    (path,) = grid(space).paths
    places = [float(number) for number in re.findall(r"-?[\d.]+", path.d)]  # x and y in turn
    assert (len({*places[1 - axis :: 2]}) > 1) == bent


def test_without_dependences_there_is_no_arrow(softmax):
    (free,) = [space for space in softmax.forward.spaces if not space.arrows]
    assert free.loops[0] == "i"
    chains = [space for space in softmax.forward.spaces if space.arrows]
    assert chains
    assert all(arrow.commutes for space in chains for arrow in space.arrows)


def test_an_operator_without_loops_says_what_it_lacks():
    report = kernels.doubled.report(np.ones(3, np.float32), measure=False)
    assert report.facts.forward is None
    assert "no machine code" in report.facts.lacks[0]
    assert "It has no gradient." in report.html
    assert report.facts.explanation == explain(kernels.doubled, (spec(3),))


def test_a_page_loads_nothing_and_has_each_section(softmax):
    text = pages.page(softmax)
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", text)
    assert set(re.findall(r"url\((.)", text)) == {"#"}
    assert re.findall(r'<section id="(\w+)"', text) == [
        "answers", "loops", "forward", "space", "time", "gradient", "sharding", "explain",
    ]  # fmt: skip


def test_the_table_of_devices_has_the_bytes_of_explain(softmax):
    (table,) = softmax.sharding
    rows = {row[0]: row for row in table.rows}
    assert rows["x, dimension 0"][2:4] == ("nothing", "nothing")
    told = kernels.softmax.communication(
        {"devices": 4}, placements=[(None, "devices")], shapes=[spec(4096, 512)]
    )
    assert rows["x, dimension 1"][2].endswith(f"{told.forward[0].bytes / 1e6:.3g} MB")


def test_measured_times_have_roofs_and_threads():
    report = kernels.softmax.report(np.ones((64, 32), np.float32), against=["numpy:exp"])
    facts = report.facts
    assert len(re.findall("80 % of slices between", report.html)) >= len(facts.measured.points)
    names = [point.name for point in facts.measured.points]
    assert names == ["report_tests::softmax", "gradient"]
    own = facts.measured.points[0]
    assert own.bytes == 2 * 64 * 32 * 4
    assert own.flops == 64 * (
        31 + 3 * 32 + 32
    )  # a maximum; a difference, an exponential and a sum; a quotient
    assert facts.measured.threads[0][0] == 1
    assert any("numpy:exp is left out: its values differ" in note for note in facts.measured.notes)
    assert [answer.question for answer in facts.answers][1] == "What bounds this kernel?"
    before = polyop.get_num_threads()
    assert facts.measured.threads[-1][0] == before


def test_integers_that_are_drawn_become_zeros_and_those_given_stay():
    @polyop.kernel(name="report_tests::picked")
    def picked(x, rows):
        y = output_tensor(rows.shape, x.dtype)  # noqa: F821 - a word of the loop language
        for i in range(rows.shape[0]):
            y[i] = x[rows[i]]
        return y

    drawn = picked.report(spec(2), Spec((64,), dtype("int64"), "cpu")).facts.measured
    assert drawn.points
    assert drawn.notes[0].startswith("Tensors of integers are zeros")
    given = picked.report(np.ones(2, np.float32), np.full(64, 7)).facts.measured
    assert not given.points
    assert "index 7" in given.missing


def test_a_notebook_shows_the_page_in_a_frame():
    report = kernels.doubled.report(np.ones(3, np.float32), measure=False)
    text = report._repr_html_()
    assert text.startswith('<iframe srcdoc="')
    assert "<script" not in text
    assert "report_tests::doubled" in text


def test_errors_say_what_to_do(monkeypatch):
    with pytest.raises(ArgumentTypeError, match="takes tensors, arrays or specs"):
        kernels.doubled.report(3)
    monkeypatch.setattr(pages, "NEEDS", ("jinja2", "polyop_no_such_library"))
    with pytest.raises(
        BuildError, match=r"polyop_no_such_library, which is not installed\n.*'polyop\[report\]'"
    ):
        kernels.doubled.report(np.ones(3, np.float32))


def test_without_objdump_the_page_says_so(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    report = kernels.decay.report(spec(100), measure=False)
    assert "No machine code: objdump is not installed" in report.html


def test_without_time_for_objdump_the_page_says_so(monkeypatch):
    monkeypatch.setattr(machine_code, "OBJDUMP_SECONDS", 1e-6)
    report = kernels.decay.report(spec(100), measure=False)
    assert "No machine code: objdump takes more than 1e-06 s to read the library" in report.html


ARM = """
0000000000000760 <polyop_sum>:
sum.c:4
 764:\tsub\tsp, sp, #0x10
 768:\tldr\tq1, [x0], #16
 76c:\tfadd\tv0.4s, v0.4s, v1.4s
 770:\tsubs\tx2, x2, #0x4
 774:\tstr\tq0, [sp, #32]
 778:\tb.ne\t768 <polyop_sum+0x8>  // b.any
 77c:\ttbnz\tw0, #3, 764 <polyop_sum+0x4>
"""
X86 = """
0000000000000760 <polyop_sum>:
sum.c:4
 764:\tvmovss xmm0,DWORD PTR [rip+0xe98]        # 2004 <_IO_stdin_used+0x4>
 768:\tmov    QWORD PTR [rsp+0x8],rax
 76c:\tcall   1030 <expf@plt>
"""


@pytest.mark.parametrize(
    ("listing", "processor", "operands", "jumps", "marks"),
    [
        (
            ARM,
            "aarch64",
            "sp, sp, #0x10|q1, [x0], #16|v0.4s, v0.4s, v1.4s|x2, x2, #0x4|q0, [sp, #32]|768|w0, #3, 764",
            ["768", "764"],
            [],
        ),
        (
            X86,
            "x86_64",
            "xmm0,DWORD PTR [rip+0xe98]|QWORD PTR [rsp+0x8],rax|1030 <expf@plt>",
            [],
            ["spill", "call"],
        ),
    ],
)
def test_listings_of_objdump_are_read(listing, processor, operands, jumps, marks):
    """In a listing of ARM ``#`` starts a number, in one of x86 a comment. Marks are for x86-64."""
    *_, function = machine_code._functions(listing, "sum.c", processor)
    assert [one.operands for one in function.instructions] == operands.split("|")
    assert [one.jump for one in function.instructions if one.jump] == jumps
    assert [mark for one in function.instructions for mark in one.marks] == marks


TWO_JUMPS = """
0000000000000760 <polyop_sum>:
sum.c:4
 764:\tmov    eax,0x0
sum.c:6
 768:\tadd    eax,0x1
 76c:\tcmp    eax,0x8
sum.c:2
 770:\tje     768 <polyop_sum+0x8>
 774:\tcmp    eax,0x10
 778:\tjne    768 <polyop_sum+0x8>
 77c:\tret
"""


def test_two_jumps_to_one_head_are_one_loop():
    *_, function = machine_code._functions(TWO_JUMPS, "sum.c", "x86_64")
    assert [one.depth for one in machine_code._with_loops(function).instructions] == [0, 1, 1, 1, 1, 1, 0]


def test_instructions_have_the_lines_of_the_author():
    """The C of lines 2 and 4 is of lines 20 and 40; that of line 6 was added at its end, and is of none."""
    *_, function = machine_code._functions(TWO_JUMPS, "sum.c", "x86_64")
    placed = machine_code._placed(function.instructions, [10, 20, 30, 40, 50])
    assert [one.line for one in placed] == [40, 0, 0, 20, 20, 20, 20]


def test_a_machine_without_marks_is_said_so(monkeypatch):
    monkeypatch.setattr(machine_code, "MARKED", "another")
    report = kernels.decay.report(spec(100), measure=False)
    if report.facts.forward.machine.missing:
        pytest.skip(f"not run: {report.facts.forward.machine.missing}")
    assert "instructions are marked for another only, not for " in report.html
    assert "to and from the stack" not in report.html


joined = polyop.operator(
    "report_tests::joined(Tensor[] parts, Tensor? bias) -> Tensor",
    lambda parts, bias: sum(parts) if bias is None else sum(parts) + bias,
    infer=lambda parts, bias: parts[0],
)


@pytest.mark.parametrize("measure", [False, True])
@pytest.mark.parametrize("array", [False, True])
def test_lists_and_absent_tensors_are_inputs(measure, array):
    one = np.ones(3, np.float32) if array else spec(3)
    report = joined.report([one, one], None, measure=measure)
    assert report.facts.inputs == ("[float32[3], float32[3]]", "None")
    assert report.facts.measured.points or not measure


def test_nests_with_bounds_from_data_have_no_picture():
    @polyop.kernel(name="report_tests::ragged")
    def ragged(x, ends):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
        for i in range(x.shape[0]):
            y[i] = 0.0
            for j in range(ends[i]):
                y[i] += x[j]
        return y

    inputs = spec(8), Spec((8,), dtype("int64"), "cpu")
    drawn = ragged.report(*inputs, measure=False).facts.forward.spaces
    assert all("j" not in space.loops for space in drawn)


@pytest.mark.slow
def test_the_verb_writes_the_page(tmp_path):
    command = [sys.executable, "-m", "polyop", "report", kernels.__file__, "decay"]
    command += ["--input", "float32[64]", "--no-measure", "-o", "decay.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "decay.html\n"
    assert "<title>report_tests::decay float32[64]</title>" in (tmp_path / "decay.html").read_text()
    wrong = subprocess.run(
        [*command, "--attribute", "a=1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 1
    assert "must name an attribute: there are none" in wrong.stderr
