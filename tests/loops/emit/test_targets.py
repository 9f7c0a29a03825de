"""The text for every target compiles on every machine, and gives the interpreter's values where it can run.

Every text is parsed, which takes little time and finds what is not declared or has another type; a few are
compiled and run. x86 text needs this machine's C compiler, not a processor that has the instruction set. NEON
text needs aarch64-linux-gnu-gcc, and qemu-aarch64 to run. CUDA text is parsed as C++ here; nvcc compiles it in
test_cuda.py. At the end of a run the line ``targets:`` says what was done.
"""

import functools
import shutil
import subprocess

import numpy as np
import pytest

from loop_samples import batch, driver, emulate, reference
from loop_samples.programs import PROGRAMS
from polyop.build import compilers
from polyop.loops.derive.forms import derive
from polyop.loops.emit.printer import source
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.schedule import NOTHING
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa
from polyop.loops.targets.table import TARGETS

IN_C = [row.name for row in TARGETS.values() if row.language == "c"]
OWN_FAMILY = TARGETS[isa.available()[0]].family
MACHINES = {"x86": "x86_64", "arm": "aarch64"}
"""The names of families in those of cross compilers and emulators, if they differ."""
# what gcc 12 only warns of: it is not declared, or has another type
ERRORS = ("implicit-function-declaration", "int-conversion", "incompatible-pointer-types")

FIRST = [*{program.function: program for program in reversed(PROGRAMS)}.values()]
OTHERS = [program for program in PROGRAMS if program not in FIRST]  # of other dtypes, attributes, schedules
PROGRAM, GRADIENT = (), ("backward",)  # a form: derivations, one after the other
SLOW_FORMS = [("backward", "backward"), ("tangent",), ("batched",), ("checkpointed",), ("saving",)]
SLOW_FORMS += [("backward", "batched"), ("backward", "tangent")]
FORMS = [(PROGRAM, "first"), (GRADIENT, "first")]
FORMS += [
    pytest.param(*case, marks=pytest.mark.slow)
    for case in ((GRADIENT, "others"), (PROGRAM, "others"), *((form, "first") for form in SLOW_FORMS))
]

PARTS = 16
CASES = [
    (target, form, part) for target in IN_C for form in (PROGRAM, GRADIENT) for part in range(PARTS)
]  # in this order: the four that run for every change are of four targets


def name_of(value):
    """Return a form's name; pytest names the rest."""
    return ("-of-".join(reversed(value)) or "program") if isinstance(value, tuple) else None


@functools.cache
def scheduled(program, form):
    """Return a program in a form after all passes, None if there is none: a gradient may have to save nothing."""
    kernel = reference.forward(program) if form else reference.typed(program)
    for derivation in form:
        kernel = kernel and derive(kernel, derivation)
    return kernel and schedule(kernel, steps=NOTHING if form else program.steps)


def cross_compiler(target):
    """Return the compiler for a target of another family than this machine's."""
    return f"{MACHINES.get(TARGETS[target].family, TARGETS[target].family)}-linux-gnu-gcc"


def emulator(target):
    """Return the program that runs a target of another family."""
    return f"qemu-{MACHINES.get(TARGETS[target].family, TARGETS[target].family)}"


def missing_compiler(target):
    """Return which compiler this machine lacks for a target in C, or ""."""
    present = TARGETS[target].family == OWN_FAMILY or shutil.which(cross_compiler(target))
    return "" if present else f"{cross_compiler(target)} is not installed"


def missing_processor(target):
    """Return why this machine cannot run a target, or "". An emulator may lack what not every processor has."""
    if target in isa.available():
        return ""
    if TARGETS[target].family == OWN_FAMILY or TARGETS[target].features:
        return f"this processor has no {target}"
    return "" if shutil.which(emulator(target)) else f"{emulator(target)} is not installed"


def compiler(target):
    """Return the command that compiles the text of a target."""
    if target == "cuda":
        return emulate.COMPILER
    if TARGETS[target].family != OWN_FAMILY:
        return [cross_compiler(target), *batch.OPTIONS, "-fPIC", "-static"]
    found = compilers.find("c")
    flags = TARGETS[target].flags if found.family == "clang" else ()  # gcc reads pragmas in the text
    return [*found.command, *batch.OPTIONS, *flags]


def parsed(target, texts, folder):
    """Return the errors that a compiler finds in texts, by name, when it only parses them."""
    for name, text in texts.items():
        (folder / f"{name}.c").write_text(text)
    command = [*compiler(target), "-fsyntax-only", *(f"-Werror={name}" for name in ERRORS)]
    files = [f"{name}.c" for name in texts]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if ": error: " in line or ": fatal error: " in line]
    return lines or ([done.stderr] if done.returncode else [])


def alone(target, programs, form):
    """Return the texts of programs by name."""
    texts = {}
    for number, program in enumerate(programs):
        if one := scheduled(program, form):
            name = f"{target}-{name_of(form)}-{program.name}-{number}"
            texts[name] = source(one, target, "f", checked=one.checked)
    return texts


def test_a_portable_library_has_what_the_machine_that_makes_it_lacks(monkeypatch):
    monkeypatch.setattr(isa.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(isa, "_flags", frozenset)  # a processor without AVX
    assert isa.available() == ("baseline",)
    assert isa.family() == ("avx512", "avx2", "baseline")


@pytest.mark.parametrize(("form", "which"), FORMS, ids=name_of)
def test_every_target_declares_what_it_uses(form, which, tmp_path, record_property):
    programs = {"first": FIRST, "others": OTHERS}[which]
    every = [one for program in programs if (one := scheduled(program, form))]
    errors = []
    for target in (*IN_C, "cuda"):
        if target in IN_C and (missing := missing_compiler(target)):
            record_property("target", f"{target}: not compiled: {missing}")
            continue
        text = emulate.text(every) if target == "cuda" else batch.text(every, target)
        if found := parsed(target, {f"{target}-all": text}, tmp_path):
            errors += parsed(target, alone(target, programs, form), tmp_path) or found
        else:
            record_property("target", f"{target}: compiled{' as C++' if target == 'cuda' else ''}")
    assert not errors, "\n".join(errors)


@pytest.mark.slow
@pytest.mark.parametrize("target", IN_C)
def test_a_text_includes_what_it_uses(target, tmp_path):
    """Each text is a file of its own: in a file of all of them one includes what another needs."""
    if missing := missing_compiler(target):
        pytest.skip(f"not run: {missing}")
    errors = parsed(target, alone(target, FIRST, PROGRAM), tmp_path)
    assert not errors, "\n".join(errors)


@pytest.mark.slow(1)
@pytest.mark.parametrize(("target", "form", "part"), CASES, ids=name_of)
def test_values_of_every_target(target, form, part, tmp_path, record_property):
    if missing := missing_compiler(target):
        record_property("target", f"{target}: not compiled: {missing}")
        pytest.skip(f"not run: {missing}")
    programs = PROGRAMS[part::PARTS]
    calls, wanted = [], []
    for number, program in enumerate(programs):
        for index in range(len(program.sizes()))[1::3]:
            call, outputs = called(program, form, number, index)
            calls.append(call)
            wanted.append((program, outputs))
    text = driver.program(batch.text([scheduled(program, form) for program in programs], target), calls)
    (tmp_path / "driver.c").write_text(text)
    (tmp_path / "inputs").write_bytes(driver.inputs(calls))
    execute([*compiler(target), "-O1", "-w", "driver.c", "-o", "driver", "-lm"], tmp_path)
    record_property("target", f"{target}: compiled")
    if missing := missing_processor(target):
        record_property("target", f"{target}: not run: {missing}")
        pytest.skip(f"compiled, not run: {missing}")
    run = ["./driver"] if target in isa.available() else [emulator(target), "./driver"]
    for threads in ("1", "3"):
        execute([*run, threads, "inputs", "results"], tmp_path)
        results = driver.tensors(calls, (tmp_path / "results").read_bytes())
        for call, tensors, (program, outputs) in zip(calls, results, wanted, strict=True):
            where = f"{program.name} of {[a.shape for a in call.inputs]} on {threads} threads"
            compare(outputs, tensors, rough(program, form), where)
    record_property("target", f"{target}: ran{' in ' + run[0] if run[1:] else ''}")


def called(program, form, number, index):
    """Return the call of a program for sizes number ``index``, and what it writes: place -> array."""
    if form == GRADIENT:
        kernel, arrays = reference.gradient(program), reference.gradient_arrays(program, index)
        results = interpret(kernel, arrays, program.attributes)
    else:
        kernel, arrays = reference.typed(program), program.arrays(program.sizes()[index])
        results = reference.expected(program, index)
    outputs = [name for name in kernel.outputs if kernel.buffers[name].role == "output"]
    names = [*(name for name in kernel.parameters if name in kernel.buffers), *outputs]
    call = driver.Call(number, arrays, driver.outputs_alone(kernel, results), program.attributes)
    return call, {names.index(name): array for name, array in zip(kernel.outputs, results, strict=True)}


def rough(program, form):
    """Return the relative error that a result may have, by the size of an element in bytes."""
    least = {1: 0.3, 2: 0.05, 4: 1e-4, 8: 1e-9} if form else dict.fromkeys((1, 2, 4, 8), 0.0)
    return {size: max(error, program.rough) for size, error in least.items()}


def compare(outputs, tensors, errors, where):
    """Compare what a call has written with what it should have."""
    for place, expected in outputs.items():
        error = errors[expected.dtype.itemsize] if expected.dtype.kind not in "biu" else 0.0
        one, other = (a.astype(np.float64) if error else a for a in (expected, tensors[place]))
        scale = float(np.nanmax(np.abs(one), initial=1.0, where=np.isfinite(one))) if error else 1.0
        np.testing.assert_allclose(other, one, error, error * scale, err_msg=f"{where}, tensor {place}")


def execute(command, folder):
    """Run a command in a folder; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
