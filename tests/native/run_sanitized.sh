#!/usr/bin/env bash
# Build the native core with AddressSanitizer and UndefinedBehaviorSanitizer into build/sanitized,
# and run the tests that work it hardest against that build. Usage: run_sanitized.sh [pytest arguments]
#   PYTHON  the interpreter with the project's requirements; default .venv/bin/python
#   CXX     the compiler; default c++
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
export CXX=${CXX:-c++}
build=build/sanitized
mkdir -p build

runtime=$("$CXX" -print-file-name=libasan.so)
if [[ $runtime != /* ]]; then
  echo "run_sanitized.sh: $CXX has no libasan.so (install its AddressSanitizer runtime)" >&2
  exit 1
fi

# the sanitiser finds how C++ throws when it starts: it must be loaded by then
throws=$("$CXX" -print-file-name=libstdc++.so.6)

cmake -S . -B "$build/cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPOLYOP_SANITIZE=ON \
  -DPython_EXECUTABLE="$(realpath -s "$python")" >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build/cmake" --parallel "$(nproc)" >>"$build.log" 2>&1 || { tail -50 "$build.log" >&2; exit 1; }

# a package of links to the sources, beside the other core
rm -rf "$build/site"
mkdir -p "$build/site/polyop"
for entry in src/polyop/*; do
  case $entry in
    *.so | *__pycache__) ;;
    *) ln -s "$PWD/$entry" "$build/site/polyop/" ;;
  esac
done
cp "$build"/cmake/_core*.so "$build/site/polyop/"
# an editable install finds polyop by a hook of its own, before PYTHONPATH: take it out again
cat >"$build/site/sitecustomize.py" <<'SITE'
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
SITE

# The kernel libraries that tests build are not instrumented; Python's own leaks are not ours.
export ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:alloc_dealloc_mismatch=0:abort_on_error=0:exitcode=99
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:exitcode=99
export PYTHONMALLOC=malloc PYTHONPATH="$PWD/$build/site" POLYOP_SANITIZED=1
env LD_PRELOAD="$runtime $throws" "$python" - "$PWD/$build/site" <<'CHECK'
import sys, polyop._core
if not polyop._core.__file__.startswith(sys.argv[1]):
    sys.exit(f"run_sanitized.sh: Python imports {polyop._core.__file__}, not the sanitised core")
CHECK
[[ $# -gt 0 ]] || set -- tests/native tests/define/test_module_{functions,gradients,tensors}.py
exec env LD_PRELOAD="$runtime $throws" "$python" -m pytest -q -p no:cacheprovider "$@"
