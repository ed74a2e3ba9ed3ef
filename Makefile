# Two commands do everything on a fresh machine: `make demo` and `make test`. Each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= 2

.PHONY: demo test lint types contracts unit portable seeds matrix pictures bench clean

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
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(CORES) --dist worksteal -m "not matrix"

# Other machines, as far as one can play them: each library is told which instructions there are; threads and seeds differ.
# MKL and ATen are torch's, oneDNN does its convolutions, OpenBLAS is numpy's and scipy's, glibc has exp and log of all.
PRESCOTT := MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 OPENBLAS_CORETYPE=Prescott \
	NPY_DISABLE_CPU_FEATURES=X86_V3,X86_V4,AVX512_ICL,AVX512_SPR NUMBA_CPU_NAME=generic \
	GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA OMP_NUM_THREADS=1 LIKELY_SEED_SHIFT=1
HASWELL := MKL_CBWR=AVX2 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell \
	NPY_DISABLE_CPU_FEATURES=X86_V4,AVX512_ICL,AVX512_SPR NUMBA_CPU_NAME=haswell OMP_NUM_THREADS=2 LIKELY_SEED_SHIFT=2
NUMERICAL := tests/common tests/kernels tests/likelihoods tests/probability tests/optim tests/sampling tests/networks \
	tests/inference tests/models tests/evaluate tests/theory
PORTABLE ?= -m "not matrix" $(NUMERICAL)

portable: $(VENV)/.tested  ## the numerical tests on simulated machines; PORTABLE="-m sensitive tests" for the quick part
	env $(PRESCOTT) $(BIN)/pytest -n $(CORES) --dist worksteal $(PORTABLE)
	env $(HASWELL) $(BIN)/pytest -n $(CORES) --dist worksteal $(PORTABLE)

SEEDS ?= 1-50 -m "not matrix" $(NUMERICAL)

seeds: $(VENV)/.tested  ## how often tests fail when every seed is another; SEEDS="1-50 tests/sampling" for some of them
	CORES=$(CORES) $(BIN)/python -m tests.seeds $(SEEDS)

matrix: $(VENV)/.tested  ## every likelihood × network × prior × inference
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(CORES) --dist worksteal -m matrix tests/common

pictures: $(VENV)/.tested  ## the figures of docs/first-hour.md
	cd docs/images && ../../$(BIN)/python -m doctest -o NORMALIZE_WHITESPACE -o ELLIPSIS ../first-hour.md

bench: $(VENV)/.benched  ## each comparison with a peer, in one run
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo build dist
