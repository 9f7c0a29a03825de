"""Build one package, call its operators in each host, and print what happened as one line of JSON.

    python run.py PACKAGE FOLDER HOST [HOST ...] [--peer]

``FOLDER`` gets the sources, which pip downloads. ``--peer`` also builds by torch.utils.cpp_extension. The exit
code is 3 if the package cannot be downloaded.
"""

import argparse
import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from packages import PACKAGES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("hosts", nargs="+")
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    (package,) = (one for one in PACKAGES if one.name == options.package)
    root = download(package, options.folder)
    result = {"package": package.name, "version": package.version}
    files = [str(file) for part in package.sources for file in sorted(root.glob(part))]
    if package.schemas:
        (root / "schemas.cpp").write_text(f"#include <torch/extension.h>\n{package.schemas}")
        files.append(str(root / "schemas.cpp"))
    if options.peer:
        result["peer_s"] = by_cpp_extension(package, root, files)
    library, result["build_s"] = load(package, root, files)
    result["operators"] = len(list(library))
    prepare(package, root, library.path)
    calls = package.calls()
    import polyop

    rules = {call.operator: call.infer for call in calls if call.infer is not None}
    polyop.load_library(library.path, infer=rules)
    result["calls"] = [
        [host, call.operator, outcome]
        for host in options.hosts
        for call in calls
        for outcome in run(host, library, call)
    ]
    print(json.dumps(result))


def download(package, folder):
    """Return the folder with a package's sources; exit with 3 and the reason if pip cannot bring them."""
    name = f"{package.name}=={package.version}"
    where = folder / name
    if not where.exists():
        with tempfile.TemporaryDirectory() as packed:
            command = [sys.executable, "-m", "pip", "download", "--no-binary", ":all:", "--no-deps"]
            command += ["--no-build-isolation", "-q", "-d", packed, name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            archives = [*pathlib.Path(packed).iterdir()]
            if done.returncode or not archives:
                print(f"pip cannot download {name}: {done.stderr.strip()[-300:]}")
                raise SystemExit(3)
            shutil.unpack_archive(archives[0], where, filter="data")
    (root,) = where.iterdir()
    return root


def load(package, root, files):
    """Build and load the package; return the library and the seconds that it took."""
    import polyop

    start = time.perf_counter()
    folders = [root / path for path in package.include_paths]
    library = polyop.load_library(
        files, include_paths=folders, cflags=package.cflags, ldflags=package.ldflags
    )
    return library, time.perf_counter() - start


def by_cpp_extension(package, root, files):
    """Return the seconds that PyTorch's own builder takes, in a process of its own."""
    import torch  # noqa: F401 - not part of the time, as for polyop

    with tempfile.TemporaryDirectory() as folder:
        code = (
            "import sys, time, json, torch.utils.cpp_extension as c; start = time.perf_counter();"
            "c.load(**json.loads(sys.argv[1])); print(time.perf_counter() - start)"
        )
        arguments = {
            "name": "peer",
            "sources": files,
            "extra_cflags": ["-O3", *package.cflags.split()],
            "extra_ldflags": package.ldflags.split(),
            "extra_include_paths": [str(root / path) for path in package.include_paths],
            "build_directory": folder,
            "is_python_module": False,
        }
        done = subprocess.run(
            [sys.executable, "-c", code, json.dumps(arguments)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:] + done.stdout[-3000:])
        return float(done.stdout.split()[-1])


def prepare(package, root, library):
    """Lay the library where the package's Python looks for it, and import the package."""
    import torch

    version = ".".join(torch.__version__.split(".")[:2])
    for link in package.links:
        path = root / link.format(torch=version)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(library)
    for file in package.left_out:
        (root / file).unlink(missing_ok=True)
    sys.path.insert(0, str(root / package.folder))
    if package.module:
        importlib.import_module(package.module)


def run(host, library, call):
    """Yield what was found in a host: "values", "gradient", "jit", or an error."""
    operator = getattr(library, call.operator)
    expected, pulled = reference(call)
    for check in ("values", "gradient", *(("jit", "jit gradient") if host == "jax" else ())):
        wanted = {"values": True, "gradient": call.gradient, "jit": call.jit, "jit gradient": call.gradient is True
                  and call.jit is True}[check]  # fmt: skip
        if wanted is False or (host == "torch" and wanted is not True):
            continue  # PyTorch itself returns a wrong gradient with a warning, and is left alone
        try:
            got = HOSTS[host](operator, call, "gradient" in check, "jit" in check)
            for one, other in zip(got, pulled if "gradient" in check else expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
        except Exception as problem:
            words = isinstance(wanted, str) and re.search(wanted, str(problem))
            yield (
                f"{check} refused" if words else f"{check} FAILED: {type(problem).__name__}: {problem}"[:600]
            )
        else:
            yield check if wanted is True else f"{check} FAILED: no error"


def reference(call):
    """Return the expected outputs, and the gradients of their sum for the inputs that have one."""
    import torch

    wanted = call.gradient is True
    arguments = [torch.tensor(x, requires_grad=wanted and x.dtype.kind == "f") if isinstance(x, np.ndarray) else x
                 for x in call.arguments]  # fmt: skip
    outputs = in_list(call.reference(*arguments))
    expected = [x.detach().numpy() for x in outputs]
    if not wanted:
        return expected, []
    leaves = [x for x in arguments if torch.is_tensor(x) and x.requires_grad]
    grads = torch.autograd.grad(sum(x.sum() for x in outputs if x.requires_grad), leaves, allow_unused=True)
    return expected, [
        np.zeros(x.shape) if g is None else g.numpy() for x, g in zip(leaves, grads, strict=True)
    ]


def in_list(outputs):
    return [*outputs] if isinstance(outputs, (tuple, list)) else [outputs]


def first(outputs, expected):
    """Return as many outputs as the reference has: a plain one leaves out what scatter_max adds."""
    return in_list(outputs)[: len(expected)]


def floats(call):
    return [i for i, x in enumerate(call.arguments) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]


def on_numpy(operator, call, gradient, _):
    if not gradient:
        arguments = [x.copy() if isinstance(x, np.ndarray) else x for x in call.arguments]  # some are written
        return first(operator(*arguments), reference(call)[0])
    outputs, pull = operator.vjp(*call.arguments)
    ones = [np.ones_like(x) if x.dtype.kind == "f" else np.zeros_like(x) for x in in_list(outputs)]
    grads = pull(*ones) if len(ones) == 1 else pull(tuple(ones))
    return [grads[i] for i in floats(call)]


def on_torch(operator, call, gradient, _):
    import torch

    chosen = floats(call) if gradient else []
    arguments = [torch.tensor(x, requires_grad=i in chosen) if isinstance(x, np.ndarray) else x
                 for i, x in enumerate(call.arguments)]  # fmt: skip
    outputs = first(operator(*arguments), reference(call)[0])
    if not gradient:
        return [x.numpy() for x in outputs]
    total = sum(x.sum() for x in outputs if x.is_floating_point())
    leaves = [arguments[i] for i in chosen]
    grads = torch.autograd.grad(total, leaves, allow_unused=True)
    return [np.zeros(x.shape) if g is None else g.numpy() for x, g in zip(leaves, grads, strict=True)]


def on_jax(operator, call, gradient, jit):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    arrays = [i for i, x in enumerate(call.arguments) if isinstance(x, np.ndarray)]

    def called(*values):
        arguments = list(call.arguments)
        for i, value in zip(arrays, values, strict=True):
            arguments[i] = value
        return first(operator(*arguments), reference(call)[0])

    def total(*values):
        return sum(x.sum() for x in called(*values) if jnp.issubdtype(x.dtype, jnp.floating))

    f = jax.grad(total, tuple(arrays.index(i) for i in floats(call))) if gradient else called
    return [*(jax.jit(f) if jit else f)(*(jnp.asarray(call.arguments[i]) for i in arrays))]


def on_mindspore(operator, call, gradient, _):
    import mindspore as ms

    arrays = [i for i, x in enumerate(call.arguments) if isinstance(x, np.ndarray)]
    chosen = tuple(arrays.index(i) for i in floats(call))
    tensors = [ms.Tensor(call.arguments[i]) for i in arrays]

    def called(*values):
        arguments = list(call.arguments)
        for i, value in zip(arrays, values, strict=True):
            arguments[i] = value
        return first(operator(*arguments), reference(call)[0])

    if not gradient:
        return [x.asnumpy() for x in called(*tensors)]
    grads = ms.grad(lambda *values: sum(x.sum() for x in called(*values) if x.is_floating_point()), chosen)(
        *tensors
    )
    return [x.asnumpy() for x in in_list(grads)]


HOSTS = {"numpy": on_numpy, "torch": on_torch, "jax": on_jax, "mindspore": on_mindspore}

if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
