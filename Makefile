# Everything sets itself up: a virtual environment in .venv, the compiled core, the test tools.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
NATIVE := $(wildcard csrc/*.cc csrc/*.h csrc/*/*.cc csrc/*/*.h include/polyop/*.h include/polyop/*/*.h include/polyop/torch/*/torch/*.h)
SOURCES := pyproject.toml CMakeLists.txt $(NATIVE)

.PHONY: demo test lint bench sanitize format golden clean

demo: $(VENV)/ready
	$(BIN)/python -m polyop demo

test: $(VENV)/ready
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

bench: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -r bench/requirements.txt
	$(BIN)/python bench/run.py

sanitize: $(VENV)/ready
	PYTHON=$(BIN)/python bash tests/native/run_sanitized.sh

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)

golden: $(VENV)/ready
	$(BIN)/python -m pytest tests --update-golden

# An editable install: Python files are used where they stand, the core is built once per change.
$(VENV)/ready: $(SOURCES) tests/requirements.txt
	@echo "setting up $(VENV): test tools, PyTorch, then polyop itself; a minute or two"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r tests/requirements.txt
	$(BIN)/python -m pip install --quiet -C cmake.define.POLYOP_WERROR=ON -e .
	touch $@

clean:
	rm -rf $(VENV) build bench/build
