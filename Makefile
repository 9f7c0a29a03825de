# Each target sets up what it needs: `make demo` a virtual environment in .venv and the compiled core, the others
# their tools as well.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# MindSpore needs NumPy 1, so it has an environment of its own; MINDSPORE=no leaves it out.
MINDSPORE ?= yes
MS_VENV := .venv-mindspore
RESULTS := build/contract
TEST_CACHE ?= $(abspath build/test-cache)
# torchair, from the wheel torch-npu: in a folder of its own, because PyTorch imports an installed torch-npu.
NPU := build/npu
JOBS ?= 2
NATIVE := $(wildcard csrc/*.cc csrc/*.h csrc/*/*.cc csrc/*/*.h include/polyop/*.h include/polyop/*.hpp include/polyop/*/*.h include/polyop/torch/*/torch/*.h)
SOURCES := pyproject.toml CMakeLists.txt $(NATIVE)
# For `make coverage`: which tests run, and which code is measured. TESTS=tests/core COVERED=src/polyop/core is a part.
TESTS ?= tests src
COVERED ?= src/polyop

# How many more cases of each slow test run: tests/support/selection.py.
MORE ?= 0
# The seed of the tests' order; without it one is drawn, and printed.
ORDER ?=
# For `make fuzz`: the same SEED gives the same random kernels. It ends after COUNT of them, or after MINUTES: half of
# them have the whole language, half loops with exact derivatives.
SEED ?= $(shell date +%Y%m%d)
COUNT ?= 1000000
MINUTES ?= 240

# What is never imported needs no byte code: the frameworks have 33,000 files.
INSTALL := install --quiet --no-compile

# Tests start hundreds of programs that import polyop: without byte code each would compile all of it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo wheel release test test-main test-mindspore test-all sweep sweep-aten sweep-tests fuzz packages lint \
  coverage docs bench compare device clang sanitize sanitize-address sanitize-thread mutants format golden chromium aarch64 pocl hip clean

demo: $(VENV)/ready
	$(BIN)/python -m polyop demo

# All environments of the tests.
setup: $(VENV)/test-tools $(NPU)/ready $(if $(filter yes,$(MINDSPORE)),$(MS_VENV)/ready)

# A test whose process dies is run once more, and counted as "rerun" (the pattern matches no exception: a test that
# fails is not).
PYTEST := -m pytest -n $(JOBS) --dist load --reruns 1 --only-rerun "^no exception" $(if $(ORDER),--order $(ORDER))
MINDSPORE_TESTS := tests/contract tests/hosts/mindspore tests/mindspore/test_differential.py tests/mindspore/test_custom_ways.py \
  src/polyop/hosts/mindspore tests/networks

# One build cache for all of them, which the next run uses again: it knows what a library was made of.
test-main test-mindspore mutants sweep-aten sweep-tests fuzz: export POLYOP_CACHE_DIR := $(TEST_CACHE)

# For every change.
test: test-main test-mindspore

# The same, and some cases of tests that are too slow for every change: with SHARE=0.1 one of every tenth such test.
SHARE ?= 0.5
test-all: chromium clang aarch64 hip
	$(MAKE) --no-print-directory test MORE=$(SHARE)

test-main: $(VENV)/test-tools $(NPU)/ready pocl
	rm -rf $(RESULTS)
	POLYOP_CONTRACT_RESULTS=$(RESULTS)/main POLYOP_TORCH_NPU=$(abspath $(NPU)) \
	  $(BIN)/python $(PYTEST) --more $(MORE) --junitxml=build/tests.xml

# What tests use if it is installed: a browser for the pages of reports, a second compiler, another processor, a device
# of OpenCL in software. Where it cannot be installed the tests that need it are skipped, and say so.
chromium: PROGRAMS := chromium chromedriver
chromium: PACKAGES := chromium chromium-driver
clang: PROGRAMS := clang clang++
clang: PACKAGES := clang
aarch64: PROGRAMS := aarch64-linux-gnu-g++ qemu-aarch64
aarch64: PACKAGES := g++-aarch64-linux-gnu qemu-user
hip: PROGRAMS := clang++ ld.lld
hip: FILES := /usr/include/hip/hip_runtime.h $(dir $(realpath $(shell command -v clang++)))clang-offload-bundler
hip: PACKAGES := clang clang-tools lld libamdhip64-dev
pocl: PROGRAMS := oclgrind
pocl: FILES := /etc/OpenCL/vendors/pocl.icd
pocl: PACKAGES := pocl-opencl-icd oclgrind
chromium clang aarch64 pocl hip:
	@if ! { $(foreach program,$(PROGRAMS),command -v $(program) &&) $(foreach file,$(FILES),test -e $(file) &&) true; } > /dev/null; then \
	  if command -v apt-get > /dev/null && test "$$(id -u)" = 0; then \
	    echo "installing $@, for tests"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	      $(PACKAGES) > /dev/null || echo "$@ cannot be installed: its tests are skipped"; \
	  else echo "$@ is not installed, and only root can install it with apt-get: its tests are skipped"; fi; \
	fi

ifeq ($(MINDSPORE),yes)
test-mindspore: $(MS_VENV)/ready
	POLYOP_CONTRACT_PEER=$(RESULTS)/main $(MS_VENV)/bin/python $(PYTEST) --more $(MORE) $(MINDSPORE_TESTS)
	$(MS_VENV)/bin/python examples/10_digits/main.py
else
test-mindspore:
	@echo "MindSpore: not run (MINDSPORE=$(MINDSPORE))"
endif

# For hours: every entry of PyTorch's test database through polyop.aten, compared with PyTorch and with the table of
# what is refused; every case of every test; values and gradients of random loop kernels, compared with exact dual
# numbers.
sweep: sweep-aten sweep-tests fuzz

sweep-aten: $(VENV)/test-tools
	$(BIN)/python tests/support/opinfo/sweep.py

sweep-tests: $(VENV)/test-tools $(NPU)/ready chromium clang aarch64 pocl hip
	POLYOP_TORCH_NPU=$(abspath $(NPU)) $(BIN)/python $(PYTEST) --more all

fuzz: $(VENV)/test-tools
	$(BIN)/python tests/loops/fuzz_language.py --seed $(SEED) --count $$(($(COUNT) / 2)) --minutes $$(($(MINUTES) / 2))
	$(BIN)/python tests/loops/fuzz.py --seed $(SEED) --count $$(($(COUNT) / 2)) --minutes $$(($(MINUTES) / 2)) \
	  --jobs $(JOBS)

# How strong the tests are: small changes of the code and bugs of the past, each with the tests that reach its lines.
# NAME is that of the results, build/mutants/NAME.jsonl; a run goes on where it stopped.
NAME ?= now
MUTANTS := build/mutants
mutants: $(MUTANTS)/coverage.db
	$(BIN)/python tools/mutants/run.py --name $(NAME) --jobs $(JOBS)
	$(BIN)/python tools/mutants/report.py $(MUTANTS)/$(NAME).jsonl

# Which tests reach a line, and how long they take: `make test` under coverage. Remove the file to make it again.
$(MUTANTS)/coverage.db: | $(VENV)/test-tools $(NPU)/ready
	mkdir -p $(MUTANTS)
	COVERAGE_FILE=$(abspath $@) POLYOP_TORCH_NPU=$(abspath $(NPU)) $(BIN)/python $(PYTEST) --more $(MORE) \
	  --cov=src/polyop --cov-context=test --cov-report= --junitxml=$(MUTANTS)/tests.xml || test -f $@

# Real extensions of PyTorch from the package index: built beside cpp_extension, called in each host. Prints a table.
packages: $(VENV)/test-tools $(if $(filter yes,$(MINDSPORE)),$(MS_VENV)/ready)
	$(BIN)/python tests/support/torch_packages/table.py build/packages --peer \
	  $(if $(filter yes,$(MINDSPORE)),--mindspore $(MS_VENV)/bin/python)

lint: $(VENV)/test-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

# Lines of src/polyop that the tests reach. Code that runs in child processes is not counted.
coverage: $(VENV)/test-tools $(NPU)/ready
	POLYOP_TORCH_NPU=$(abspath $(NPU)) $(BIN)/python $(PYTEST) --more $(MORE) \
	  --cov=$(COVERED) --cov-report=term:skip-covered $(TESTS)

# The documents as a site: build/site/index.html. Links are checked, and the tutorials run.
docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -r docs/requirements.txt
	$(BIN)/python tools/documentation/build.py build/site

# What needs a GPU: tests and benchmarks on CUDA, in about eight minutes.
device: $(VENV)/test-tools
	$(BIN)/python tools/device.py bench/results/cuda.json

# The sdist, the wheels, and each framework in an empty environment: docs/internals/releasing.md.
release: $(VENV)/ready
	$(BIN)/python tools/release.py

wheel: $(VENV)/ready
	$(BIN)/python tools/wheel.py

bench: $(VENV)/test-tools $(if $(filter yes,$(MINDSPORE)),$(MS_VENV)/ready)
	$(BIN)/python -m pip install --quiet -r bench/requirements.txt
	POLYOP_BENCH_MINDSPORE=$(abspath $(MS_VENV))/bin/python $(BIN)/python bench/run.py

# Six problems in polyop, Warp, Taichi, Numba, PyTorch and JAX: values, gradients, lines, times; docs/comparison.md.
compare: $(VENV)/test-tools
	$(BIN)/python -m pip install --quiet -r bench/requirements-peers.txt
	$(BIN)/python bench/beside/run.py

sanitize: sanitize-address sanitize-thread

sanitize-address: $(VENV)/test-tools $(if $(filter yes,$(MINDSPORE)),$(MS_VENV)/ready)
	PYTHON=$(BIN)/python MINDSPORE=$(if $(filter yes,$(MINDSPORE)),$(MS_VENV)/bin/python) \
	  bash tests/native/run_sanitized.sh address

sanitize-thread: $(VENV)/test-tools
	PYTHON=$(BIN)/python bash tests/native/run_sanitized.sh thread

format: $(VENV)/test-tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)

golden: $(VENV)/test-tools $(NPU)/ready
	POLYOP_TORCH_NPU=$(abspath $(NPU)) $(BIN)/python -m pytest tests --update-golden

# An editable install: Python files are used from src/, and a change of the core builds it again.
$(VENV)/ready: $(SOURCES) tests/requirements-demo.txt
	@echo "setting up $(VENV): PyTorch and JAX for the CPU, then polyop itself; a minute or two"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip $(INSTALL) -r tests/requirements-demo.txt
	$(BIN)/python -m pip $(INSTALL) -C cmake.define.POLYOP_WERROR=ON -e .
	touch $@

$(VENV)/test-tools: tests/requirements.txt tests/requirements-demo.txt | $(VENV)/ready
	@echo "setting up $(VENV): the tools of the tests and the linters"
	$(BIN)/python -m pip $(INSTALL) -r tests/requirements.txt
	touch $@

$(MS_VENV)/ready: $(SOURCES) tests/requirements-mindspore.txt
	@echo "setting up $(MS_VENV): MindSpore with NumPy 1, beside PyTorch; a minute or two"
	test -x $(MS_VENV)/bin/python || $(PYTHON) -m venv $(MS_VENV)
	$(MS_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(MS_VENV)/bin/python -m pip $(INSTALL) -r tests/requirements-mindspore.txt
	$(MS_VENV)/bin/python -m pip $(INSTALL) -C cmake.define.POLYOP_WERROR=ON \
	  -c tests/requirements-mindspore.txt -e .
	touch $@

$(NPU)/ready: tests/requirements-npu.txt | $(VENV)/ready
	$(BIN)/python -m pip $(INSTALL) --no-deps --target $(NPU) -r tests/requirements-npu.txt
	touch $@

clean:
	rm -rf $(VENV) $(MS_VENV) build bench/build
