# Two commands do everything on a fresh machine: `make demo` and `make test`. Each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= 2

.PHONY: demo test lint types contracts unit matrix bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

$(VENV)/.benched: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[bench]"
	touch $@

demo: $(VENV)/.installed  ## compare, fit, save, predict with intervals, draw: into demo/
	$(BIN)/python -m likely.cli.demo

test: lint types contracts unit

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.tested
	$(BIN)/mypy

contracts: $(VENV)/.tested
	$(BIN)/lint-imports

unit: $(VENV)/.tested  ## doctests and tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(CORES) -m "not matrix"

matrix: $(VENV)/.tested  ## every likelihood × network × prior × inference
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(CORES) -m matrix tests/common

bench: $(VENV)/.benched  ## each comparison with a peer, in one run
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo build dist
