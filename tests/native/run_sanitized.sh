#!/usr/bin/env bash
# Build the native core with sanitizers and run the tests that work it hardest against that build.
# Usage: run_sanitized.sh address|thread [pytest arguments]
#   address    AddressSanitizer and UndefinedBehaviorSanitizer, also under JAX, ONNX Runtime and MindSpore
#   thread     ThreadSanitizer: calls from several threads, through Python, JAX and ONNX Runtime
#   PYTHON     the interpreter with the project's requirements; default .venv/bin/python
#   MINDSPORE  the interpreter of the environment with MindSpore; none: MindSpore's tests are not run
#   CXX        the compiler; default c++
set -euo pipefail
cd "$(dirname "$0")/../.."
kind=${1:?address or thread}
shift
python=${PYTHON:-.venv/bin/python}
export CXX=${CXX:-c++}
build=build/sanitized/$kind
mkdir -p "$build"

case $kind in
  address) library=libasan.so; sanitizers=address,undefined ;;
  thread) library=libtsan.so; sanitizers=thread ;;
  *) echo "run_sanitized.sh: no sanitizer $kind: address or thread" >&2; exit 2 ;;
esac
runtime=$("$CXX" -print-file-name=$library)
if [[ $runtime != /* ]]; then
  echo "run_sanitized.sh: $CXX has no $library (install its runtime)" >&2
  exit 1
fi
# the sanitiser finds how C++ throws when it starts: it must be loaded by then
preload="$runtime $("$CXX" -print-file-name=libstdc++.so.6)"

cmake -S . -B "$build/cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPOLYOP_SANITIZE="$sanitizers" \
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
# Frameworks are not instrumented: ThreadSanitizer takes them for racing. Reports that name our code count.
reports=$PWD/$build/report
rm -f "$reports".*
export TSAN_OPTIONS=log_path=$reports:exitcode=0:report_signal_unsafe=0
export PYTHONPATH="$PWD/$build/site" POLYOP_SANITIZED=$kind
[[ $kind == thread ]] || export PYTHONMALLOC=malloc
env LD_PRELOAD="$preload" "$python" - "$PWD/$build/site" <<'CHECK'
import sys, polyop._core
if not polyop._core.__file__.startswith(sys.argv[1]):
    sys.exit(f"run_sanitized.sh: Python imports {polyop._core.__file__}, not the sanitised core")
CHECK

tests() { # interpreter, arguments of pytest
  # it wants some addresses for itself, which a randomised layout may have taken
  setarch "$(uname -m)" -R env LD_PRELOAD="$preload" "$1" -m pytest -q -p no:cacheprovider "${@:2}"
}

if [[ $# -gt 0 ]]; then
  tests "$python" "$@"
elif [[ $kind == address ]]; then
  tests "$python" tests/native tests/define/module/test_module_{functions,tensors}.py tests/rules/module/test_gradients.py \
    tests/hosts/jax/test_kinds.py tests/graph/test_onnx.py
  if [[ -n ${MINDSPORE:-} ]]; then
    tests "$MINDSPORE" tests/hosts/mindspore/test_{calls,gradients,kinds,written}.py
  fi
else
  tests "$python" tests/native/test_threads.py tests/native/test_thread_pool.py \
    tests/hosts/jax/test_threads.py tests/graph/test_onnx.py::test_threads_share_a_session
fi
if compgen -G "$reports.*" >/dev/null && ! "$python" tests/support/races.py "$reports".*; then
  echo "run_sanitized.sh: ThreadSanitizer reports races in the core" >&2
  exit 66
fi
